package operators_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
)

// hotShard is a whole shard with one slice column, and messages of so many rows to feed it: predictions, then their
// labels, all in the pane that stays open.
type hotShard struct {
	*pipeline.Shard
	logits, labels []byte
	offset         [2]int64
}

const hotPane = int64(3600e9)

func newHotShard(tb testing.TB, k, rows int) *hotShard {
	tb.Helper()
	counts := pipeline.NewCounts()
	host := pipeline.Host{Out: pipeline.NewOut(counts), Outbox: pipeline.NewOutbox(0, 1, hotPane, 1), Counts: counts,
		Log: slog.New(slog.DiscardHandler)}
	columns := []string{"region"}
	s := pipeline.NewShard(pipeline.ShardSpec{Inputs: 2, PaneLength: hotPane, Watermark: pipeline.NewWatermark(2, 0),
		Decoder: arrowio.NewDecoder(arrowio.Options{Slices: columns}), Host: host,
		Stages: operators.Chain(operators.Config{
			Validate: &validate.Config{NeedID: true},
			Join:     &join.Options{Config: join.Config{Wait: time.Hour, MaxRows: 1 << 20}, Slices: columns},
			Stats:    &stats.Options{Acc: acc.Config{SampleRows: 64}, Pane: hotPane, MaxKeys: 100},
		}, host)})
	h := &hotShard{Shard: s}
	rng := rand.New(rand.NewPCG(1, uint64(k)))
	c := arrowio.Columns{Model: "m", Version: "1", K: k, Slices: []arrowio.StringColumn{{Name: "region"}}}
	label := make([]int32, rows)
	for i := range rows {
		c.IDs = append(c.IDs, fmt.Sprintf("id-%d", i))
		c.TS = append(c.TS, int64(i)*1e6)
		c.Slices[0].Values = append(c.Slices[0].Values, []string{"eu", "us", "ap"}[i%3])
		for range k {
			c.Logits = append(c.Logits, float32(3*rng.NormFloat64()))
		}
		label[i] = int32(rng.IntN(k))
	}
	var err error
	if h.logits, err = arrowio.EncodePredictions(c); err != nil {
		tb.Fatal(err)
	}
	if h.labels, err = arrowio.EncodeLabels("m", "1", c.IDs, c.TS, label); err != nil {
		tb.Fatal(err)
	}
	return h
}

// round takes the predictions and then their labels: every row waits, joins and is counted.
func (h *hotShard) round(tb testing.TB) {
	for in, value := range [][]byte{h.logits, h.labels} {
		r := pipeline.Record{Input: pipeline.Input(in), Topic: "t", Offset: h.offset[in], Value: value}
		h.offset[in]++
		if err := h.Take(tb.Context(), r); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestHotPathAllocatesNothingPerRow: what a message allocates does not grow with its rows.
func TestHotPathAllocatesNothingPerRow(t *testing.T) {
	perRound := func(rows int) float64 {
		h := newHotShard(t, 10, rows)
		for range 4 {
			h.round(t) // buffers reach their working size
		}
		return testing.AllocsPerRun(20, func() { h.round(t) })
	}
	small, large := perRound(100), perRound(2000)
	// The sample and the grids still grow a little: logarithmically often, not once a row.
	const slack = 20
	if large > small+slack {
		t.Errorf("a round of 2 messages allocates %.0f times at 100 rows, %.0f times at 2,000 rows", small, large)
	}
}

// BenchmarkShard is one row through decode, join and statistics, its label included.
func BenchmarkShard(b *testing.B) {
	for _, k := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("K=%d", k), func(b *testing.B) {
			const rows = 1000
			h := newHotShard(b, k, rows)
			for range 3 {
				h.round(b)
			}
			b.SetBytes(int64(len(h.logits) + len(h.labels)))
			b.ReportAllocs()
			for b.Loop() {
				h.round(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
