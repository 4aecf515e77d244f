package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// used is what a process took.
type used struct{ processor, wall time.Duration }

func (u used) less(start used) used { return used{u.processor - start.processor, u.wall - start.wall} }

// clients are what is measured, the first is plumbline.
var clients = []string{"plumbline", "kafka-go", "franz-go", "perf-test", "python", "quixstreams"}

// bench is where everything is.
type bench struct {
	broker, plumbline, python, jars, dir, profiles string

	rate int // rows a second of event time
}

// measure runs a client over a stream, from its start to its end.
func (b *bench) measure(ctx context.Context, client string, s *stream) (used, error) {
	switch client {
	case "plumbline":
		return b.runPlumbline(ctx, s)
	case "python":
		if s.JSON {
			return b.script(ctx, "jsonconsumer.py", s)
		}
		return b.script(ctx, "consumer.py", s)
	case "quixstreams":
		return b.script(ctx, "quix.py", s)
	case "perf-test":
		all := used{}
		for _, topic := range s.topics() {
			u, err := b.perfTest(ctx, topic, s.count[topic])
			if err != nil {
				return all, err
			}
			all = used{all.processor + u.processor, all.wall + u.wall}
		}
		return all, nil
	}
	args := []string{client, b.broker}
	for _, topic := range s.topics() {
		args = append(args, fmt.Sprintf("%s=%d", topic, s.count[topic]))
	}
	self, err := os.Executable()
	if err != nil {
		return used{}, err
	}
	return finish(exec.CommandContext(ctx, self, args...))
}

func (b *bench) script(ctx context.Context, name string, s *stream) (used, error) {
	args := append([]string{"-B", "-W", "ignore", filepath.Join("bench/e2e", name), b.broker, fmt.Sprint(s.Rows)},
		s.topics()...)
	cmd := exec.CommandContext(ctx, b.python, args...)
	cmd.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1")
	return finish(cmd)
}

func (b *bench) perfTest(ctx context.Context, topic string, messages int64) (used, error) {
	return finish(exec.CommandContext(ctx, "java", "-cp", b.jars, "org.apache.kafka.tools.ConsumerPerformance",
		"--bootstrap-server", b.broker, "--topic", topic, "--messages", fmt.Sprint(messages),
		"--fetch-size", fmt.Sprint(8<<20)))
}

// finish runs a command to its end.
func finish(cmd *exec.Cmd) (used, error) {
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return used{}, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said.Bytes())
	}
	return usedBy(cmd, start), nil
}

func usedBy(cmd *exec.Cmd, start time.Time) used {
	return used{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(start)}
}

// settings are what a process is started with beside the stream's own.
type settings struct {
	name, dir, listen string
	interval          time.Duration // between checkpoints; 0: the default
	more              string        // sections of YAML
	unkeyed           bool          // plumbline splits the topics by id, as by default
	// beside is called when the process is ready, with what lasts until the end of its stream; may be nil.
	beside func(ctx context.Context, listen string)
}

// configuration is the default one but for names, and where labels and slices are.
func (b *bench) configuration(s *stream, x settings) string {
	var y strings.Builder
	fmt.Fprintf(&y, "kafka:\n  brokers: [%q]\n  replication: 1\n  partitions: %d\n", b.broker, partitions)
	fmt.Fprintf(&y, "topics:\n  keyed: %t\n", !x.unkeyed && !s.JSON)
	for _, t := range outputs {
		fmt.Fprintf(&y, "  %s: %s.%s\n", t, x.name, t)
	}
	logits := s.topic("logits")
	if s.JSON {
		logits = x.name + ".logits"
	}
	fmt.Fprintf(&y, "  logits: %s\n", logits)
	if s.JSON {
		fmt.Fprintf(&y, "  labels: %s.labels\ninputs:\n- {topic: %s, format: json}\n"+
			"- {topic: %s, format: json, rows: labels}\n", x.name, s.topic("logits"), s.topic("labels"))
	} else if s.Inline {
		y.WriteString("  labels: \"\"\n")
	} else {
		fmt.Fprintf(&y, "  labels: %s\n", s.topic("labels"))
	}
	fmt.Fprintf(&y, "group: %s\ncheckpoints:\n  dir: %q\n", x.name, filepath.Join(x.dir, "state"))
	if x.interval > 0 {
		fmt.Fprintf(&y, "  interval: %s\n", x.interval)
	}
	fmt.Fprintf(&y, "http:\n  listen: %q\n  pprof: %t\n", x.listen, b.profiles != "")
	if s.Keys > 1 {
		fmt.Fprintf(&y, "slices:\n  columns: [%s]\n  max_keys: %d\n", tenant, s.Keys)
	}
	return y.String() + x.more
}

// outputs are the topics that a process writes.
var outputs = []string{"panes", "snapshots", "calibrators", "alerts", "decisions", "calibrated", "deadletter"}

// process is plumbline as it runs.
type process struct {
	settings
	cmd   *exec.Cmd
	said  bytes.Buffer
	begun time.Time
}

