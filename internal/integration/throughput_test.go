//go:build integration

package integration

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

var throughputCases = []struct {
	k, batch int
	rows     int64
}{
	{10, 1000, 3_000_000},
	{100, 1000, 1_000_000},
	{1000, 256, 200_000},
}

// TestThroughput measures the whole path: predictions and labels are on the broker, `plumbline run` starts with no
// state and drains them. It shares the machine with the broker. Run it by `make bench-stream`.
func TestThroughput(t *testing.T) {
	if os.Getenv("PLUMBLINE_BENCH") != "1" {
		t.Skip("a measurement, not a check: set PLUMBLINE_BENCH=1")
	}
	var table, profiles strings.Builder
	table.WriteString("| K | rows | message rows | MB | seconds | rows/s | MB/s |\n|---|---|---|---|---|---|---|\n")
	for _, c := range throughputCases {
		t.Run(fmt.Sprintf("K=%d", c.k), func(t *testing.T) {
			s := configure(t, oneDay)
			size := produceSynthetic(t, s, c.k, c.batch, c.rows)
			seconds, rows, profile := drainTimed(t, s, c.rows)
			fmt.Fprintf(&table, "| %d | %d | %d | %.0f | %.1f | %.0f | %.0f |\n", c.k, c.rows, c.batch,
				float64(size)/1e6,
				seconds, float64(rows)/seconds, float64(size)/1e6*float64(rows)/float64(c.rows)/seconds)
			fmt.Fprintf(&profiles, "\nProcessor time at K = %d: %s", c.k, profile)
		})
	}
	text := fmt.Sprintf("%s; %s/%s, %d cores, %s, broker on the same machine.\n\n%s%s",
		time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpuName(),
		table.String(), profiles.String())
	t.Logf("table:\n%s", text)
	if !t.Failed() {
		writeSection(t, "throughput", text)
	}
}

// synthetic yields rows of seeded logits, correct about as often as they are confident.
type synthetic struct {
	k      int
	left   int64
	random *rand.Rand
	pool   []float32 // rows are windows into it: making logits must not be what is measured
}

func newSynthetic(k int, rows int64) *synthetic {
	s := &synthetic{k: k, left: rows, random: rand.New(rand.NewPCG(1, uint64(k))), pool: make([]float32, 1<<20)}
	for i := range s.pool {
		s.pool[i] = float32(2 * s.random.NormFloat64())
	}
	return s
}

func (s *synthetic) Schema() feed.Fields {
	return feed.Fields{Model: fmt.Sprintf("synthetic%d", s.k), Version: "1", K: s.k}
}

func (s *synthetic) Next(row *feed.Row) error {
	if s.left == 0 {
		return io.EOF
	}
	s.left--
	from := s.random.IntN(len(s.pool) - s.k)
	*row = feed.Row{Scores: s.pool[from : from+s.k], Label: int32(s.random.IntN(s.k))}
	if s.random.IntN(3) > 0 {
		for i, z := range row.Scores {
			if z > row.Scores[row.Label] {
				row.Label = int32(i)
			}
		}
	}
	return nil
}

func produceSynthetic(t *testing.T, s settings, k, batch int, rows int64) (size int) {
	t.Helper()
	f, err := feed.New(newSynthetic(k, rows), feed.Options{
		Partitions: partitions, EventRate: 20_000, Start: start.UnixNano(), DelayMax: 2 * time.Second, Batch: batch,
		Seed: 1, End: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		msgs, n, end := feedMessages(t, f, s, 32<<20)
		size += n
		if len(msgs) > 0 {
			kafkatest.Write(t, brokers, msgs...)
		}
		if end {
			return size
		}
	}
}

// drainTimed returns the seconds from the first progress that is seen to the end, and the rows read in them.
func drainTimed(t *testing.T, s settings, total int64) (seconds float64, rows int64, profile string) {
	t.Helper()
	p := run(t, s)
	var first time.Time
	var skipped int64
	profiled := make(chan string, 1)
	p.wait(5*time.Minute, "drain", func() bool {
		st, err := p.status()
		if err != nil {
			return false
		}
		if n := st.Counts.Predictions; first.IsZero() && n > 0 {
			first, skipped = time.Now(), n
			go func() { profiled <- takeProfile(p) }()
		}
		return st.Drained && st.Counts.Predictions >= total && st.Counts.Labelled >= total
	})
	seconds = time.Since(first).Seconds()
	profile = <-profiled
	p.stop()
	return seconds, total - skipped, profile
}

// takeProfile returns where the time of 3 seconds went, or why that is not known.
func takeProfile(p *process) string {
	resp, err := http.Get("http://" + p.s.listen + "/debug/pprof/profile?seconds=3")
	if err != nil {
		return err.Error() + "\n"
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("no profile: %s %v\n", resp.Status, err)
	}
	file := filepath.Join(filepath.Dir(p.log), "cpu.pprof")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return err.Error() + "\n"
	}
	out, err := exec.Command("go", "tool", "pprof", "-traces", binary, file).Output()
	if err != nil {
		return err.Error() + "\n"
	}
	return shares(string(out))
}

// parts are what the time of the process goes into. A sample belongs to the part of its innermost function that has
// one.
var parts = []struct {
	name  string
	marks []string // in function names
}{
	{"row kernel", []string{"calib/kernel."}},
	{"sums", []string{"calib/acc.(*Block)", "calib/acc.(*Set).PredictRows", "calib/acc.(*Set).LabelRows",
		"calib/acc.(*Set).Sample", "operators/stats.(*Operator).Process"}},
	{"panes out", []string{"operators/stats.(*Operator).Advance", "pipeline.(*Outbox)"}},
	{"join", []string{"operators/join.(*", "operators/join/store."}},
	{"decode", []string{"arrowio.(*Decoder)"}},
	{"fetch", []string{"kafkaio.(*fetcher)", "kafkaio.fetchCommitted", "kafka-go/protocol.(*Conn).Read",
		"kafka-go.(*conn)"}},
	{"model tasks", []string{"operators/model.(*"}},
	{"writes to Kafka", []string{"kafkaio.(*Sink)"}},
	{"checkpoints", []string{"pipeline.EncodeCheckpoint", "pipeline.(*loop).save", "pipeline.(*loop).begin"}},
	{"collector", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"}},
}

var traceValue = regexp.MustCompile(`^\s*([\d.]+)(ms|s|us)\s+(.*)$`)

// shares sums pprof's traces by part, the largest first.
func shares(traces string) string {
	by := map[string]time.Duration{}
	var all time.Duration
	_, traces, _ = strings.Cut(traces, "-----------+")
	for _, trace := range strings.Split(traces, "-----------+") {
		var spent time.Duration
		part := "rest"
		for _, line := range strings.Split(trace, "\n") {
			function := strings.TrimSpace(line)
			if m := traceValue.FindStringSubmatch(line); m != nil {
				spent, _ = time.ParseDuration(m[1] + m[2])
				function = m[3]
			}
			if name := partOf(function); name != "" {
				part = name
				break
			}
		}
		by[part] += spent
		all += spent
	}
	var b strings.Builder
	for i, name := range slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Compare(by[b], by[a]) }) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %.0f %%", name, 100*by[name].Seconds()/all.Seconds())
	}
	return b.String() + "\n"
}

func partOf(function string) string {
	for _, p := range parts {
		for _, m := range p.marks {
			if strings.Contains(function, m) {
				return p.name
			}
		}
	}
	return ""
}

func cpuName() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, ok := bytes.Cut(info, []byte("model name\t: "))
	if !ok {
		return "unknown CPU"
	}
	name, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(name)
}
