package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
)

// cellOf is a shard's encoded cell of so many rows of ten classes.
func cellOf(b *testing.B, seed uint64, rows int) []byte {
	cfg := worldtest.Accumulators()
	cfg.K = 10
	set, err := acc.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	block := acc.NewBlock(cfg.K)
	for ; rows > 0; rows -= acc.BlockRows(cfg.K) {
		n := min(rows, acc.BlockRows(cfg.K))
		scores := make([]float32, n*cfg.K)
		for i := range scores {
			scores[i] = float32(2 * rng.NormFloat64())
		}
		block.Score(scores, false)
		all := make([]int32, n)
		for i := range all {
			all[i] = int32(i)
			if err := block.SetRow(i, rng.IntN(cfg.K), 1, rng.Int64N(2e9), math.NaN()); err != nil {
				b.Fatal(err)
			}
		}
		if err := set.PredictRows(block, all); err != nil {
			b.Fatal(err)
		}
		if err := set.LabelRows(block, all); err != nil {
			b.Fatal(err)
		}
	}
	data, err := set.AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// BenchmarkInbox is a pane's cells of 5,000 rows of each of four shards, until they are taken.
func BenchmarkInbox(b *testing.B) {
	const shards, rows = 4, 5000
	var cells [shards][]byte
	for i := range cells {
		cells[i] = cellOf(b, uint64(i), rows)
	}
	var open openCells
	before := testsize.Processor(b)
	for b.Loop() {
		in := newInbox(&open)
		for _, data := range cells {
			set := new(acc.Set)
			if err := set.UnmarshalBinary(data); err != nil {
				b.Fatal(err)
			}
			if err := in.put(1, 1, newWaiting(data, set), 0); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := in.take(1, 1e9); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(testsize.Processor(b)-before)/float64(b.N)/shards/rows, "cpu-ns/row")
}
