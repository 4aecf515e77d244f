//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/faulty"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/pipeline/record"
)

func init() {
	hostile["poison-panic"] = func(t *testing.T, a *attack) {
		a.Input = "two records, one after the other, at which the decoder panics"
		a.Before = "the process ended at it, again and again, for ever"
		poisonRecord(t, a, poison{[]byte(faulty.PanicMark), 2, 1})
	}
	hostile["poison-process-dies"] = func(t *testing.T, a *attack) {
		a.Input, a.Before = "a record at which the process dies", "the process died at it, again and again, for ever"
		const starts = 5 // the first may know nothing, three count, one goes on
		poisonRecord(t, a, poison{[]byte(faulty.ExitMark), 1, starts})
	}
	hostile["poison-damaged-task"] = poisonDamaged
	hostile["poison-full-disk"] = poisonFullDisk
}

// tended is `plumbline run` that is started again whenever it ends.
type tended struct {
	t      *testing.T
	s      settings
	binary string
	log    string

	mu       sync.Mutex
	cmd      *exec.Cmd
	starts   int
	stopping bool
	over     chan struct{}
}

// tend starts a process until the test ends.
func tend(t *testing.T, s settings, binary string) *tended {
	t.Helper()
	p := &tended{t: t, s: s, binary: binary, log: filepath.Join(t.TempDir(), "run.log"), over: make(chan struct{})}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	go p.tend()
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if b, _ := os.ReadFile(p.log); t.Failed() {
			t.Logf("end of the log of %s:\n%s", s.listen, tail(b))
		}
	})
	return p
}

func (p *tended) start() error {
	f, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = exec.Command(p.binary, "run", "-c", p.s.file)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	p.starts++
	return p.cmd.Start()
}

func (p *tended) tend() {
	defer close(p.over)
	for {
		_ = p.cmd.Wait()
		p.mu.Lock()
		stopping := p.stopping
		p.mu.Unlock()
		if stopping || p.start() != nil {
			return
		}
	}
}

// end ends the process for good.
func (p *tended) end(signal syscall.Signal) {
	p.mu.Lock()
	p.stopping = true
	_ = p.cmd.Process.Signal(signal)
	p.mu.Unlock()
	<-p.over
}

// logged is the number of lines of the log that hold a text.
func (p *tended) logged(text string) int {
	b, _ := os.ReadFile(p.log)
	return strings.Count(string(b), text)
}

// poisonStatus is what /api/v1/status says of failures.
type poisonStatus struct {
	NotReady string `json:"not_ready_because"`
	Process  struct {
		Drained bool   `json:"drained"`
		Counts  counts `json:"counts"`
		Failing []struct {
			Task      string `json:"task"`
			Partition int    `json:"partition"`
			Times     int    `json:"times"`
			At        *struct {
				Offset int64 `json:"offset"`
			} `json:"at"`
			Cause string `json:"cause"`
		} `json:"failing"`
		Skipped []json.RawMessage                    `json:"skipped"`
		Models  map[string]string                    `json:"state_hash_by_model"`
		Lag     map[string]map[string]map[string]any `json:"lag"`
	} `json:"process"`
}

func (p *tended) status() (st poisonStatus, err error) {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + p.s.listen + "/api/v1/status")
	if err != nil {
		return st, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return st, err
	}
	return st, json.Unmarshal(body, &st)
}

// failures is how many times tasks of the process have failed.
func (p *tended) failures() (n int) {
	p.t.Helper()
	resp, err := http.Get("http://" + p.s.listen + "/metrics")
	if err != nil {
		p.t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Error(err)
	}
	for line := range strings.Lines(string(body)) {
		var k int
		name, value, _ := strings.Cut(line, " ")
		if strings.HasPrefix(name, "plumbline_task_failures_total") {
			if _, err := fmt.Sscan(value, &k); err != nil {
				p.t.Error(err)
			}
			n += k
		}
	}
	return n
}

