package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// TestStack runs the services of the compose file without containers: Kafka from Maven, Prometheus and Alertmanager
// from Debian, plumbline in the root that the image has. Each has the command, the environment and the files that the
// compose file gives it, at the places where it mounts them, in a network of their own where every service's name is
// the loopback address. The producer sends fewer rows, faster.
//
// It then looks for the alarm on the model that drifted, which Alertmanager must have taken, and asks Prometheus every
// query of the dashboards over what `plumbline demo` and the stack have exported. Last, the state is copied to the S3
// store, lost, and brought back from there.
func TestStack(t *testing.T) {
	if testing.Short() {
		t.Skip("not run: it takes a minute")
	}
	if os.Getenv("PLUMBLINE_STACK") == "" {
		enter(t)
		return
	}
	begin := time.Now()
	s := &stack{t: t, project: project(t), dir: t.TempDir()}
	s.start("kafka")
	s.until("Kafka answers", func() error { return connect("kafka:9092") })
	if err := s.command("topics").Run(); err != nil {
		t.Fatalf("topics: %v\n%s", err, s.logs())
	}
	for _, name := range []string{"prometheus", "alertmanager"} {
		s.start(name)
	}
	process := s.start("plumbline")
	fast := s.fastPrometheus()
	s.demo()
	s.until("plumbline is ready", func() error { return get("http://plumbline:8080/-/ready", nil) })
	s.produce()
	s.until("an alarm on the model fires", func() error {
		return seen(fast, `max_over_time(plumbline_alert_state{model="demo",state="firing"}[10m]) == 1`)
	})
	s.until("Alertmanager takes it", func() error {
		return seen(fast, `plumbline_notifications_total{to="alertmanager",outcome="ok"} > 0`)
	})
	s.until("Prometheus scrapes plumbline", func() error { return seen(prometheus, `up{job="plumbline"} == 1`) })
	s.until("Prometheus judges the rules", func() error {
		return seen(prometheus, `plumbline:events:max{event="predictions"} > 0`)
	})
	s.until("Prometheus knows Alertmanager", func() error {
		var answer struct {
			Data struct{ ActiveAlertmanagers []any }
		}
		err := get(prometheus+"/api/v1/alertmanagers", &answer)
		if err == nil && len(answer.Data.ActiveAlertmanagers) != 1 {
			err = fmt.Errorf("%d are active", len(answer.Data.ActiveAlertmanagers))
		}
		return err
	})
	s.dashboards(fast)
	if dir := os.Getenv("PLUMBLINE_PICTURES"); dir != "" {
		pictures(t, dir, fast, begin)
	}
	s.backups(process, fast)
}

const prometheus = "http://prometheus:9090"

// enter runs the test again in a network of its own.
func enter(t *testing.T) {
	tools := []string{"bwrap", "java", "prometheus", "prometheus-alertmanager", "rclone", versitygw()}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("not run: no %s; make deploy-tools, and Debian for the rest", tool)
		}
	}
	names := "127.0.0.1 localhost"
	if host, err := os.Hostname(); err == nil {
		names += " " + host
	}
	for _, n := range project(t).ServiceNames() {
		names += " " + n
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte(names+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bwrap", "--unshare-net", "--cap-add", "ALL", "--dev-bind", "/", "/",
		"--ro-bind", hosts, "/etc/hosts", "--die-with-parent", "--chdir", here,
		self, "-test.run=^TestStack$", "-test.v", "-test.timeout=10m")
	queries := filepath.Join(t.TempDir(), "queries")
	text, err := exec.Command("go", "run", "../dashboards", "-queries").Output()
	if err == nil {
		err = os.WriteFile(queries, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "PLUMBLINE_STACK=inside", "PLUMBLINE_HOSTS_FILE="+hosts,
		"PLUMBLINE_QUERIES="+queries)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skip("not run")
	}
}

// versitygw is the S3 server's program.
func versitygw() string { return cmp.Or(os.Getenv("VERSITYGW"), "versitygw") }

type stack struct {
	t       *testing.T
	project *types.Project
	dir     string
}

