package model

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// newModels gives a shard's statistics rows of so many models, rows a pane of each, and what they say to a model task.
func newModels(tb testing.TB, models, rows, panes int) *loaded {
	cfg := loadConfig(load{pane: 10 * time.Second})
	cfg.Slices.Columns = nil
	cfg.Refit.Method = "auto"
	x := &loaded{rand: rand.New(rand.NewPCG(1, 2)), task: NewTask(cfg, 0, pipeline.NewCounts(), quiet)}
	x.outbox = pipeline.NewOutbox(0, 1, cfg.Pane, 1)
	x.stats = stats.New(stats.Options{Acc: cfg.Acc, Pane: cfg.Pane, Classes: stats.ClassesModel},
		pipeline.Host{Outbox: x.outbox, Counts: pipeline.NewCounts()})
	const k = 10
	for p := range int64(panes) {
		pane := 1_000_000 + p
		for m := range models {
			b := &arrowio.Batch{Kind: arrowio.Predictions, N: rows, K: k, TS: make([]int64, rows),
				Models: []arrowio.ModelKey{{Model: fmt.Sprint("new", m), Version: "1"}},
				Label:  make([]int32, rows), Scores: make([]float32, rows*k), IDs: make([]arrowio.ID, rows)}
			for i := range rows {
				b.IDs[i] = arrowio.HashID(fmt.Sprint(m, p, i))
				b.TS[i], b.Label[i] = pane*cfg.Pane, int32(i%k)
				for j := range k {
					b.Scores[i*k+j] = float32(1.5 * x.rand.NormFloat64())
				}
				b.Scores[i*k+i%k] += float32(4 + 3*x.rand.ExpFloat64())
			}
			if _, err := x.stats.Process(context.Background(), b, func(*arrowio.Batch) (pipeline.Rejects, error) {
				return nil, nil
			}); err != nil {
				tb.Fatal(err)
			}
		}
		x.take(tb, pane)
	}
	return x
}

// TestNewModelsAtRest: a key that is new has the same state at rest and awake, and few are awake.
func TestNewModelsAtRest(t *testing.T) {
	t.Parallel()
	t.Run("few panes", func(t *testing.T) { newModelsAtRest(t, 5, 4) })
	t.Run("many panes", func(t *testing.T) { newModelsAtRest(t, 1, 40) }) // rows give what is recent
}

func newModelsAtRest(t *testing.T, rows, panes int) {
	x := newModels(t, mostAwake+2, rows, panes)
	packed := 0
	for name, m := range x.task.models {
		k := m.versions["1"].keys[""]
		if k.packed != nil {
			packed++
		}
		if err := k.rest(&x.task.cfg); err != nil {
			t.Fatal(err)
		}
		rest, err := m.append(nil, x.task.cfg.table, false)
		if err != nil {
			t.Fatal(err)
		}
		if k.packed == nil || len(k.Sample)+len(k.Snapshots)+len(k.states) > 0 {
			t.Errorf("%s: a new key is not at rest", name)
		}
		if left := k.ofRows != nil; left != (panes == 40) {
			t.Errorf("%s: what is recent is left out: %v", name, left)
		}
		asleep := k.remembered()()
		if len(asleep) != len(x.task.cfg.Windows) {
			t.Errorf("%s: %d snapshots are remembered at rest", name, len(asleep))
		}
		if k.wake(&x.task.fleet); len(k.Sample) != rows*panes || len(k.Snapshots) != len(x.task.cfg.Windows) {
			t.Errorf("%s: %d sampled rows and %d snapshots", name, len(k.Sample), len(k.Snapshots))
		}
		slices.SortFunc(asleep, bytes.Compare)
		if got := slices.SortedFunc(slices.Values(k.remembered()()), bytes.Compare); !reflect.DeepEqual(got, asleep) {
			t.Errorf("%s: other snapshots awake: %s, at rest %s", name, got, asleep)
		}
		if awake, err := m.append(nil, x.task.cfg.table, false); err != nil || !bytes.Equal(awake, rest) {
			t.Errorf("%s: %d bytes awake, %d at rest (%v)", name, len(awake), len(rest), err)
		}
	}
	if packed != 2 {
		t.Errorf("%d keys are at rest, all but %d should be", packed, mostAwake)
	}
}

// TestAlertingAtRest: a key at rest says as one that is awake whether an alert is pending or firing, also of an alert
// that was published and is resolved: which keys rest differs after a restart.
func TestAlertingAtRest(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{stage.Inactive: false, stage.Pending: true, stage.Firing: true} {
		x := newModels(t, 1, 5, 4)
		for _, m := range x.task.models {
			k := m.versions["1"].keys[""]
			k.wake(&x.task.fleet)
			if len(k.Alerts) == 0 {
				t.Fatal("no alerts")
			}
			k.Alerts[0].State = state
			k.Alerts[0].Last = stage.NewLastAlert(&record.Alert{}, []byte("{}"))
			if got := k.alerting(); got != want {
				t.Errorf("%q, awake: %t", state, got)
			}
			if err := k.rest(&x.task.cfg); err != nil || k.packed == nil {
				t.Fatal(err, k.packed == nil)
			}
			if got := k.alerting(); got != want {
				t.Errorf("%q, at rest: %t", state, got)
			}
		}
	}
}

