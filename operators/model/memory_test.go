package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// load is a stream of one model version for the measurements of memory: slices with the same number of rows each.
type load struct {
	keys, k int
	minute  float64       // rows of a slice a minute
	lag     time.Duration // labels come within
	pane    time.Duration
}

// loadConfig is the configuration of an empty file.
func loadConfig(l load) Config {
	cfg := defaultSetup().model
	a, d, r := setting.Default[alarm.Config](), setting.Default[drift.Config](), setting.Default[rule.Config]()
	sample := setting.Default[stats.SampleConfig]()
	r.Name = "excess-ece"
	cfg.Alarm, cfg.Unlabelled, cfg.Rules = &a, &d, []rule.Config{r}
	cfg.Windows = []window.Config{
		{Name: "10m", Kind: window.KindTime, Size: 10 * time.Minute, Slide: time.Minute},
		{Name: "day", Kind: window.KindTime, Size: 24 * time.Hour, Slide: 24 * time.Hour},
		{Name: "last5000", Kind: window.KindRows, Rows: 5000},
	}
	cfg.Refit.Method, cfg.ExtraBins, cfg.Resamples = "none", nil, 200
	cfg.SampleRows, cfg.SliceRows = sample.Rows, sample.SliceRows
	cfg.Pane = int64(l.pane)
	cfg.FinalAfter = int64(time.Hour) + 10*second
	cfg.Slices.Columns = []string{"cohort"}
	return cfg
}

// loaded is a model task under load.
type loaded struct {
	load
	task   *Task
	stats  *stats.Operator
	outbox *pipeline.Outbox
	rand   *rand.Rand
	values []string
	copies int // of the one slice, as slices of their own; 0 = none
	row    int
	offset int64
	seq    uint64
	// outputs is the most bytes that a pane had the task publish.
	outputs int
	spent   time.Duration // in the model task
}

func newLoaded(l load) *loaded {
	cfg := loadConfig(l)
	x := &loaded{load: l, rand: rand.New(rand.NewPCG(1, 2)), task: NewTask(cfg, 0, pipeline.NewCounts(), quiet)}
	x.outbox = pipeline.NewOutbox(0, 1, cfg.Pane, 1)
	x.stats = stats.New(stats.Options{Acc: cfg.Acc, Pane: cfg.Pane, MaxKeys: l.keys + 1,
		Classes: stats.ClassesModel}, pipeline.Host{Outbox: x.outbox, Counts: pipeline.NewCounts()})
	for i := range l.keys {
		x.values = append(x.values, fmt.Sprint("c", i))
	}
	return x
}

// batch returns rows of one pane: predictions, or labels that came within it. The top class is right four times of
// five.
func (x *loaded) batch(kind arrowio.Kind, pane int64, n int) *arrowio.Batch {
	length := x.task.cfg.Pane
	b := &arrowio.Batch{Kind: kind, N: n, K: x.k, Models: []arrowio.ModelKey{{Model: "m", Version: "1"}},
		IDs: make([]arrowio.ID, n), TS: make([]int64, n), Label: make([]int32, n), Scores: make([]float32, n*x.k),
		Slices: []arrowio.SliceColumn{{Name: "cohort", Values: x.values, Index: make([]int32, n)}}}
	if kind == arrowio.Labelled {
		b.LabelTS = make([]int64, n)
	}
	for i := range n {
		x.row++
		b.IDs[i] = arrowio.HashID(fmt.Sprint(x.row))
		b.TS[i], b.Label[i] = pane*length+x.rand.Int64N(length), -1
		b.Slices[0].Index[i] = int32(x.row % x.keys)
		z := b.Scores[i*x.k : (i+1)*x.k]
		for j := range z {
			z[j] = float32(1.5 * x.rand.NormFloat64())
		}
		top := x.rand.IntN(x.k)
		z[top] += float32(4 + 3*x.rand.ExpFloat64())
		if kind == arrowio.Labelled {
			b.LabelTS[i] = b.TS[i]
			b.TS[i] -= x.rand.Int64N(int64(x.lag))
			if b.Label[i] = int32(top); x.rand.IntN(5) == 0 {
				b.Label[i] = int32(x.rand.IntN(x.k))
			}
		}
	}
	return b
}

