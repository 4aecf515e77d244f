package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// decode reads the documents of a file; a key that the API does not have, or has once and is there twice, is an error.
func decode(t *testing.T, name string, substitute ...string) (out []any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	for i, doc := range bytes.Split([]byte(strings.NewReplacer(substitute...).Replace(string(text))),
		[]byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			t.Fatalf("%s, document %d: %v", name, i, err)
		}
		types := map[string]any{"batch/v1 Job": &batchv1.Job{}, "apps/v1 Deployment": &appsv1.Deployment{},
			"v1 ServiceAccount":                        &corev1.ServiceAccount{},
			"rbac.authorization.k8s.io/v1 Role":        &rbacv1.Role{},
			"rbac.authorization.k8s.io/v1 RoleBinding": &rbacv1.RoleBinding{}}
		v := types[kind.APIVersion+" "+kind.Kind]
		if v == nil {
			t.Fatalf("%s, document %d: %+v is not expected", name, i, kind)
		}
		if err := yaml.UnmarshalStrict(doc, v); err != nil {
			t.Errorf("%s, document %d: %v", name, i, err)
		}
		out = append(out, v)
	}
	return out
}

// checkPod checks what the API server does beyond its types: every mount has a volume, every volume is mounted.
func checkPod(t *testing.T, name string, pod corev1.PodSpec) corev1.Container {
	t.Helper()
	if len(pod.Containers) != 1 || pod.Containers[0].Image == "" || pod.Containers[0].Name == "" {
		t.Fatalf("%s: containers %+v, want one, with a name and an image", name, pod.Containers)
	}
	var mounts, volumes []string
	for _, m := range pod.Containers[0].VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	if slices.Sort(mounts); !slices.Equal(mounts, slices.Sorted(slices.Values(volumes))) {
		t.Errorf("%s: mounts %v of volumes %v", name, mounts, volumes)
	}
	return pod.Containers[0]
}

// TestTopicJob: a Job that takes a request from the topic and publishes there.
func TestTopicJob(t *testing.T) {
	job := decode(t, "job.yaml")[0].(*batchv1.Job)
	c := checkPod(t, "job.yaml", job.Spec.Template.Spec)
	if job.GenerateName == "" || job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure ||
		!slices.Equal(c.Args[:2], []string{"trainer", "--once"}) || job.Spec.ActiveDeadlineSeconds == nil {
		t.Errorf("got %+v, args %v", job.Spec, c.Args)
	}
}

// TestDirectoryJob: the template of kubernetes.py, a Job that is given a directory and leaves its result there.
func TestDirectoryJob(t *testing.T) {
	job := decode(t, "training-job.yaml", "$NAME", "plumbline-m-1-head1-0123abcd", "$JOB_FILE",
		`"/var/lib/plumbline/trainer/jobs/m/job.json"`, "$DIR", `"/var/lib/plumbline"`)[0].(*batchv1.Job)
	c := checkPod(t, "training-job.yaml", job.Spec.Template.Spec)
	if job.Name != "plumbline-m-1-head1-0123abcd" || !c.Stdin || len(c.Args) != 1 ||
		!strings.HasSuffix(c.Args[0], "job.json") || c.VolumeMounts[0].MountPath != "/var/lib/plumbline" {
		t.Errorf("got %s, %+v", job.Name, c)
	}
	if b := job.Spec.BackoffLimit; b == nil || *b != 0 ||
		job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Error("the Job makes attempts of its own: the trainer counts them")
	}
}

// TestTrainer: the trainer that creates such Jobs may do so, and all that kubernetes.py asks for.
func TestTrainer(t *testing.T) {
	docs := decode(t, "trainer.yaml")
	account, role, binding, deployment := docs[0].(*corev1.ServiceAccount), docs[1].(*rbacv1.Role),
		docs[2].(*rbacv1.RoleBinding), docs[3].(*appsv1.Deployment)
	pod := deployment.Spec.Template
	checkPod(t, "trainer.yaml", pod.Spec)
	if binding.RoleRef.Name != role.Name || binding.Subjects[0].Name != account.Name ||
		pod.Spec.ServiceAccountName != account.Name {
		t.Error("role, account and pod are not bound to each other")
	}
	for k, v := range deployment.Spec.Selector.MatchLabels {
		if pod.Labels[k] != v {
			t.Errorf("label %s of the pods is %q, the selector wants %q", k, pod.Labels[k], v)
		}
	}
	allowed := func(group, resource, verb string) bool {
		return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) &&
				slices.Contains(r.Verbs, verb)
		})
	}
	for _, need := range [][3]string{{"batch", "jobs", "create"}, {"batch", "jobs", "get"}, {"batch", "jobs", "delete"},
		{"batch", "jobs", "watch"}, {"", "pods", "get"}, {"", "pods", "list"}, {"", "pods", "watch"}, {"", "pods/log",
			"get"}} {
		if !allowed(need[0], need[1], need[2]) {
			t.Errorf("not allowed: %v", need)
		}
	}
}

// TestDecodeIsStrict: a key that is not the API's is found.
func TestDecodeIsStrict(t *testing.T) {
	if err := yaml.UnmarshalStrict([]byte("spec: {backofLimit: 1}"), &batchv1.Job{}); err == nil ||
		!strings.Contains(err.Error(), "backofLimit") {
		t.Errorf("got %v", err)
	}
}