// BenchmarkNewModels measures what a new model costs a model task until it has 100 labelled rows.
func BenchmarkNewModels(b *testing.B) {
	for _, l := range []struct{ models, rows, panes int }{{10_000, 1, 1}, {100, 1, 99}, {500, 33, 3}} {
		b.Run(fmt.Sprintf("%d models/%d rows/%d panes", l.models, l.rows*l.panes, l.panes), func(b *testing.B) {
			for range b.N {
				// What packs new models is there once.
				runtime.KeepAlive(newModels(b, mostAwake+1, l.rows, max(2, l.panes)))
				before := testsize.HeapInUse()
				x := newModels(b, l.models, l.rows, l.panes)
				x.stats, x.outbox = nil, nil
				encodeWaiting(x.task)
				runtime.GC() // what pools keep goes with the second
				b.ReportMetric((testsize.HeapInUse()-before-taskBytes)/float64(l.models), "B/model")
				runtime.KeepAlive(x)
			}
		})
	}
}

// TestWindowsOfRows: windows of a new version, which have its rows in place of sums, publish what windows of sums do:
// until the version has grown, and where rows come that its sample does not say all of.
func TestWindowsOfRows(t *testing.T) {
	t.Parallel()
	for name, odd := range map[string]func(b *arrowio.Batch, pane int64){
		"plain":         func(*arrowio.Batch, int64) {},
		"probabilities": func(b *arrowio.Batch, pane int64) { b.Probs = pane >= 3; asProbabilities(b) },
		"served": func(b *arrowio.Batch, pane int64) {
			if pane >= 3 {
				b.Served = slices.Repeat([]float32{.5}, b.N)
			}
		},
	} {
		var published [2][]pipeline.Message
		for i, sampled := range []int{99, 1000} { // with fewer rows than those of a new version there are sums
			x := newLoaded(load{keys: 1, k: 4, pane: 10 * time.Second, lag: 40 * time.Second, minute: 60})
			x.task.env.SampleRows, x.task.cfg.SampleRows = sampled, 1000
			for pane := range int64(14) {
				for _, kind := range []arrowio.Kind{arrowio.Predictions, arrowio.Labelled} {
					b := x.batch(kind, 1000+pane, 9)
					odd(b, pane)
					process(t, x.stats, b)
				}
				if err := x.stats.Advance(t.Context(), (1001+pane)*10*second, nil); err != nil {
					t.Fatal(err)
				}
				x.outbox.Punctuate(pipeline.Punctuation{Closed: 1001 + pane})
				for _, m := range x.outbox.Pending() {
					x.offset++
					r := pipeline.Record{Input: pipeline.Panes, Offset: x.offset, Value: m.Value}
					if err := x.task.Take(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				x.outbox.Clear()
				restarted(t, x)
			}
			published[i] = x.task.Outputs()
		}
		for i, m := range published[0] {
			if i >= len(published[1]) || string(m.Value) != string(published[1][i].Value) {
				t.Errorf("%s: record %d is\n%s of rows, of sums\n%s", name, i, published[1][i].Value, m.Value)
				break
			}
		}
		if len(published[0]) < 3*14 || len(published[0]) != len(published[1]) {
			t.Errorf("%s: %d records of rows, %d of sums", name, len(published[1]), len(published[0]))
		}
	}
}

// asProbabilities makes probabilities of logits where the batch is to have them.
func asProbabilities(b *arrowio.Batch) {
	for i := 0; b.Probs && i < b.N; i++ {
		sum, z := 0.0, b.Scores[i*b.K:(i+1)*b.K]
		for _, x := range z {
			sum += math.Exp(float64(x))
		}
		for j := range z {
			z[j] = float32(math.Exp(float64(z[j])) / sum)
		}
	}
}

func process(t *testing.T, s *stats.Operator, b *arrowio.Batch) {
	t.Helper()
	emit := func(*arrowio.Batch) (pipeline.Rejects, error) { return nil, nil }
	if _, err := s.Process(t.Context(), b, emit); err != nil {
		t.Fatal(err)
	}
}

// restarted gives the task a fresh one's place, from its checkpoint.
func restarted(t *testing.T, x *loaded) {
	t.Helper()
	c, err := pipeline.EncodeCheckpoint(x.task.Sections())
	if err != nil {
		t.Fatal(err)
	}
	next := NewTask(x.task.cfg, 0, pipeline.NewCounts(), quiet)
	next.env.SampleRows = x.task.env.SampleRows
	if err := pipeline.RestoreCheckpoint(c.Data, next.Sections(), nil); err != nil {
		t.Fatal(err)
	}
	next.out, x.task = x.task.out, next
}

// TestDamagedKeys: what is kept of a new version and of one that has grown is refused if it was damaged, or can be gone
// on with; nothing panics. A checkpoint has a checksum, so this is beyond a damaged disk.
func TestDamagedKeys(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	for _, rows := range []int{20, 60} {
		x := newModels(t, 1, rows, 3)
		x.task.cfg.Resamples = 1 // they cost time only
		good, err := taskState{x.task}.AppendState(nil)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 4))
		refused := 0
		const tries = 1000
		for range tries {
			bad := slices.Clone(good)
			for range 1 + r.IntN(3) {
				bad[r.IntN(len(bad))] = byte(r.Uint32())
			}
			next := NewTask(x.task.cfg, 0, pipeline.NewCounts(), quiet)
			if err := (taskState{next}).RestoreState(bad); err != nil {
				refused++
				continue
			}
			for _, m := range next.models {
				for _, v := range m.versions {
					for _, pane := range []int64{1_000_005, 1_000_500} { // the end of a slide, and of the windows
						_ = (&stepper{&next.fleet, v}).step(pane)
					}
				}
			}
		}
		if refused < tries/100 {
			t.Errorf("%d of %d damaged states were refused", refused, tries)
		}
	}
}
