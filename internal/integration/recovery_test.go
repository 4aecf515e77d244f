//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	recoveryKills = 5
	recoveryRate  = 500 // rows a second, before, while and after the process is away
	recoverySpan  = 200 * time.Second
	// recoverySteady is how far behind the writer a process that has caught up may be: it shows what its checkpoints
	// hold.
	recoverySteady = 3 * time.Second
)

// recovery is one kill -9 and what followed.
type recovery struct {
	start   time.Duration // from the kill to the page's answer: exec, configuration, topics
	join    time.Duration // from there to the assignment of partitions
	read    time.Duration // sum over tasks of reading checkpoints
	restore time.Duration // from the assignment until the last task has its state
	bytes   int           // of the checkpoints that were restored
	first   time.Duration // from the kill to the first record that a shard has processed
	caught  time.Duration // from the kill until everything older than recoverySteady is processed
}

// TestRecovery kills -9 a process with a state of 1,000 keys (10 versions of 2 models, 100 cohorts each) of K = 100
// while rows keep coming, starts it again and measures. Run it by `make recovery`.
func TestRecovery(t *testing.T) {
	if os.Getenv("PLUMBLINE_RECOVERY") != "1" {
		t.Skip("a measurement, not a check: set PLUMBLINE_RECOVERY=1")
	}
	var table strings.Builder
	table.WriteString("| checkpoints in | state | start of the process | group | restore of all tasks " +
		"| kill to first row | kill to caught up |\n|---|---|---|---|---|---|---|\n")
	for _, store := range []string{"directory", "topic"} {
		t.Run(store, func(t *testing.T) {
			rs := recoveries(t, store)
			of := func(d func(recovery) time.Duration) string {
				var all []time.Duration
				for _, r := range rs {
					all = append(all, d(r))
				}
				slices.Sort(all)
				return fmt.Sprintf("%.2f s (%.2f)", all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
			}
			fmt.Fprintf(&table, "| %s | %.0f MB | %s | %s | %s | %s | %s |\n", store, float64(rs[len(rs)-1].bytes)/1e6,
				of(func(r recovery) time.Duration { return r.start }),
				of(func(r recovery) time.Duration { return r.join }),
				of(func(r recovery) time.Duration { return r.restore }),
				of(func(r recovery) time.Duration { return r.first }),
				of(func(r recovery) time.Duration { return r.caught }))
		})
	}
	text := fmt.Sprintf("%s; %s/%s, %d cores, %s, broker and writer on the same machine, load average %s. "+
		"Median (worst) of %d kills.\n\n%s",
		time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpuName(),
		loadAverage(), recoveryKills, table.String())
	t.Logf("table:\n%s", text)
	if !t.Failed() {
		writeSection(t, "recovery", text)
	}
}

func recoveries(t *testing.T, store string) []recovery {
	var models []liveModel
	for _, net := range []string{"resnet56", "vgg16_bn"} {
		rows := loadRows(t, "c100_chenyaofo_logits.npz", net, 100)
		for v := range 5 {
			models = append(models, liveModel{net, fmt.Sprint(v + 1), rows, cohorts(100)})
		}
	}
	s := configureEdited(t, "slices: {columns: [cohort], max_keys: 2000}", "interval: 500ms", "interval: 2s",
		"checkpoints:", "checkpoints:\n  store: "+store, "  deadletter:",
		"  checkpoints: "+topicPrefix(t)+".checkpoints\n  deadletter:")
	// The stream's past is written at once, then it goes on in real time.
	begin := time.Now().Add(-recoverySpan)
	pm := newPump(t, s, plan{begin, []phase{{recoveryRate, time.Hour}}}, time.Minute, models)
	pm.produce(time.Now())
	t.Logf("%d rows and %d labels to begin with", pm.rows, pm.labels)
	w := &written{}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { pm.follow(ctx, w.note) })
	defer func() { stop(); wg.Wait() }()
	p := run(t, s)
	p.wait(4*time.Minute, "catch up with the past", func() bool { return w.caughtUp(p) })
	// A task without a checkpoint has nothing to restore: each has begun, and two intervals are over.
	p.wait(time.Minute, "begin every task", func() bool {
		return bytes.Count(p.whole(),
			[]byte(`msg="first record"`)) == 2*partitions
	})
	time.Sleep(4 * time.Second)
	var out []recovery
	for range recoveryKills {
		time.Sleep(3 * time.Second)
		killed := time.Now()
		p.kill()
		p = run(t, s)
		r := recovery{}
		p.wait(time.Minute, "catch up", func() bool { return w.caughtUp(p) })
		r.caught = time.Since(killed)
		p.wait(time.Minute, "restore every task",
			func() bool { return bytes.Count(p.whole(), []byte("msg=restored ")) == 2*partitions })
		r.fromLog(t, p.log, killed)
		t.Logf("%+v", r)
		out = append(out, r)
	}
	return out
}

