package check

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the Go types of what the chart makes; nil where its operator's definition alone is at hand.
var kinds = map[string]func() any{
	"v1/ConfigMap":        func() any { return new(core.ConfigMap) },
	"v1/Service":          func() any { return new(core.Service) },
	"apps/v1/StatefulSet": func() any { return new(apps.StatefulSet) },
	"apps/v1/Deployment":  func() any { return new(apps.Deployment) },

	"policy/v1/PodDisruptionBudget":          func() any { return new(policy.PodDisruptionBudget) },
	"autoscaling/v2/HorizontalPodAutoscaler": func() any { return new(autoscaling.HorizontalPodAutoscaler) },
	"networking.k8s.io/v1/NetworkPolicy":     func() any { return new(networking.NetworkPolicy) },
	"monitoring.coreos.com/v1/ServiceMonitor": func() any {
		return new(monitoring.ServiceMonitor)
	},
	"monitoring.coreos.com/v1/PrometheusRule": func() any {
		return new(monitoring.PrometheusRule)
	},
	"keda.sh/v1alpha1/ScaledObject":       nil,
	"kafka.strimzi.io/v1beta2/KafkaTopic": nil,
	"kafka.strimzi.io/v1beta2/KafkaUser":  nil,
}

// render is `helm template` with the given files of values.
func render(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	helm := os.Getenv("HELM")
	if helm == "" {
		t.Skip("not run: HELM names no helm; make deploy-check sets it")
	}
	chart := root + "/deploy/helm/plumbline"
	var errs bytes.Buffer
	cmd := exec.Command(helm, append([]string{"template", "release", chart, "--kube-version", "1.33.0"}, args...)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, errs.String())
	}
	return out, err
}

// TestChart: every object decodes strictly into its type, and the configuration passes plumbline's own check.
func TestChart(t *testing.T) {
	operators := definitions(t)
	for name, c := range map[string]struct {
		args []string
		want map[string]int
	}{
		"default": {nil, map[string]int{"StatefulSet": 2, "PodDisruptionBudget": 2, "Service": 2, "ConfigMap": 1}},
		"all": {[]string{"-f", root + "/deploy/helm/plumbline/ci/full-values.yaml"}, map[string]int{"StatefulSet": 2,
			"Deployment": 1, "Service": 3, "HorizontalPodAutoscaler": 1, "ScaledObject": 1, "NetworkPolicy": 1,
			"ServiceMonitor": 1, "PrometheusRule": 1, "KafkaTopic": 12, "KafkaUser": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := render(t, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, doc := range strings.Split(string(out), "\n---\n") {
				if kind := object(t, []byte(doc), operators); kind != "" {
					got[kind]++
				}
			}
			for kind, n := range c.want {
				if got[kind] != n {
					t.Errorf("%d of %s, want %d", got[kind], kind, n)
				}
			}
		})
	}
}

func object(t *testing.T, doc []byte, operators map[string]definition) (kind string) {
	t.Helper()
	var meta struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(doc, &meta); err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	if meta.Kind == "" {
		return ""
	}
	make, known := kinds[meta.APIVersion+"/"+meta.Kind]
	if !known {
		t.Errorf("%s/%s: no type for it", meta.APIVersion, meta.Kind)
	}
	if d, ok := operators[meta.APIVersion+"/"+meta.Kind]; ok {
		d.check(t, meta.Kind, doc)
	} else if make == nil && len(operators) > 0 {
		t.Errorf("%s: its operator's definition is not there", meta.Kind)
	}
	if make == nil {
		return meta.Kind
	}
	v := make()
	if err := yaml.UnmarshalStrict(doc, v); err != nil {
		t.Errorf("%s: %v", meta.Kind, err)
	}
	switch o := v.(type) {
	case *core.ConfigMap:
		checkConfig(t, o.Data["plumbline.yaml"])
	case *apps.StatefulSet:
		checkPod(t, o.Name, &o.Spec.Template.Spec)
	case *apps.Deployment:
		checkPod(t, o.Name, &o.Spec.Template.Spec)
	}
	return meta.Kind
}

func checkConfig(t *testing.T, text string) {
	t.Helper()
	program := root + "/dist/bin/linux/amd64/plumbline"
	if p := os.Getenv("PLUMBLINE_BIN"); p != "" {
		program = p
	}
	file := t.TempDir() + "/plumbline.yaml"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "config", "check", file).CombinedOutput(); err != nil {
		t.Errorf("plumbline.yaml: %v: %s", err, out)
	}
}

// checkPod: it runs as nobody on a read-only root, has three probes and bounds, and mounts what it names.
func checkPod(t *testing.T, name string, p *core.PodSpec) {
	t.Helper()
	volumes := map[string]bool{"work": true} // of a StatefulSet's claims
	for _, v := range p.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range append(p.InitContainers, p.Containers...) {
		s := c.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation {
			t.Errorf("%s/%s: root is writable, or privileges grow", name, c.Name)
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s/%s: no bounds", name, c.Name)
		}
		_, gpu := c.Resources.Limits["nvidia.com/gpu"]
		want := map[bool]string{true: "plumbline-gpu", false: "plumbline"}[gpu]
		if !strings.HasPrefix(c.Image, want+":") {
			t.Errorf("%s/%s: has the image %s, want %s", name, c.Name, c.Image, want)
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s/%s: mounts %s, which is no volume", name, c.Name, m.Name)
			}
		}
	}
	for _, c := range p.Containers {
		if c.StartupProbe == nil || c.ReadinessProbe == nil || c.LivenessProbe == nil {
			t.Errorf("%s/%s: a probe is missing", name, c.Name)
		}
	}
	if p.SecurityContext == nil || p.SecurityContext.RunAsNonRoot == nil || !*p.SecurityContext.RunAsNonRoot {
		t.Errorf("%s: may run as root", name)
	}
}

