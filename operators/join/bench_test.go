package join

import (
	"context"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

// BenchmarkJoin is one prediction of ten classes and its label through the join where others wait: all in memory, and
// a million ids remembered too; all on disk but the latest; and with joined ids remembered, so that every row gets to
// disk.
func BenchmarkJoin(b *testing.B) {
	const rows = 1000
	for _, c := range []struct {
		name    string
		waiting int
		cfg     Options
	}{
		{"memory", 100_000, Options{}},
		{"memory 1M", 1_000_000, Options{}},
		{"memory 1M remembered 1M", 1_000_000, Options{Config: Config{Remember: 1_000_000}}},
		{"disk", 100_000, Options{Config: Config{MemoryBytes: 1 << 20}}},
		{"disk remembered", 100_000, Options{Config: Config{MemoryBytes: 1 << 20, Remember: 100_000}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg, waiting := c.cfg, c.waiting
			cfg.Wait, cfg.MaxRows, cfg.Slices, cfg.Dir, cfg.Name = time.Hour, 1<<21, []string{"region"},
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
			at := waiting
			step := func() {
				process(predictions, at)
				process(labels, at-waiting)
				at += rows
			}
			for range cfg.Remember / rows {
				step()
			}
			b.ReportAllocs()
			before := testsize.Processor(b)
			for b.Loop() {
				step()
			}
			b.ReportMetric(float64(testsize.Processor(b)-before)/float64(b.N)/rows, "cpu-ns/row")
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
