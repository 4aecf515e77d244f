package model

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/pipeline"
)

// load is a stream of one model version for the measurements of memory: slices with the same number of rows each.
type load struct {
	keys, k int
	minute  float64       // rows of a slice a minute
	lag     time.Duration // labels come within
	sample  int           // sample.rows
	pane    time.Duration
}

// loadConfig is the configuration of an empty file.
func loadConfig(l load) Config {
	cfg := defaultSetup().model
	a, d, r := setting.Default[alarm.Config](), setting.Default[drift.Config](), setting.Default[rule.Config]()
	r.Name = "excess-ece"
	cfg.Alarm, cfg.Unlabelled, cfg.Rules = &a, &d, []rule.Config{r}
	cfg.Windows = []window.Config{
		{Name: "10m", Kind: window.KindTime, Size: 10 * time.Minute, Slide: time.Minute},
		{Name: "day", Kind: window.KindTime, Size: 24 * time.Hour, Slide: 24 * time.Hour},
		{Name: "last5000", Kind: window.KindRows, Rows: 5000},
	}
	cfg.Refit.Method, cfg.ExtraBins, cfg.Resamples, cfg.SampleRows = "none", nil, 200, l.sample
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
	row    int
	offset int64
	spent  time.Duration // in the model task
}

func newLoaded(l load) *loaded {
	cfg := loadConfig(l)
	x := &loaded{load: l, rand: rand.New(rand.NewPCG(1, 2)), task: NewTask(cfg, 0, pipeline.NewCounts(), quiet)}
	x.outbox = pipeline.NewOutbox(0, 1, cfg.Pane, 1)
	x.stats = stats.New(stats.Options{Acc: cfg.Acc, Pane: cfg.Pane, Slices: cfg.Slices.Columns, MaxKeys: l.keys + 1,
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

// pane gives a pane to the shard's statistics and what they say to the model task.
func (x *loaded) pane(tb testing.TB, pane int64) {
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
	if err := x.stats.Advance(ctx, (pane+1)*length, nil); err != nil {
		tb.Fatal(err)
	}
	x.outbox.Punctuate(pipeline.Punctuation{Closed: pane + 1})
	pending := x.outbox.Pending()
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
	x.task.Outputs()
	x.calibrate(tb)
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

// heapInUse returns the bytes of memory that live objects take.
func heapInUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkKeys measures a model task with a few slices: the memory of a key after 80 minutes of panes, and the time
// that a pane of a key takes.
func BenchmarkKeys(b *testing.B) {
	for _, l := range []load{
		{keys: 8, k: 10, minute: 60}, {keys: 8, k: 100, minute: 60}, {keys: 2, k: 100, minute: 600},
	} {
		b.Run(fmt.Sprintf("K=%d/%v rows a minute", l.k, l.minute), func(b *testing.B) {
			l.lag, l.sample, l.pane = 10*time.Minute, 1, 10*time.Second
			for range b.N {
				before := heapInUse()
				x := newLoaded(l)
				const panes = 80 * 6
				for i := range int64(panes) {
					x.pane(b, 1_000_000+i)
				}
				keys := float64(len(x.task.models["m"].versions["1"].keys))
				x.stats, x.outbox = nil, nil
				b.ReportMetric((heapInUse()-before)/keys/1e6, "MB/key")
				b.ReportMetric(float64(x.spent.Microseconds())/panes/keys, "µs/key-pane")
				runtime.KeepAlive(x)
			}
		})
	}
}

// bytesOf is the memory of packed sums by rows and classes (docs/operations.md, Sizing).
func bytesOf(rows float64, k int) float64 {
	return 170 + 3.5*float64(k) + 130*math.Pow(rows, .63)
}

// liveBytes is the formula of docs/operations.md for a key of a model task with the default windows.
func (l load) liveBytes(panes int) float64 {
	const signals, fixed, perClass = 2, 130_000, 3200 // the last two are as measured
	rows := l.minute * l.pane.Minutes()
	buckets := min(float64(panes)*l.pane.Minutes(), 70) * bytesOf(l.minute, l.k)
	day := bytesOf(rows*float64(panes), l.k)
	last := min(float64(panes), math.Ceil(5000/rows)) * bytesOf(rows, l.k)
	sample := min(float64(l.sample), rows*float64(panes)) * float64(64+4*l.k)
	return signals*(buckets+day+last) + 1.15*sample + fixed + perClass*float64(l.k)
}

// taskBytes is the memory of a model task whatever its keys: where sums are added and read. Twice as much where rows
// have served confidences.
const taskBytes = 1.4e6

// TestMemoryOfKeys compares the memory of a key with the formula that operators plan with. PLUMBLINE_BIG=1 has 1,000
// keys (make key-memory).
func TestMemoryOfKeys(t *testing.T) {
	testsize.Slow(t)
	for _, l := range []load{{k: 10, minute: 60, sample: 1000}, {k: 100, minute: 60, sample: 500}} {
		l.keys, l.lag, l.pane = 4, 2*time.Minute, time.Minute
		if os.Getenv("PLUMBLINE_BIG") != "" {
			l.keys = 1000
		}
		x, before := newLoaded(l), heapInUse()
		x.task.env.Resamples = 20 // they cost time only
		const panes = 85
		for i := range int64(panes) {
			x.pane(t, 1_000_000+i)
		}
		v := x.task.models["m"].versions["1"]
		delete(v.keys, "") // of all rows, which are many more
		x.stats, x.outbox = nil, nil
		got, want := (heapInUse()-before-taskBytes)/float64(len(v.keys)), l.liveBytes(panes)
		t.Logf("K = %d, %d keys: %.0f bytes a key, the formula says %.0f", l.k, len(v.keys), got, want)
		if math.Abs(got/want-1) > .2 {
			t.Errorf("K = %d: %.0f bytes a key, the formula says %.0f", l.k, got, want)
		}
		runtime.KeepAlive(x)
	}
}
