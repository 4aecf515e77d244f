package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/pipeline"
)

// benchRows yields seeded logits for ever.
type benchRows struct {
	k      int
	slices []string // values of a column; nil = there is none
	random *rand.Rand
	pool   []float32 // rows are windows into it
}

func (s *benchRows) Schema() feed.Fields {
	f := feed.Fields{Model: "m", Version: "1", K: s.k}
	if s.slices != nil {
		f.Slices = []string{"region"}
	}
	return f
}

func (s *benchRows) Next(row *feed.Row) error {
	from := s.random.IntN(len(s.pool) - s.k)
	*row = feed.Row{Scores: s.pool[from : from+s.k], Label: int32(s.random.IntN(s.k)), Weight: 1}
	if s.slices != nil {
		at := s.random.IntN(len(s.slices))
		row.Slices = s.slices[at : at+1]
	}
	return nil
}

// benchCase is a stream and the join's settings.
type benchCase struct {
	k, batch int
	inline   bool // labels come with the predictions
	join     string
	set      func(*join.Config)
	slices   int // 0 = none
}

// benchRecords are rows with new ids and their labels, which follow within two seconds, in the order of a source.
func benchRecords(b *testing.B, c benchCase, rows int64) (records []pipeline.Record) {
	b.Helper()
	src := &benchRows{k: c.k, random: rand.New(rand.NewPCG(1, uint64(c.k))), pool: make([]float32, 1<<20)}
	for i := range c.slices {
		src.slices = append(src.slices, fmt.Sprintf("region-%d", i))
	}
	for i := range src.pool {
		src.pool[i] = float32(2 * src.random.NormFloat64())
	}
	f, err := feed.New(src, feed.Options{EventRate: 20_000, Start: 1_700_000_000e9, DelayMax: 2 * time.Second,
		InlineLabels: c.inline, Batch: c.batch, Seed: 1, Limit: rows, FlushEvery: 10 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	var next [2]int64
	for {
		m, err := f.Next()
		if errors.Is(err, io.EOF) {
			return records
		}
		if err != nil {
			b.Fatal(err)
		}
		in := pipeline.Logits
		if m.Stream == feed.Labels {
			in = pipeline.Labels
		}
		records = append(records, pipeline.Record{Input: in, Topic: in.String(), Offset: next[in], Time: m.Time,
			Key: m.Key, Value: m.Value})
		next[in]++
	}
}

// BenchmarkShard is everything between the fetch and the checkpoint, as configured by default, panes and the join's
// rows on disk included. An operation is a prediction and its label; the benchmark of the same name in operators is
// the part that is done for every row of one message again and again.
func BenchmarkShard(b *testing.B) {
	byDefault := func(*join.Config) {}
	memory := func(j *join.Config) { j.MemoryBytes = 0 }
	forget := func(j *join.Config) { j.Remember = 0 }
	for _, c := range []benchCase{
		{10, 1000, false, "default", byDefault, 0},
		{10, 1000, false, "memory", memory, 0},
		{10, 1000, false, "forget", forget, 0},
		{10, 1000, true, "inline", byDefault, 0},
		{10, 1, false, "default", byDefault, 0},
		{10, 1, true, "inline", byDefault, 0},
		{100, 1000, false, "default", byDefault, 0},
		{100, 1000, false, "memory", memory, 0},
		{100, 1000, false, "forget", forget, 0},
		{100, 1000, true, "inline", byDefault, 0},
		{1000, 256, false, "default", byDefault, 0},
		{1000, 256, false, "memory", memory, 0},
		{10, 1000, false, "default", byDefault, 100},
		{10, 1000, true, "inline", byDefault, 100},
	} {
		name := fmt.Sprintf("K=%d/join=%s", c.k, c.join)
		if c.batch == 1 {
			name += "/one"
		}
		if c.slices > 0 { // before the join, so that those without slices are chosen alone
			name = fmt.Sprintf("K=%d/slices=%d/join=%s", c.k, c.slices, c.join)
		}
		b.Run(name, func(b *testing.B) { benchShard(b, c) })
	}
}

func benchShard(b *testing.B, c benchCase) {
	cfg := config.Default()
	cfg.Checkpoints.Dir = b.TempDir()
	c.set(&cfg.Join)
	if c.slices > 0 {
		cfg.Slices.Columns = []string{"region"}
	}
	s, err := engine.New(cfg, slog.New(slog.DiscardHandler)).NewShard(0, 1, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	records := benchRecords(b, c, int64(b.N))
	b.ReportAllocs()
	before := testsize.Processor(b)
	b.ResetTimer()
	for _, r := range records {
		if err := s.Take(context.Background(), r); err != nil {
			b.Fatal(err)
		}
		if s.Decided().Full {
			s.Written()
		}
	}
	b.ReportMetric(float64(testsize.Processor(b)-before)/float64(b.N), "cpu-ns/op")
}