// start starts plumbline on a stream, with its topics; interval and more are of x alone.
func (b *bench) start(ctx context.Context, s *stream, x settings) (*process, error) {
	var err error
	if x.dir, err = os.MkdirTemp(b.dir, "plumbline-"); err != nil {
		return nil, err
	}
	p := &process{settings: x}
	p.name = filepath.Base(p.dir)
	if p.listen, err = freePort(); err != nil {
		return nil, err
	}
	file := filepath.Join(p.dir, "plumbline.yaml")
	if err = os.WriteFile(file, []byte(b.configuration(s, p.settings)), 0o600); err != nil {
		return nil, err
	}
	if _, err = finish(exec.CommandContext(ctx, b.plumbline, "topics", "create", "-c", file)); err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, b.plumbline, "run", "-c", file)
	p.cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.begun = time.Now()
	return p, p.cmd.Start()
}

// end lets a process save its last checkpoint, or kills it after a failure.
func (p *process) end(failure error) (used, error) {
	defer os.RemoveAll(p.dir)
	if failure == nil {
		failure = p.cmd.Process.Signal(syscall.SIGTERM)
	} else {
		_ = p.cmd.Process.Kill()
	}
	if err := p.cmd.Wait(); failure != nil || err != nil {
		return used{}, fmt.Errorf("plumbline run: %w, %w\n%s", failure, err, p.said.Bytes())
	}
	return usedBy(p.cmd, p.begun), nil
}

// runPlumbline runs the program until it has drained the stream and saved its last checkpoint.
func (b *bench) runPlumbline(ctx context.Context, s *stream) (used, error) {
	p, err := b.start(ctx, s, settings{})
	if err != nil {
		return used{}, err
	}
	return p.end(b.drained(ctx, p.listen, s))
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// drained waits until all rows of a stream have been counted, and takes a profile of the way there.
func (b *bench) drained(ctx context.Context, listen string, s *stream) error {
	profiling, stop := context.WithCancel(ctx)
	defer stop()
	started := false
	limit := time.Now().Add(5 * time.Minute)
	for ; time.Now().Before(limit) && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		st, err := status(ctx, listen)
		if err != nil {
			continue
		}
		if n := st.Process.Counts; st.Process.Drained && n.Predictions >= s.Rows && n.Labelled >= s.Rows {
			return nil
		}
		if !started && b.profiles != "" && s.Rows > s.tiny().Rows {
			started = true
			go b.profile(profiling, listen, s)
		}
	}
	return fmt.Errorf("%s: not drained after 5 minutes, or interrupted", s.prefix)
}

// answer is of /api/v1/status.
type answer struct {
	Ready   bool
	Process struct {
		Drained bool
		Counts  struct{ Predictions, Labelled int64 }
	}
}

func status(ctx context.Context, listen string) (st answer, err error) {
	body, err := get(ctx, "http://"+listen+"/api/v1/status")
	if err == nil {
		err = json.Unmarshal(body, &st)
	}
	return st, err
}

// profile takes profiles of a second, one after the other, until ctx is done.
func (b *bench) profile(ctx context.Context, listen string, s *stream) {
	for i := 0; ctx.Err() == nil; i++ {
		err := b.profileOf(ctx, listen, fmt.Sprintf("%s.%d", s.name(), i), time.Second)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "no profile:", err)
			return
		}
	}
}

func (b *bench) profileOf(ctx context.Context, listen, name string, length time.Duration) error {
	body, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", listen, length.Seconds()))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.profiles, name+".pprof"), body, 0o600)
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// result is what the clients took for a cell, the least of all rounds; start-up is not in it.
type result struct {
	cell
	bytes int64
	took  map[string]used
}

// compare measures one cell: rounds of all clients in turn.
func (b *bench) compare(ctx context.Context, c cell, rounds int, which []string) (result, error) {
	r := result{cell: c, took: map[string]used{}}
	start, err := produce(ctx, b.broker, c.tiny(), b.rate)
	if err != nil {
		return r, err
	}
	defer start.remove(context.WithoutCancel(ctx), b.broker)
	s, err := produce(ctx, b.broker, c, b.rate)
	if err != nil {
		return r, err
	}
	defer s.remove(context.WithoutCancel(ctx), b.broker)
	r.bytes = s.bytes
	begun, whole := map[string]used{}, map[string]used{}
	for range rounds {
		for _, client := range which {
			for of, took := range map[*stream]map[string]used{start: begun, s: whole} {
				u, err := b.measure(ctx, client, of)
				if err != nil {
					return r, fmt.Errorf("%s of %s: %w", client, c.name(), err)
				}
				if had, ok := took[client]; ok {
					u = used{min(u.processor, had.processor), min(u.wall, had.wall)}
				}
				took[client] = u
			}
		}
	}
	for _, client := range which {
		r.took[client] = whole[client].less(begun[client])
	}
	return r, nil
}

// known reports whether all names are those of clients.
func known(names []string) error {
	for _, n := range names {
		if !slices.Contains(clients, n) {
			return fmt.Errorf("client %q: allowed are %s", n, strings.Join(clients, ", "))
		}
	}
	return nil
}