// poisonStream is a good stream of 10,000 rows.
func poisonStream(t *testing.T, s settings) []kafka.Message {
	t.Helper()
	src, err := loadRows(t, "c10jpeg_resnet_logits.npz", "resnet20", 10).Open(feed.Order{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.New(src, feed.Options{Model: "net", Version: "1", Partitions: partitions, EventRate: 100,
		Start: start.UnixNano(), DelayMax: 30 * time.Second, Batch: 4, Seed: 5, End: true})
	if err != nil {
		t.Fatal(err)
	}
	msgs, _, _ := feedMessages(t, f, s, math.MaxInt)
	return msgs
}

// goodNumbers checks that the numbers of the stream are those of the file.
func goodNumbers(t *testing.T, s settings) bool {
	t.Helper()
	snaps := latest(t, s)
	i := slices.IndexFunc(snaps, func(s record.Snapshot) bool {
		return s.Model == "net" && s.Slice == "" && s.Window.Name == "day"
	})
	if i < 0 {
		t.Error("no snapshot of model net")
		return false
	}
	compareOffline(t, snaps[i], realdata.File(t, "c10jpeg_resnet_logits.npz")+":resnet20")
	return !t.Failed()
}

// drainAll waits until processes have counted the whole stream together and are drained, and one of them has the model:
// a process that dies before it knows its number in the group keeps the model's partition until its session is over.
func drainAll(t *testing.T, ps ...*tended) (letters map[string]int64) {
	t.Helper()
	within(t, 3*time.Minute, "drain", func() error {
		var n int64
		letters = map[string]int64{}
		modelled := false
		for _, p := range ps {
			st, err := p.status()
			if err != nil {
				return err
			}
			if !st.Process.Drained {
				return fmt.Errorf("%s is not drained: %s", p.s.listen, st.NotReady)
			}
			n += min(st.Process.Counts.Predictions, st.Process.Counts.Labels)
			modelled = modelled || st.Process.Models["net"] != ""
			for reason, k := range st.Process.Counts.DeadLetters {
				letters[reason] += k
			}
		}
		if n < streamRows || !modelled {
			return fmt.Errorf("%d rows, some process has the model: %t", n, modelled)
		}
		return nil
	})
	return letters
}

var faultyBinary = sync.OnceValues(func() (string, error) {
	if name := os.Getenv("PLUMBLINE_FAULTY_BIN"); name != "" {
		return name, nil
	}
	name := filepath.Join(filepath.Dir(binary), "plumbline-faulty")
	build := exec.Command("go", "build", "-tags", "faulty", "-o", name, "./cmd/plumbline")
	build.Dir = root
	out, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return name, err
})

// poison is records of a value, and how often a process may be started because of them.
type poison struct {
	value      []byte
	records    int
	mostStarts int
}

// poisonRecord sends records that end their task, or the process, in the middle of a good stream: they are skipped
// after three times each, with a dead letter and a decision that name them, and all else counts. A replay skips
// them, too.
func poisonRecord(t *testing.T, a *attack, of poison) {
	bin, err := faultyBinary()
	if err != nil {
		t.Fatal(err)
	}
	s := configure(t, garbageConfig)
	msgs := poisonStream(t, s)
	p := tend(t, s, bin)
	half := len(msgs) / 2
	kafkatest.Write(t, brokers, msgs[:half]...)
	begin := time.Now()
	bad := kafka.Message{Topic: s.topic("logits"), Partition: 1, Value: of.value, Time: msgs[half].Time}
	kafkatest.Write(t, brokers, append(slices.Repeat([]kafka.Message{bad}, of.records), msgs[half:]...)...)
	letters := drainAll(t, p)
	a.Lag = fmt.Sprintf("%.0f s, then none", time.Since(begin).Seconds())
	if letters["poison"] != int64(of.records) || len(letters) != 1 {
		t.Errorf("dead letters %v, want %d of reason poison", letters, of.records)
	}
	st, err := p.status()
	if err != nil || len(st.Process.Skipped) != of.records || len(st.Process.Failing) != 0 || st.NotReady != "" {
		t.Errorf("status %+v, %v, want records skipped and nothing failing", st, err)
	}
	a.RSS = int64(residentMB(t, p.cmd.Process.Pid)) << 20
	a.Restart = p.failures() + p.starts - 1
	p.end(syscall.SIGTERM)
	if p.starts > of.mostStarts {
		t.Errorf("%d starts of the process, want %d at most", p.starts, of.mostStarts)
	}
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("deadletter")) {
		a.Letters += int64(len(m.Value) + len(m.Key))
		for _, h := range m.Headers {
			a.Letters += int64(len(h.Key) + len(h.Value))
		}
		t.Logf("dead letter: %s", m.Headers)
	}
	a.Exact = goodNumbers(t, s)
	skips := 0
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("decisions")) {
		if d, err := record.Decode[record.Decision](m.Value); err == nil && d.Kind == record.DecisionSkip {
			skips++
		}
	}
	if skips != of.records {
		t.Errorf("%d decisions to skip, want %d", skips, of.records)
	}
	if live, again := st.Process.Models["net"], replayed(t, s, bin); again["net"] != live || live == "" {
		t.Errorf("a replay's state is %v, want that of the live run, %s", again, live)
	}
}

