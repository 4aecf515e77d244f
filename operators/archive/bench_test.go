package archive

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/pipeline"
	sinkarchive "github.com/plumbline/plumbline/sinks/archive"
)

// BenchmarkArchive joins predictions that have features with their labels, in messages of 1,000 rows, without an
// archive and with one, files written to the end.
func BenchmarkArchive(b *testing.B) {
	const n, k = 1000, 10
	for _, d := range []int{512, 2048} {
		for _, archive := range []bool{false, true} {
			b.Run(fmt.Sprintf("D=%d/archive=%v", d, archive), func(b *testing.B) {
				cfg := join.Options{Config: join.Config{Wait: 1 << 60, MaxRows: 1 << 20}}
				counts := pipeline.NewCounts()
				h := pipeline.Host{Out: pipeline.NewOut(counts), Counts: counts, Log: quiet}
				next := func(*arrowio.Batch) (pipeline.Rejects, error) { return nil, nil }
				var a *Operator
				if archive {
					cfg.FeatureBytes = 2
					a = New(Options{Config: Config{Features: features(true), Logits: true, RollRows: 1 << 20,
						RollBytes: 256 << 20, RollTime: 1 << 60}, Group: "g", Dir: b.TempDir(), Name: "a",
						Publish: sinkarchive.New(sinkarchive.Config{Dir: b.TempDir(), MaxBytes: 1 << 30,
							Log: quiet}).Publish}, h)
					next = func(x *arrowio.Batch) (pipeline.Rejects, error) {
						return a.Process(context.Background(), x, func(*arrowio.Batch) (pipeline.Rejects, error) {
							return nil, nil
						})
					}
				}
				j := join.New(cfg, h)
				p := &arrowio.Batch{
					Kind:     arrowio.Predictions,
					N:        n,
					K:        k,
					D:        d,
					Models:   []arrowio.ModelKey{{Model: "m", Version: "1"}},
					IDs:      make([]arrowio.ID, n),
					TS:       make([]int64, n),
					Scores:   make([]float32, n*k),
					Features: make([]float32, n*d),
				}
				for i := range p.Features {
					p.Features[i] = float32(i%997) / 64
				}
				l := &arrowio.Batch{Kind: arrowio.Labels, N: n, Models: p.Models, IDs: p.IDs, TS: make([]int64, n),
					Label: make([]int32, n)}
				b.SetBytes(int64(n * d * 2))
				rows := 0
				for b.Loop() {
					for i := range p.IDs {
						p.IDs[i] = arrowio.HashIntID(uint64(rows + i))
					}
					rows += n
					for _, x := range []*arrowio.Batch{p, l} {
						if _, err := j.Process(context.Background(), x, next); err != nil {
							b.Fatal(err)
						}
					}
					if a != nil {
						a.queue.showAll()
					}
				}
				if a != nil {
					if err := errors.Join(a.Flush(context.Background()), a.Close()); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
			})
		}
	}
}
