package join

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

// BenchmarkJoin is one prediction of ten classes and its label through the join where others wait: all in memory, and
// a million ids remembered too, with labels in the order of predictions and in none; all on disk but the latest; and
// with joined ids remembered, so that every row gets to disk.
func BenchmarkJoin(b *testing.B) {
	const rows = 1000
	random := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name    string
		waiting int
		random  bool
		cfg     Options
	}{
		{"memory", 100_000, false, Options{}},
		{"memory 1M", 1_000_000, false, Options{}},
		{"memory 1M remembered 1M", 1_000_000, false, Options{Config: Config{Remember: 1_000_000}}},
		{"memory 1M remembered 1M random", 1_000_000, true, Options{Config: Config{Remember: 1_000_000}}},
		{"disk", 100_000, false, Options{Config: Config{MemoryBytes: 1 << 20}}},
		{"disk remembered", 100_000, false, Options{Config: Config{MemoryBytes: 1 << 20, Remember: 100_000}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg, waiting := c.cfg, c.waiting
			cfg.Wait, cfg.MaxRows, cfg.Slices, cfg.Dir, cfg.Name = time.Hour, 1<<21, []string{"region"},
				b.TempDir(), "shard"
			counts := pipeline.NewCounts()
			j := New(cfg, host(counts))
			predictions, labels := predictionBatch(rows, 10), labelBatch(rows)
			process := func(batch *arrowio.Batch) {
				if _, err := j.Process(context.Background(), batch, func(*arrowio.Batch) (pipeline.Rejects, error) {
					return nil, nil
				}); err != nil {
					b.Fatal(err)
				}
			}
			var waits []arrowio.ID // of random labels
			predict := func(at int) {
				if fillBatch(predictions, at); c.random {
					waits = append(waits, predictions.IDs...)
				}
				process(predictions)
			}
			for at := 0; at < waiting; at += rows {
				predict(at)
			}
			at := waiting
			step := func() {
				predict(at)
				fillBatch(labels, at-waiting)
				for i := range labels.IDs {
					if c.random {
						last := len(waits) - 1
						from := random.IntN(len(waits))
						labels.IDs[i], waits[from], waits = waits[from], waits[last], waits[:last]
					}
				}
				process(labels)
				at += rows
			}
			for range cfg.Remember / rows {
				step()
			}
			measure(b, j, rows, step)
		})
	}
}

// BenchmarkInline is one prediction that comes with its label, where a million such are remembered.
func BenchmarkInline(b *testing.B) {
	const rows, remember = 1000, 1_000_000
	var cfg Options
	cfg.Wait, cfg.MaxRows, cfg.Remember, cfg.Dir, cfg.Name = time.Hour, 1<<21, remember, b.TempDir(), "shard"
	j := New(cfg, host(pipeline.NewCounts()))
	batch, at := predictionBatch(rows, 10), 0
	batch.Label = make([]int32, rows)
	step := func() {
		fillBatch(batch, at)
		at += rows
		if _, err := j.Process(b.Context(), batch, func(*arrowio.Batch) (pipeline.Rejects, error) {
			return nil, nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	for at < remember {
		step()
	}
	measure(b, j, rows, step)
}

// measure reports the processor time of a row, where a step takes so many, and closes the join.
func measure(b *testing.B, j *Operator, rows int, step func()) {
	b.Helper()
	b.ReportAllocs()
	before := testsize.Processor(b)
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(testsize.Processor(b)-before)/float64(b.N)/float64(rows), "cpu-ns/row")
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkState is the state of 100,000 waiting predictions of ten classes, by row.
func BenchmarkState(b *testing.B) {
	const rows, waiting = 1000, 100_000
	var cfg Options
	cfg.Wait, cfg.MaxRows, cfg.Slices, cfg.Dir, cfg.Name = time.Hour, 1<<21, []string{"region"}, b.TempDir(), "shard"
	j := New(cfg, host(pipeline.NewCounts()))
	batch := predictionBatch(rows, 10)
	for at := 0; at < waiting; at += rows {
		fillBatch(batch, at)
		if _, err := j.Process(b.Context(), batch, func(*arrowio.Batch) (pipeline.Rejects, error) {
			return nil, nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	var state []byte
	for b.Loop() {
		var err error
		if state, err = j.AppendState(state[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/waiting, "ns/row")
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}