// TestChartHosts: the services' names and those of their pods are names of the page: each of several pods shows its own
// models.
func TestChartHosts(t *testing.T) {
	out, err := render(t, "--namespace", "ns")
	if err != nil {
		t.Fatal(err)
	}
	_, config, _ := strings.Cut(string(out), "plumbline.yaml: |")
	for _, part := range []string{"-models\n", "-models'\n", "-models.ns.svc\n", "-models.ns.svc'\n", "-shards'\n",
		"-shards.ns.svc.cluster.local'\n"} {
		if !strings.Contains(config, part) {
			t.Errorf("no host that ends with %q in %s", part, config)
		}
	}
}

// TestChartScrapesBehindTLS: where the page has TLS and users, the monitor says with what Prometheus asks.
func TestChartScrapesBehindTLS(t *testing.T) {
	out, err := render(t, "-f", root+"/deploy/helm/plumbline/ci/full-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(out), "\n---\n") {
		if !strings.Contains(doc, "kind: ServiceMonitor") {
			continue
		}
		m := new(monitoring.ServiceMonitor)
		if err := yaml.UnmarshalStrict([]byte(doc), m); err != nil {
			t.Fatal(err)
		}
		if e := m.Spec.Endpoints[0]; e.Scheme != "https" || e.BasicAuth == nil {
			t.Errorf("the monitor asks by %+v", e)
		}
	}
	if _, err := render(t, "--set", "serviceMonitor.enabled=true,http.webConfigSecret=web"); err == nil {
		t.Error("a monitor without a scheme for a page with TLS is made")
	}
}

// TestChartRefuses: values that cannot work fail when the chart is rendered.
func TestChartRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"shards.replicas=13": "a pod without a partition is never ready",
		"models.replicas=13": "models: at most config.kafka.partitions pods",
		"shards.autoscaling.kind=keda,shards.autoscaling.max=13": "a pod without a partition is never ready",
		"trainer.enabled=true":          "archive.existingClaim must name",
		"strimzi.topics=true":           "strimzi.cluster must name",
		"shards.autoscaling.kind=magic": "shards",
		"shards.memoryMiB=1":            "memoryMiB",
	} {
		if _, err := render(t, "--set", args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
}

// TestChartTopics: a topic whose name is empty is not made, and the others are.
func TestChartTopics(t *testing.T) {
	out, err := render(t, "--set", "strimzi.cluster=kafka,strimzi.topics=true,config.topics.labels=,"+
		"config.topics.decisions=,config.topics.panes=sums")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, doc := range strings.Split(string(out), "\n---\n") {
		var topic struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct{ TopicName string }
		}
		if err := yaml.Unmarshal([]byte(doc), &topic); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if topic.Kind == "KafkaTopic" && topic.Metadata.Name == topic.Spec.TopicName {
			names = append(names, strings.TrimPrefix(topic.Spec.TopicName, "plumbline."))
		}
	}
	slices.Sort(names)
	const want = "alerts calibrated calibrators checkpoints deadletter finetune heads logits snapshots sums"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("topics %s, want %s", got, want)
	}
}

// TestChartUser: the KafkaUser may do with each topic what its processes need, and no more.
func TestChartUser(t *testing.T) {
	const all = "Create Describe DescribeConfigs Read Write"
	const use, read = "Describe DescribeConfigs Read Write", "Describe DescribeConfigs Read"
	for name, c := range map[string]struct {
		set  string
		want map[string]string
	}{
		"default": {"", map[string]string{"plumbline.logits": all, "plumbline.plumbline.logits-by-id-12": all,
			"other": ""}},
		"topics made by others": {"createTopics=false,config.group=calib", map[string]string{"plumbline.panes": use,
			"calib.plumbline.logits-by-id-12": all, "other": ""}},
		"topics named": {"createTopics=false,config.topics.logits=scores,config.topics.keyed=true," +
			"config.inputs[0].topic=rows,config.inputs[0].request.topic=asked",
			map[string]string{"scores": use, "rows": read, "asked": read, "plumbline.panes": all,
				"plumbline.scores-by-id-12": all, "scores2": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			args := "strimzi.cluster=kafka,strimzi.user=app"
			if c.set != "" {
				args += "," + c.set
			}
			out, err := render(t, "--set", args)
			if err != nil {
				t.Fatal(err)
			}
			for topic, want := range c.want {
				if got := rights(t, string(out), topic); got != want {
					t.Errorf("%s: may %q, want %q", topic, got, want)
				}
			}
		})
	}
}

// rights are what the rendered KafkaUser may do with a topic.
func rights(t *testing.T, rendered, topic string) string {
	t.Helper()
	var ops []string
	for _, doc := range strings.Split(rendered, "\n---\n") {
		var user struct {
			Kind string
			Spec struct {
				Authorization struct {
					ACLs []struct {
						Resource   struct{ Type, Name, PatternType string }
						Operations []string
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(doc), &user); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		for _, acl := range user.Spec.Authorization.ACLs {
			r := acl.Resource
			if user.Kind == "KafkaUser" && r.Type == "topic" && (r.Name == topic ||
				r.PatternType == "prefix" && strings.HasPrefix(topic, r.Name)) {
				ops = append(ops, acl.Operations...)
			}
		}
	}
	slices.Sort(ops)
	return strings.Join(slices.Compact(ops), " ")
}
