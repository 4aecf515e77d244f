//go:build integration

package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// faultsYAML has everything on: windows of both kinds, slices, a rule, refits by period and on alarm, the calibrated
// stream.
const faultsYAML = `
slices: {columns: [device]}
stats: {resamples: 20}
sample: {rows_per_cell: 256, rows: 3000}
windows:
- {name: day, kind: time, size: 24h}
- {name: 10m, kind: time, size: 10m, slide: 5m}
- {name: last2000, kind: rows, rows: 2000}
rules:
- {name: ece, signal: calibrated, rows: 2000, min_rows: 1000, warmup_rows: 8500, fire: 0.05, clear: 0.03, for: 20s}
refit: {method: temperature, period: 300s, on_alarm: true, fresh_rows: 2000, min_rows: 1000, max_rows: 3000}
calibrated: {enabled: true, columns: top1}
`

// deployment is one set of topics, groups and checkpoints, and the processes that work on them.
type deployment struct {
	deployOptions
	t       *testing.T
	cluster *cluster
	prefix  string
	dir     string
	workers []*worker

	// For the table of scenarios.
	rows          int64
	began         time.Time
	events        []string
	took, drained time.Duration
}

type deployOptions struct {
	partitions int
	processes  int
	interval   time.Duration // between checkpoints
	store      string        // directory or topic
	state      string        // the directory; "" = one of the deployment's own
	memory     int           // bytes of a shard's waiting rows that are not on disk; 0 = all
	binary     string        // of the processes; "" = the one under test
	idle       time.Duration // after which an input is taken for idle; 0 = never, which alone makes results comparable
}

// worker is one of the processes: `plumbline run`, again and again.
type worker struct {
	d      *deployment
	number int
	listen string
	file   string
	log    string
	clock  string // holds what the process adds to its clock, where its binary can
	halt   string // while there is such a file, a process whose binary can stops itself

	mu    sync.Mutex
	cmd   *exec.Cmd
	done  chan struct{} // closed when cmd has ended
	asked bool          // to end
	exits []error       // ends that nobody asked for
}

// deploy makes the topics of a deployment and the configuration of its processes. What is left of it goes when the
// test ends.
func (s *suite) deploy(t *testing.T, o deployOptions) *deployment {
	t.Helper()
	d := &deployment{deployOptions: o, t: t, cluster: s.cluster, prefix: topicPrefix(t), dir: t.TempDir(),
		rows: s.input.total(), began: time.Now()}
	t.Cleanup(func() { s.tabulate(t, d) })
	if d.state == "" {
		d.state = filepath.Join(d.dir, "state")
	}
	if d.binary == "" {
		d.binary = binary
	}
	for i := range o.processes {
		name := filepath.Join(d.dir, fmt.Sprintf("worker-%d", i))
		w := &worker{d: d, number: i, listen: freePort(t), file: name + ".yaml", log: name + ".log", clock: name +
			".clock", halt: name + ".halt"}
		if err := os.WriteFile(w.file, []byte(d.yaml(w)), 0o600); err != nil {
			t.Fatal(err)
		}
		d.workers = append(d.workers, w)
	}
	runOK(t, "topics", "create", "-c", d.workers[0].file)
	t.Cleanup(func() {
		for _, w := range d.workers {
			w.kill()
			if t.Failed() {
				t.Logf("end of the log of worker %d:\n%s", w.number, w.tail())
			}
		}
		d.deleteTopics()
	})
	return d
}

var outputNames = []string{"panes", "snapshots", "calibrators", "alerts", "decisions", "calibrated", "deadletter"}

func (d *deployment) topic(name string) string { return d.prefix + "." + name }

func (d *deployment) topics() []string {
	all := []string{d.topic("logits"), d.topic("labels")}
	for _, n := range outputNames {
		all = append(all, d.topic(n))
	}
	if d.store == "topic" {
		all = append(all, d.topic("checkpoints"))
	}
	return all
}

func (d *deployment) yaml(w *worker) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kafka:\n  brokers: [\"%s\"]\n  replication: %d\n  partitions: %d\n",
		strings.Join(d.cluster.addrs, `", "`), clusterBrokers, d.partitions)
	b.WriteString("topics:\n  keyed: true\n")
	for _, name := range append([]string{"logits", "labels", "checkpoints"}, outputNames...) {
		fmt.Fprintf(&b, "  %s: %s\n", name, d.topic(name))
	}
	fmt.Fprintf(&b, "group: %s\n", d.prefix)
	fmt.Fprintf(&b, "checkpoints:\n  store: %s\n  dir: %q\n  interval: %s\n", d.store, d.state, d.interval)
	// Beside the checkpoints: what fills the disk of the one fills that of the other.
	fmt.Fprintf(&b, "join:\n  memory_bytes: %d\n  dir: %q\n", d.memory,
		filepath.Join(d.state, fmt.Sprintf("join-%d", w.number)))
	fmt.Fprintf(&b, "http:\n  listen: %q\n  pprof: true\n", w.listen)
	fmt.Fprintf(&b, "event_time: {idle_timeout: %s}\n", d.idle)
	b.WriteString(strings.TrimSpace(faultsYAML) + "\n")
	return b.String()
}