// command is a service's process: its root has what its image would have, as far as it is needed.
func (s *stack) command(name string) *exec.Cmd {
	s.t.Helper()
	c := s.project.Services[name]
	base := filepath.Join(s.dir, name)
	system, err := os.MkdirTemp(s.mkdir("roots"), name) // each time another one, as a container has
	if err != nil {
		s.t.Fatal(err)
	}
	args := []string{"--bind", system, "/", "--proc", "/proc", "--dev", "/dev", "--die-with-parent",
		"--tmpfs", "/tmp", "--ro-bind", os.Getenv("PLUMBLINE_HOSTS_FILE"), "/etc/hosts", "--clearenv"}
	var program []string
	switch name {
	case "kafka":
		jars, err := filepath.EvalSymlinks(root + "/deploy/kafka/target/lib")
		if err != nil {
			s.t.Fatalf("%v; deploy/kafka/kafka.sh start fetches the broker", err)
		}
		args = append(args, s.system()...)
		const java17 = "/etc/java-17-openjdk"
		args = append(args, "--ro-bind", jars, "/jars", "--ro-bind", s.abs("deploy/kafka"), "/script",
			"--ro-bind", java17, java17)
		jvm, err := exec.LookPath("java")
		if err == nil {
			jvm, err = filepath.EvalSymlinks(jvm)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		java := jvm + " -Xmx384m -cp '/jars/*' -Dlog4j2.configurationFile=file:/script/log4j2.yaml "
		const file = "/mnt/shared/config/server.properties"
		format := java + "kafka.tools.StorageTool format --ignore-formatted -t 4L6g3nShT-eMCtK--X86sw -c " + file
		program = []string{"/bin/sh", "-c", format + " && exec " + java + "kafka.Kafka " + file}
	case "prometheus":
		args, program = append(args, s.system()...), []string{"/usr/bin/prometheus"}
	case "alertmanager":
		args, program = append(args, s.system()...), []string{"/usr/bin/prometheus-alertmanager"}
	case "upload", "download":
		args, program = append(args, s.system()...), []string{"/usr/bin/rclone"}
	case "s3":
		gateway, err := exec.LookPath(versitygw())
		if err != nil {
			s.t.Fatal(err)
		}
		args, program = append(args, "--ro-bind", gateway, "/versitygw"), []string{"/versitygw"}
	default:
		args = append(args, "--ro-bind", s.abs("deploy/docker/root/etc/plumbline"), "/etc/plumbline",
			"--ro-bind", s.abs("deploy/docker/root/etc/passwd"), "/etc/passwd",
			"--ro-bind", s.program(), "/usr/bin/plumbline",
			"--dir", "/var/lib/plumbline", "--chdir", "/var/lib/plumbline")
		if name == "plumbline" {
			args = append(args, "--ro-bind", s.alarmFirst(), "/etc/plumbline/plumbline.yaml")
		}
		program = []string{"/usr/bin/plumbline"}
	}
	for _, v := range c.Volumes {
		from := v.Source
		if v.Type == types.VolumeTypeVolume {
			from = s.mkdir("volumes", v.Source)
		}
		args = append(args, map[bool]string{true: "--ro-bind", false: "--bind"}[v.ReadOnly], from, v.Target)
	}
	for k, v := range c.Environment {
		if v != nil {
			args = append(args, "--setenv", k, *v)
		}
	}
	args = append(args, "--setenv", "PATH", "/usr/bin:/bin")
	cmd := exec.Command("bwrap", append(append(args, program...), c.Command...)...)
	log, err := os.OpenFile(base+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

// system is what programs of Debian need.
func (s *stack) system() []string {
	return []string{"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
		"--symlink", "usr/lib64", "/lib64"}
}

// program is that of `make release-binaries` for this machine.
func (s *stack) program() string { return s.abs("dist/bin/linux/" + runtime.GOARCH + "/plumbline") }

func (s *stack) abs(path string) string {
	s.t.Helper()
	out, err := filepath.Abs(filepath.Join(root, path))
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := os.Stat(out); err != nil {
		s.t.Fatalf("%v; make release-binaries", err)
	}
	return out
}

// alarmFirst is the image's configuration without first answers: one that comes a pane before the alarm inhibits it, as
// depends on where in a pane the drift begins.
func (s *stack) alarmFirst() string {
	s.t.Helper()
	b, err := os.ReadFile(s.abs("deploy/docker/root/etc/plumbline/plumbline.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.mkdir("etc"), "plumbline.yaml")
	if err := os.WriteFile(path, append(b, "\nrefit:\n  first_answer: false\n"...), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *stack) mkdir(parts ...string) string {
	s.t.Helper()
	dir := filepath.Join(append([]string{s.dir}, parts...)...)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// run starts a process that ends with the test.
func (s *stack) run(cmd *exec.Cmd) {
	s.t.Helper()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

func (s *stack) start(name string) *exec.Cmd {
	cmd := s.command(name)
	s.run(cmd)
	return cmd
}

// produce is the producer with fewer rows, at four times the rate: half a minute calibrated, then overconfident for
// longer than anything waits. An alarm is raised by rows, and a stream that ends leaves its last windows open.
func (s *stack) produce() {
	s.t.Helper()
	cmd := s.command("producer")
	for i, arg := range cmd.Args {
		switch arg {
		case "--rate", "--event-rate":
			cmd.Args[i+1] = "400"
		case "--repeat":
			cmd.Args[i+1] = "8"
		}
	}
	const drifted = "/stream/overconfident.csv"
	i := slices.Index(cmd.Args, drifted)
	cmd.Args = slices.Insert(cmd.Args, i, slices.Repeat([]string{drifted}, 4)...)
	s.run(cmd)
}

// demo runs the demo beside the stack: it also refits and trains.
func (s *stack) demo() {
	s.t.Helper()
	s.run(exec.Command(s.program(), "demo", "--for", "30s", "--listen", "127.0.0.1:8090"))
}

// fastPrometheus is a second one that scrapes each second, for the dashboards.
func (s *stack) fastPrometheus() (base string) {
	s.t.Helper()
	const conf = `
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: plumbline
    static_configs: [{targets: ["127.0.0.1:8090", "plumbline:8080"]}]
`
	file := filepath.Join(s.dir, "fast.yml")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.run(exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+s.mkdir("fast"),
		"--web.listen-address=127.0.0.1:9190"))
	return "http://127.0.0.1:9190"
}

// dashboards asks every query of the dashboards until each has had data.
func (s *stack) dashboards(base string) {
	s.t.Helper()
	out, err := os.ReadFile(os.Getenv("PLUMBLINE_QUERIES"))
	if err != nil {
		s.t.Fatal(err)
	}
	begin := time.Now().Add(-5 * time.Minute)
	missing := strings.Split(strings.TrimSpace(string(out)), "\n")
	all := len(missing)
	end := time.Now().Add(2 * time.Minute)
	for len(missing) > 0 && time.Now().Before(end) {
		missing = slices.DeleteFunc(missing, func(q string) bool { return hasData(base, q, begin) })
		time.Sleep(time.Second)
	}
	for _, q := range missing {
		s.t.Errorf("no data: %s", q)
	}
	s.t.Logf("%d of %d queries of the dashboards return data", all-len(missing), all)
}

func hasData(base, query string, begin time.Time) bool {
	var answer struct {
		Data struct {
			Result []struct{ Values [][2]any }
		}
	}
	q := url.Values{"query": {query}, "step": {"1"}, "start": {strconv.FormatInt(begin.Unix(), 10)},
		"end": {strconv.FormatInt(time.Now().Unix(), 10)}}
	err := get(base+"/api/v1/query_range?"+q.Encode(), &answer)
	return err == nil && len(answer.Data.Result) > 0
}

func seen(base, query string) error {
	var answer struct{ Data struct{ Result []any } }
	err := get(base+"/api/v1/query?"+url.Values{"query": {query}}.Encode(), &answer)
	if err == nil && len(answer.Data.Result) == 0 {
		err = errors.New("no result")
	}
	return err
}

func connect(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

func get(address string, answer any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", address, resp.Status, body)
	}
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(body, answer)
}

// until waits for a thing to be so, two minutes at most.
func (s *stack) until(what string, so func() error) {
	s.t.Helper()
	begin := time.Now()
	for {
		err := so()
		if err == nil {
			s.t.Logf("%s after %.1f s", what, time.Since(begin).Seconds())
			return
		}
		if time.Since(begin) > 2*time.Minute {
			s.t.Fatalf("%s: %v\n%s", what, err, s.logs())
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// logs are the last lines of every service.
func (s *stack) logs() string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		const last = 1500
		fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(f), text[max(0, len(text)-last):])
	}
	return b.String()
}
