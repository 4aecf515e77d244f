package model

import (
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
				b.Scores[i*k+x.rand.IntN(k)] = 3
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

// BenchmarkNewModels measures what a new model costs a model task until it has 100 labelled rows.
func BenchmarkNewModels(b *testing.B) {
	for _, l := range []struct{ models, rows, panes int }{{10_000, 1, 1}, {1000, 1, 99}, {1000, 33, 3}} {
		b.Run(fmt.Sprintf("%d models/%d rows/%d panes", l.models, l.rows*l.panes, l.panes), func(b *testing.B) {
			for range b.N {
				before := testsize.HeapInUse()
				x := newModels(b, l.models, l.rows, l.panes)
				x.stats, x.outbox = nil, nil
				b.ReportMetric((testsize.HeapInUse()-before)/float64(l.models), "B/model")
				runtime.KeepAlive(x)
			}
		})
	}
}
