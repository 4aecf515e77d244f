package model

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/pipeline"
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

// TestNewModelsAtRest: a key that is new has the same state at rest and awake.
func TestNewModelsAtRest(t *testing.T) {
	x := newModels(t, 2, 5, 4)
	for name, m := range x.task.models {
		rest, err := m.append(nil, x.task.cfg.table)
		if err != nil {
			t.Fatal(err)
		}
		k := m.versions["1"].keys[""]
		if k.packed == nil || len(k.Sample)+len(k.Snapshots)+len(k.states) > 0 {
			t.Errorf("%s: a new key is not at rest", name)
		}
		if n := len(k.remembered()()); n != len(x.task.cfg.Windows) {
			t.Errorf("%s: %d snapshots are remembered at rest", name, n)
		}
		if k.wake(x.task); len(k.Sample) != 20 || len(k.Snapshots) != len(x.task.cfg.Windows) {
			t.Errorf("%s: %d sampled rows and %d snapshots", name, len(k.Sample), len(k.Snapshots))
		}
		if awake, err := m.append(nil, x.task.cfg.table); err != nil || !bytes.Equal(awake, rest) {
			t.Errorf("%s: %d bytes awake, %d at rest (%v)", name, len(awake), len(rest), err)
		}
	}
}

// BenchmarkNewModels measures what a new model costs a model task until it has 100 labelled rows.
func BenchmarkNewModels(b *testing.B) {
	for _, l := range []struct{ models, rows, panes int }{{10_000, 1, 1}, {200, 1, 99}, {500, 33, 3}} {
		b.Run(fmt.Sprintf("%d models/%d rows/%d panes", l.models, l.rows*l.panes, l.panes), func(b *testing.B) {
			for range b.N {
				before := testsize.HeapInUse()
				x := newModels(b, l.models, l.rows, l.panes)
				x.stats, x.outbox = nil, nil
				runtime.GC() // what pools keep goes with the second
				b.ReportMetric((testsize.HeapInUse()-before-taskBytes)/float64(l.models), "B/model")
				runtime.KeepAlive(x)
			}
		})
	}
}