// start starts the process; its log goes on.
func (w *worker) start() {
	w.d.t.Helper()
	f, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.d.t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(w.d.binary, "run", "-c", w.file)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.d.dir, f, f
	cmd.Env = append(os.Environ(), "PLUMBLINE_CLOCK_JUMP="+w.clock, "PLUMBLINE_STOP="+w.halt)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := cmd.Start(); err != nil {
		w.d.t.Errorf("plumbline run: %v", err)
		return
	}
	w.cmd, w.done, w.asked = cmd, make(chan struct{}), false
	go w.watch(cmd, w.done)
}

// watch waits for the end of the process.
func (w *worker) watch(cmd *exec.Cmd, done chan struct{}) {
	err := cmd.Wait()
	w.mu.Lock()
	if !w.asked {
		if err == nil {
			err = errors.New("ended with code 0")
		}
		w.exits = append(w.exits, err)
	}
	w.mu.Unlock()
	close(done)
}

func (w *worker) ask(sig syscall.Signal) (done chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cmd == nil {
		return nil, nil
	}
	w.asked = true
	return w.done, w.cmd.Process.Signal(sig)
}

// kill is kill -9; one of a process that has ended does nothing.
func (w *worker) kill() {
	if done, _ := w.ask(syscall.SIGKILL); done != nil {
		<-done
	}
}

// pause is SIGSTOP, resume SIGCONT.
func (w *worker) pause() { w.signal(syscall.SIGSTOP) }

func (w *worker) resume() { w.signal(syscall.SIGCONT) }

func (w *worker) signal(sig syscall.Signal) {
	w.d.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.cmd.Process.Signal(sig); err != nil {
		w.d.t.Fatalf("%v to worker %d: %v\n%s", sig, w.number, err, w.tail())
	}
}

// stop is SIGTERM, which must end the process with code 0 within a bound.
func (w *worker) stop() {
	w.d.t.Helper()
	const bound = time.Minute
	done, err := w.ask(syscall.SIGTERM)
	if err != nil {
		w.d.t.Fatalf("SIGTERM to worker %d: %v\n%s", w.number, err, w.tail())
	}
	select {
	case <-done:
		if code := w.cmd.ProcessState.ExitCode(); code != 0 {
			w.d.t.Errorf("worker %d ended with code %d after SIGTERM, want 0\n%s", w.number, code, w.tail())
		}
	case <-time.After(bound):
		w.d.t.Fatalf("worker %d did not end within %v of SIGTERM\n%s", w.number, bound, w.tail())
	}
}

func (w *worker) tail() []byte {
	b, _ := os.ReadFile(w.log)
	return tail(b)
}

// logged is the number of lines of the log that hold a text.
func (w *worker) logged(text string) int {
	b, err := os.ReadFile(w.log)
	if err != nil && !os.IsNotExist(err) {
		w.d.t.Fatal(err)
	}
	return strings.Count(string(b), text)
}

// logged is the sum over the processes.
func (d *deployment) logged(text string) (n int) {
	for _, w := range d.workers {
		n += w.logged(text)
	}
	return n
}

func (d *deployment) start() {
	d.t.Helper()
	for _, w := range d.workers {
		w.start()
	}
}

func (d *deployment) stop() {
	d.t.Helper()
	for _, w := range d.workers {
		w.stop()
	}
}

// unexpected lists the processes that ended by themselves.
func (d *deployment) unexpected() []string {
	var all []string
	for _, w := range d.workers {
		w.mu.Lock()
		for _, err := range w.exits {
			all = append(all, fmt.Sprintf("worker %d: %v", w.number, err))
		}
		w.mu.Unlock()
	}
	return all
}

// ready waits until the processes have all tasks among them.
func (d *deployment) ready(limit time.Duration) {
	d.t.Helper()
	within(d.t, limit, "assign every task", func() error {
		v := d.view()
		return v.assigned(d.partitions)
	})
}

// without is the deployment as it is while one process is away.
func (d *deployment) without(away *worker) *deployment {
	others := *d
	others.workers = slices.DeleteFunc(slices.Clone(d.workers), func(w *worker) bool { return w == away })
	return &others
}

// checkpoints are the files under the directory, newest first in each task's.
func (d *deployment) checkpoints() map[string][]string {
	out := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(d.state, "*", "*", "*", "checkpoint-*"))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f, ".tmp") {
			out[filepath.Dir(f)] = append(out[filepath.Dir(f)], f)
		}
	}
	for _, fs := range out {
		slices.Sort(fs)
		slices.Reverse(fs)
	}
	return out
}