// whole is the log.
func (p *process) whole() []byte {
	b, _ := os.ReadFile(p.log)
	return b
}

// written remembers how many rows had been written when.
type written struct {
	mu   sync.Mutex
	when []time.Time
	rows []int64
}

func (w *written) note(rows int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.when, w.rows = append(w.when, time.Now()), append(w.rows, rows)
}

// total is how much has been written.
func (w *written) total() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rows) == 0 {
		return 0
	}
	return w.rows[len(w.rows)-1]
}

// late is the longest time between two writes.
func (w *written) late() (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < len(w.when); i++ {
		longest = max(longest, w.when[i].Sub(w.when[i-1]))
	}
	return longest
}

// caughtUp reports whether the process has what was written recoverySteady ago.
func (w *written) caughtUp(p *process) bool {
	now := time.Now()
	st, err := p.status()
	w.mu.Lock()
	defer w.mu.Unlock()
	i, _ := slices.BinarySearchFunc(w.when, now.Add(-recoverySteady), time.Time.Compare)
	return err == nil && i > 0 && st.Counts.Predictions >= w.rows[i-1]
}

var logLine = regexp.MustCompile(`(?m)^time=(\S+) level=\S+ msg=("[^"]*"|\S+)(.*)$`)

// fromLog takes the parts of a recovery from the log of the process that was started after the kill.
func (r *recovery) fromLog(t *testing.T, file string, killed time.Time) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var serving, assigned, restored time.Time
	for _, m := range logLine.FindAllStringSubmatch(string(text), -1) {
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			t.Fatal(err)
		}
		switch strings.Trim(m[2], `"`) {
		case "serving":
			serving = at
		case "assigned":
			assigned = at // the later of the two groups
		case "restored":
			restored = at
			var n int
			var read time.Duration
			if _, err := fmt.Sscanf(field(m[3], "bytes"), "%d", &n); err != nil {
				t.Fatalf("log line %q: %v", m[0], err)
			}
			if read, err = time.ParseDuration(field(m[3], "read")); err != nil {
				t.Fatalf("log line %q: %v", m[0], err)
			}
			r.bytes, r.read = r.bytes+n, r.read+read
		case "first record":
			if r.first == 0 && strings.Contains(m[3], "task=shard") {
				r.first = at.Sub(killed)
			}
		}
	}
	if serving.IsZero() || assigned.IsZero() || restored.IsZero() || r.first == 0 {
		t.Fatalf("the log of %s does not tell of a start, an assignment, a restore and a first record:\n%s",
			filepath.Base(file), text)
	}
	r.start, r.join, r.restore = serving.Sub(killed), assigned.Sub(serving), restored.Sub(assigned)
}

func field(attrs, name string) string {
	_, rest, _ := strings.Cut(attrs, " "+name+"=")
	value, _, _ := strings.Cut(rest, " ")
	return value
}

// configureEdited is configure with pairs of texts replaced in the file.
func configureEdited(t *testing.T, more string, pairs ...string) settings {
	t.Helper()
	s := settings{prefix: topicPrefix(t), listen: freePort(t)}
	s.file = s.write(t, more)
	text, err := os.ReadFile(s.file)
	if err == nil {
		err = os.WriteFile(s.file, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	runOK(t, "topics", "create", "-c", s.file)
	return s
}
