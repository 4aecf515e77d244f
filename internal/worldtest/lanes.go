package worldtest

import (
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
)

// Lanes are the records of one shard by input, each in offset order.
type Lanes [2][]pipeline.Record

// Stream encodes rows for the given number of shards.
func Stream(t testing.TB, rows []batchtest.Row, shards, batch int) []Lanes {
	out := make([]Lanes, shards)
	for i, part := range batchtest.Split(rows, shards) {
		out[i] = Lanes{batchtest.Predictions(t, part, batch), batchtest.Labels(t, batchtest.ByLabelTime(part), batch)}
	}
	return out
}

// Pick chooses the lane to read next, given how much is left in each.
type Pick func(r *rand.Rand, left [2]int) int

// LogitsFirst reads all predictions before any label.
func LogitsFirst(_ *rand.Rand, left [2]int) int {
	if left[0] > 0 {
		return 0
	}
	return 1
}

// LabelsFirst reads all labels before any prediction.
func LabelsFirst(_ *rand.Rand, left [2]int) int {
	if left[1] > 0 {
		return 1
	}
	return 0
}

// AnyOrder takes a record of either at random.
func AnyOrder(r *rand.Rand, left [2]int) int {
	if r.IntN(left[0]+left[1]) < left[0] {
		return 0
	}
	return 1
}

// InTurn takes the topic of which more is left.
func InTurn(_ *rand.Rand, left [2]int) int {
	if left[0] >= left[1] && left[0] > 0 {
		return 0
	}
	return 1
}

// Records yields the records of both lanes, the next one always from the lane that p picks.
func (in Lanes) Records(r *rand.Rand, p Pick) iter.Seq[pipeline.Record] {
	return func(yield func(pipeline.Record) bool) {
		for next := [2]int{}; next[0] < len(in[0]) || next[1] < len(in[1]); {
			l := p(r, [2]int{len(in[0]) - next[0], len(in[1]) - next[1]})
			if !yield(in[l][next[l]]) {
				return
			}
			next[l]++
		}
	}
}
