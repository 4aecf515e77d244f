package join

import (
	"context"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// BenchmarkJoin is one prediction of ten classes and its label through the join where 100,000 other predictions wait:
// all in memory; all on disk but the latest; and with joined ids remembered, so that every row gets to disk.
func BenchmarkJoin(b *testing.B) {
	const rows, waiting = 1000, 100_000
	for _, c := range []struct {
		name string
		cfg  Options
	}{{"memory", Options{}}, {"disk", Options{Config: Config{MemoryBytes: 1 << 20}}}, {"disk remembered",
		Options{Config: Config{MemoryBytes: 1 << 20, Remember: 100_000}}}} {
		b.Run(c.name, func(b *testing.B) {
			cfg := c.cfg
			cfg.Wait, cfg.MaxRows, cfg.Slices, cfg.Dir, cfg.Name = time.Hour, 1<<20, []string{"region"},
				b.TempDir(), "shard"
			counts := pipeline.NewCounts()
			j := New(cfg, host(counts))
			predictions, labels := predictionBatch(rows, 10), labelBatch(rows)
			process := func(batch *arrowio.Batch, at int) {
				fillBatch(batch, at)
				if _, err := j.Process(context.Background(), batch, func(*arrowio.Batch) (pipeline.Rejects, error) {
					return nil, nil
				}); err != nil {
					b.Fatal(err)
				}
			}
			for at := 0; at < waiting; at += rows {
				process(predictions, at)
			}
			b.ReportAllocs()
			at := waiting
			for b.Loop() {
				process(predictions, at)
				process(labels, at-waiting)
				at += rows
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