// poisonDamaged damages every checkpoint of one task of three processes: that task alone stands, and says why; the
// others go on. Once the checkpoint is back, everything counts.
func poisonDamaged(t *testing.T, a *attack) {
	a.Input, a.Before = "every checkpoint of one task of three processes damaged", "all three processes ended"
	s := settings{prefix: topicPrefix(t), listen: freePort(t), state: filepath.Join(t.TempDir(), "state")}
	s.file = s.write(t, garbageConfig)
	runOK(t, "topics", "create", "-c", s.file)
	var each []settings
	for range 3 {
		one := s
		one.listen = freePort(t)
		one.file = one.write(t, garbageConfig)
		each = append(each, one)
	}
	msgs := poisonStream(t, s)
	half := len(msgs) / 2
	kafkatest.Write(t, brokers, msgs[:half]...)
	one := tend(t, each[0], binary)
	within(t, time.Minute, "take the first half", func() error {
		st, err := one.status()
		if err == nil && (st.Process.Counts.Predictions == 0 || !st.Process.Drained) {
			err = fmt.Errorf("%d rows", st.Process.Counts.Predictions)
		}
		return err
	})
	one.end(syscall.SIGTERM)
	task := filepath.Join(s.state, s.prefix, "shards", "shard-00001")
	if err := os.CopyFS(task+".kept", os.DirFS(task)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(task, "checkpoint-*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d checkpoints in %s, %v", len(files), task, err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 100); err != nil {
			t.Fatal(err)
		}
	}
	var ps []*tended
	for i := range each {
		ps = append(ps, tend(t, each[i], binary))
	}
	begin := time.Now()
	kafkatest.Write(t, brokers, msgs[half:]...)
	var failing *tended
	within(t, time.Minute, "go on but for one task", func() error {
		names, behind := 0, 0
		for _, p := range ps {
			st, err := p.status()
			if err != nil {
				return err
			}
			for _, f := range st.Process.Failing {
				names++
				failing = p
				if f.Task != "shard" || f.Partition != 1 || !strings.Contains(st.NotReady, "shard 1 has failed") ||
					!strings.Contains(f.Cause, "no checkpoint can be used") {
					t.Fatalf("failing %+v, not ready because %q", f, st.NotReady)
				}
			}
			for name, inputs := range st.Process.Lag {
				for _, l := range inputs {
					if l["offsets"] != 0.0 && name != "shard-1" {
						behind++
					}
				}
			}
			if len(st.Process.Lag) == 0 {
				behind++
			}
		}
		if names != 1 || behind > 0 {
			return fmt.Errorf("%d tasks fail, %d others are behind", names, behind)
		}
		return nil
	})
	a.Lag = fmt.Sprintf("others: %.0f s, then none", time.Since(begin).Seconds())
	for _, p := range ps {
		if p.starts != 1 {
			t.Errorf("%s was started %d times", p.s.listen, p.starts)
		}
		a.Restart += p.failures()
	}
	if err := os.RemoveAll(task); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(task+".kept", task); err != nil {
		t.Fatal(err)
	}
	failing.end(syscall.SIGTERM) // or wait a minute
	ps[slices.Index(ps, failing)] = tend(t, failing.s, binary)
	drainAll(t, ps...)
	a.RSS = int64(residentMB(t, ps[0].cmd.Process.Pid)) << 20
	for _, p := range ps {
		p.end(syscall.SIGTERM)
	}
	a.Exact = goodNumbers(t, s)
}

// poisonFullDisk fills the disk under the checkpoints while rows come: nothing is published that is not in a
// checkpoint, and tasks are not begun again more often than their pauses allow.
func poisonFullDisk(t *testing.T, a *attack) {
	a.Input = "a disk that is full for 20 s"
	a.Before = "each task began again each second; 91 records were published twice"
	state := filepath.Join(t.TempDir(), "state")
	fill, free := fillDisk, freeDisk
	if err := mountSmall(t, state, 64); err != nil {
		t.Logf("no small file system can be mounted (%v): a directory that is none takes its place", err)
		fill, free = hideDirectory, showDirectory
	}
	s := settings{prefix: topicPrefix(t), listen: freePort(t), state: state}
	s.file = s.write(t, strings.Replace(faultsYAML, "stats: {", "stats: {bins: 15, extra_bins: [10], ", 1))
	runOK(t, "topics", "create", "-c", s.file)
	msgs := poisonStream(t, s)
	p := tend(t, s, binary)
	begin, filled := time.Now(), false
	for chunk := range slices.Chunk(msgs, len(msgs)/20) {
		kafkatest.Write(t, brokers, chunk...)
		time.Sleep(500 * time.Millisecond)
		if passed := time.Since(begin); !filled && passed > 3*time.Second {
			fill(t, state)
			filled = true
		}
	}
	time.Sleep(max(0, 23*time.Second-time.Since(begin)))
	if p.logged("save checkpoint") == 0 {
		t.Error("no checkpoint failed: the test did not test it")
	}
	a.Restart = p.failures()
	free(t, state)
	freed := time.Now()
	drainAll(t, p)
	a.Lag = fmt.Sprintf("%.0f s after the disk had room", time.Since(freed).Seconds())
	a.RSS = int64(residentMB(t, p.cmd.Process.Pid)) << 20
	p.end(syscall.SIGTERM)
	if p.starts != 1 {
		t.Errorf("%d starts of the process, want 1", p.starts)
	}
	twice := 0
	for _, name := range []string{"snapshots", "alerts", "calibrators", "decisions"} {
		twice += len(kafkatest.ReadAll(t, brokers, s.topic(name))) - len(distinct(t, s.topic(name)))
	}
	a.Note = fmt.Sprintf("%d records twice", twice)
	if twice > 0 {
		t.Errorf("%d records were published twice", twice)
	}
	a.Exact = goodNumbers(t, s)
}