// rows gives a pane to the shard's statistics.
func (x *loaded) rows(tb testing.TB, pane int64) {
	ctx, length := context.Background(), x.task.cfg.Pane
	n := int(x.minute*float64(length)/float64(time.Minute)*float64(x.keys) + x.rand.Float64())
	for _, kind := range []arrowio.Kind{arrowio.Predictions, arrowio.Labelled} {
		for left := n; left > 0; left -= 500 {
			emit := func(*arrowio.Batch) (pipeline.Rejects, error) { return nil, nil }
			if _, err := x.stats.Process(ctx, x.batch(kind, pane, min(left, 500)), emit); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// pane gives a pane to the shard's statistics and what they say to the model task.
func (x *loaded) pane(tb testing.TB, pane int64) {
	x.rows(tb, pane)
	x.take(tb, pane)
	x.calibrate(tb)
}

// panes gives so many panes. Of snapshots only the latest are kept, so it makes those of the last panes, and draws no
// resamples: both cost time only.
func (x *loaded) panes(tb testing.TB, n int) {
	const seen = 5 // more than those of a slide, and of labels that still come
	x.task.env.Resamples = 1
	for i := range n {
		x.task.env.Unseen = i < n-seen
		x.pane(tb, 1_000_000+int64(i))
	}
}

// take closes a pane.
func (x *loaded) take(tb testing.TB, pane int64) {
	ctx := context.Background()
	if err := x.stats.Advance(ctx, (pane+1)*x.task.cfg.Pane, nil); err != nil {
		tb.Fatal(err)
	}
	x.outbox.Punctuate(pipeline.Punctuation{Closed: pane + 1})
	pending := x.outbox.Pending()
	if x.copies > 0 {
		pending = x.copied(tb, pending)
	}
	before := cpuTime(tb)
	for _, m := range pending {
		record := pipeline.Record{Input: pipeline.Panes, Offset: x.offset, Value: m.Value}
		if err := x.task.Take(ctx, record); err != nil {
			tb.Fatal(err)
		}
		x.offset++
	}
	x.spent += cpuTime(tb) - before
	x.outbox.Clear()
	outputs := 0
	for _, m := range x.task.Outputs() {
		outputs += len(m.Key) + len(m.Value)
	}
	x.outputs = max(x.outputs, outputs)
}

// copied returns pane messages with copies of the slice's cells, so that the rows of one slice make many.
func (x *loaded) copied(tb testing.TB, in []pipeline.Message) (out []pipeline.Message) {
	put := func(m pipeline.PaneMessage, cells []pipeline.Cell) {
		x.seq++
		m.Seq, m.Cells = x.seq, cells
		out = append(out, pipeline.Message{Value: pipeline.AppendPane(nil, &m)})
	}
	for _, message := range in {
		m, err := pipeline.DecodePane(message.Value)
		if err != nil {
			tb.Fatal(err)
		}
		if m.Punctuation {
			put(*m, nil)
			continue
		}
		for i := range x.copies {
			cells := slices.Clone(m.Cells)
			for j := range cells {
				if cells[j].Slice != "" {
					cells[j].Slice = fmt.Sprint("cohort=c", i)
				}
			}
			if i > 0 { // all rows come once
				cells = slices.DeleteFunc(cells, func(c pipeline.Cell) bool { return c.Slice == "" })
			}
			put(*m, cells)
		}
	}
	return out
}

// calibrate puts a calibrator in force where there is none.
func (x *loaded) calibrate(tb testing.TB) {
	cal, err := calibrator.NewTemperature(1.3)
	if err != nil {
		tb.Fatal(err)
	}
	encoded, err := calibrator.Encode(cal)
	if err != nil {
		tb.Fatal(err)
	}
	v := x.task.models["m"].versions["1"]
	if len(v.Calibrators) == 0 {
		v.Calibrators = append(v.Calibrators, &stage.InForce{Revision: 1, Cal: cal, Encoded: encoded})
	}
}

// cpuTime returns the processor time that the process has taken: on a busy machine it says more than the clock.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkKeys measures the time that a pane of a slice takes, and its memory after a quarter of an hour.
func BenchmarkKeys(b *testing.B) {
	for _, l := range []load{
		{keys: 2, k: 2, minute: 60}, {keys: 2, k: 10, minute: 60}, {keys: 2, k: 100, minute: 60},
		{keys: 2, k: 1000, minute: 60}, {keys: 2, k: 10, minute: 6000},
	} {
		b.Run(fmt.Sprintf("K=%d/%v rows a minute", l.k, l.minute), func(b *testing.B) {
			l.lag, l.pane = 10*time.Minute, 10*time.Second
			for range b.N {
				before := testsize.HeapInUse()
				x := newLoaded(l)
				const panes = 15 * 6
				for i := range int64(panes) {
					x.pane(b, 1_000_000+i)
				}
				keys := float64(len(x.task.models["m"].versions["1"].keys))
				x.stats, x.outbox = nil, nil
				b.ReportMetric((testsize.HeapInUse()-before)/keys/1e6, "MB/key")
				b.ReportMetric(float64(x.spent.Microseconds())/panes/keys, "µs/key-pane")
				runtime.KeepAlive(x)
			}
		})
	}
}

// bucketTable is the table of bench/results/buckets.md: bytes of a bucket of a window, raw and calibrated, by rows and
// classes.
func bucketTable(tb testing.TB) (rows []float64, bytes map[int][]float64) {
	tb.Helper()
	text, err := os.ReadFile("../../bench/results/buckets.md")
	if err != nil {
		tb.Fatal(err)
	}
	bytes = map[int][]float64{}
	for line := range strings.SplitSeq(string(text), "\n") {
		k, isRow := 0, strings.HasPrefix(line, "| KB of a bucket of ")
		if n, _ := fmt.Sscanf(line, "| K = %d |", &k); n == 0 && !isRow {
			continue
		}
		for _, cell := range strings.Split(strings.Trim(line, "| "), "|")[1:] {
			x, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(cell), ",", ""), 64)
			if err != nil {
				tb.Fatalf("%q: %v", line, err)
			}
			if isRow {
				rows = append(rows, x)
			} else {
				bytes[k] = append(bytes[k], 1000*x)
			}
		}
	}
	return rows, bytes
}

// bucketBytes interpolates in the table.
func bucketBytes(tb testing.TB, rows float64, k int) float64 {
	at, table := bucketTable(tb)
	b := table[k]
	if len(at) < 2 || len(b) != len(at) {
		tb.Fatalf("bench/results/buckets.md has %d columns, and %d of K = %d", len(at), len(b), k)
	}
	i := 1
	for i < len(at)-1 && rows > at[i] {
		i++
	}
	slope := math.Log(b[i]/b[i-1]) / math.Log(at[i]/at[i-1])
	return b[i] * math.Pow(rows/at[i], slope)
}

// TestBucketTable compares the table with what buckets take.
func TestBucketTable(t *testing.T) {
	testsize.NoRace(t)
	testsize.Slow(t)
	rows, table := bucketTable(t)
	for k, want := range table {
		x := newLoaded(load{keys: 1, k: k, lag: time.Minute, pane: time.Minute})
		set, err := x.task.env.NewSums(k)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i, to := range rows {
			if to*float64(k) > 1e7 {
				continue // a second of generated scores
			}
			for ; n < int(to); n += add(t, set, x.batch(arrowio.Labelled, 1, min(int(to)-n, 500))) {
			}
			raw, cal, err := x.task.env.Summaries(k)
			if err != nil {
				t.Fatal(err)
			}
			var bytes [2]acc.Packed
			err = errors.Join(raw.Pack(&bytes[0], func(s *acc.Summary) error { return s.Add(set) }),
				cal.Pack(&bytes[1], func(s *acc.Summary) error { return s.AddLabelled(set) }))
			if err != nil {
				t.Fatal(err)
			}
			got := float64(bytes[0].Bytes() + bytes[1].Bytes())
			t.Logf("K = %d, %.0f rows: %.0f bytes, the table says %.0f", k, to, got, want[i])
			if math.Abs(got/want[i]-1) > .15 {
				t.Errorf("K = %d, %.0f rows: %.0f bytes, the table says %.0f", k, to, got, want[i])
			}
		}
	}
}

// add adds rows as predicted and labelled.
func add(tb testing.TB, set *acc.Set, b *arrowio.Batch) int {
	z, p := make([]float64, b.K), make([]float64, b.K)
	for i := range b.N {
		for j, x := range b.Scores[i*b.K : (i+1)*b.K] {
			z[j] = float64(x)
		}
		row, _ := kernel.Logits(z, p)
		y := int(b.Label[i])
		truth := acc.Truth{Class: y, Weight: 1, NLL: kernel.NLL(row, z, y, false), Lag: b.LabelTS[i] - b.TS[i],
			Served: math.NaN()}
		if err := errors.Join(set.Predict(row, 1), set.Label(row, p, truth)); err != nil {
			tb.Fatal(err)
		}
	}
	return b.N
}

// liveBytes is the formula of bench/results/buckets.md for a slice, or a whole version, with the default windows.
func (l load) liveBytes(tb testing.TB, panes int, whole bool) float64 {
	const overhead, fixed, perClass = 300, 40_000, 100
	rows, perPane := l.minute*l.pane.Minutes()*float64(panes), l.minute*l.pane.Minutes()
	minutes := float64(panes)*l.pane.Minutes() + l.lag.Minutes() // that predictions with labels are of
	buckets, inBucket := math.Min(minutes, 70), rows/minutes
	reached := math.Min(buckets, 1+l.lag.Minutes()) // by labels
	last := math.Min(float64(panes), math.Ceil(5000/perPane))
	block := window.Config{Rows: 5000}.BlockRows(perPane)
	windows := (buckets+.2*reached)*(bucketBytes(tb, inBucket, l.k)+overhead) + // 10m, by the minute
		bucketBytes(tb, rows, l.k) + // day
		math.Ceil(min(rows, 5000)/block)*(bucketBytes(tb, block, l.k)+overhead) + // last5000
		bucketBytes(tb, rows, l.k) // since the calibrator took force
	key := windows + 25*last + fixed + perClass*float64(l.k)
	if !whole {
		return key
	}
	sampled := math.Min(float64(setting.Default[stats.SampleConfig]().Rows), rows) * float64(90+4*l.k)
	return key + sampled + 45*math.Pow(min(float64(l.k), 128), 2)
}

// TestKeysOfManyClasses: a slice of 100 classes with the default windows has at most 2 MB up to 1,000 rows a
// second. That the formula is true is for TestMemoryOfKeys.
func TestKeysOfManyClasses(t *testing.T) {
	testsize.NoRace(t)
	for _, rate := range []float64{1, 10, 100, 1000} {
		l := load{k: 100, minute: 60 * rate, lag: 10 * time.Minute, pane: 10 * time.Second}
		got := l.liveBytes(t, 6*90, false)
		t.Logf("%.0f rows a second: %.2f MB", rate, got/1e6)
		if got > 2e6 {
			t.Errorf("%.0f rows a second: %.0f bytes", rate, got)
		}
	}
}

// outputBytes is what bench/results/buckets.md says that a slice publishes at the end of a slide.
func (l load) outputBytes() float64 { return 13_000 * (4 + math.Log2(1+l.lag.Minutes())) }

// taskBytes is the memory of a model task whatever its keys: where sums are added and read, and 12 texts of snapshots
// that are not packed. Twice as much where rows have served confidences.
const taskBytes = 2.4e6

// beginPackers makes what packs new models, snapshots and alerts, which a process has once.
func beginPackers(tb testing.TB) {
	packers.Do(func() {
		stage.NewLastAlert(&record.Alert{}, []byte(`{"schema":1}`))
		runtime.KeepAlive(newModels(tb, mostAwake+1, 1, 2)) // the first is packed and needed again
		runtime.KeepAlive(newModels(tb, mostAwake+1, 60, 2))
	})
}

var packers sync.Once

// encodeWaiting leaves no cell decoded: those that are belong to the task, maxOpenBytes in all.
func encodeWaiting(t *Task) {
	for _, c := range t.cfg.open.cells {
		c.encoded()
		t.cfg.open.release(c)
	}
	*t.cfg.open = openCells{}
}

// TestMemoryOfKeys compares the memory of a slice with the formula that operators plan with. PLUMBLINE_BIG=1 has 1,000
// slices and compares resident memory too (make key-memory).
func TestMemoryOfKeys(t *testing.T) {
	testsize.NoRace(t)
	testsize.Slow(t)
	const busy = 6000
	cases := []load{{k: 10, minute: 60}, {k: 100, minute: 60}, {k: 100, minute: busy}}
	const panes = 25
	beginPackers(t)
	for _, l := range cases {
		l.keys, l.lag, l.pane = 1, 2*time.Minute, time.Minute
		copies := 12
		if l.minute == busy {
			copies = 4
		} else if os.Getenv("PLUMBLINE_BIG") != "" {
			copies = 1000
		}
		x, before := newLoaded(l), testsize.HeapInUse()
		x.copies = copies
		x.panes(t, panes)
		peak := float64(testsize.Resident(t, "VmHWM"))
		got, want := float64(x.outputs)/float64(copies), l.outputBytes()
		if l.minute < busy && math.Abs(got/want-1) > .2 { // snapshots of more rows are longer
			t.Errorf("K = %d: a pane publishes %.0f bytes a slice, the formula says %.0f", l.k, got, want)
		}
		v := x.task.models["m"].versions["1"]
		x.stats, x.outbox = nil, nil
		encodeWaiting(x.task)
		all := testsize.HeapInUse()
		delete(v.keys, "")
		live := testsize.HeapInUse() - before
		got, want = all-before-live, l.liveBytes(t, panes, true)
		t.Logf("K = %d, %.0f rows a minute: %.0f bytes a version, the formula says %.0f", l.k, l.minute, got, want)
		if math.Abs(got/want-1) > .2 {
			t.Errorf("K = %d: %.0f bytes a version, the formula says %.0f", l.k, got, want)
		}
		got, want = (live-taskBytes)/float64(len(v.keys)), l.liveBytes(t, panes, false)
		t.Logf("K = %d, %.0f rows a minute: %.0f bytes a slice, the formula says %.0f; %d have %.0f MB, %.0f resident",
			l.k, l.minute, got, want, len(v.keys), live/1e6, peak/1e6)
		if math.Abs(got/want-1) > .2 {
			t.Errorf("K = %d: %.0f bytes a slice, the formula says %.0f", l.k, got, want)
		}
		rss := 2*((want+l.outputBytes())*float64(len(v.keys))+taskBytes) + programBytes
		if copies >= 1000 && math.Abs(peak/rss-1) > .2 {
			t.Errorf("K = %d: %.0f MB resident, the formula says %.0f", l.k, peak/1e6, rss/1e6)
		}
		runtime.KeepAlive(x)
	}
}

// TestRareKeys: slices with a row a minute, whose latest 5,000 rows are of as many panes.
func TestRareKeys(t *testing.T) {
	testsize.Slow(t)
	const panes = 300
	l := load{keys: 1, k: 10, minute: 1, lag: 2 * time.Minute, pane: time.Minute}
	beginPackers(t)
	x, before := newLoaded(l), testsize.HeapInUse()
	x.copies = 12
	x.panes(t, panes)
	v := x.task.models["m"].versions["1"]
	x.stats, x.outbox = nil, nil
	delete(v.keys, "")
	got := (testsize.HeapInUse() - before - taskBytes) / float64(len(v.keys))
	want := l.liveBytes(t, panes, false)
	t.Logf("%.0f bytes a slice, the formula says %.0f", got, want)
	if got > 1.2*want || got > 250_000 { // with a bucket for each pane 374,000
		t.Errorf("%.0f bytes a slice, the formula says %.0f", got, want)
	}
	runtime.KeepAlive(x)
}

// TestWorkedExample runs 20 slices at 1,000 rows a second for as many minutes as PLUMBLINE_MINUTES says (make
// example-memory): a slice's windows, and the cells of a shard.
func TestWorkedExample(t *testing.T) {
	testsize.Slow(t)
	const slicesOf, shards, mb = 20, 4, 1e6
	l := load{keys: 1, k: 10, minute: 60_000, lag: 10 * time.Minute, pane: 10 * time.Second}
	beginPackers(t)
	panes := 3
	if n, err := strconv.Atoi(os.Getenv("PLUMBLINE_MINUTES")); err == nil {
		panes = 6 * n
	}
	x, before := newLoaded(l), testsize.HeapInUse()
	x.copies = slicesOf
	x.panes(t, panes)
	x.stats, x.outbox = nil, nil
	delete(x.task.models["m"].versions["1"].keys, "")
	got, want := (testsize.HeapInUse()-before-taskBytes)/mb, slicesOf*l.liveBytes(t, panes, false)/mb
	t.Logf("model task after %d panes: %.1f MB, the formula says %.1f", panes, got, want)
	if math.Abs(got/want-1) > .2 {
		t.Errorf("model task after %d panes: %.1f MB, the formula says %.1f", panes, got, want)
	}
	runtime.KeepAlive(x)

	x = newLoaded(load{keys: slicesOf, k: 10, minute: 60_000 / shards, lag: l.lag, pane: l.pane})
	before = testsize.HeapInUse()
	for i := range int64(3) {
		x.rows(t, 1_000_000+i)
	}
	if got := (testsize.HeapInUse() - before) / mb; math.Abs(got/126-1) > .2 {
		t.Errorf("cells of a shard: %.1f MB, the example says 126", got)
	} else {
		t.Logf("cells of a shard: %.1f MB", got)
	}
	runtime.KeepAlive(x)
}

// programBytes is the resident memory of a process that does nothing.
const programBytes = 40e6
