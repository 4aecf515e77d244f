package stage

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrdered: the order is that of a stable sort, also of values that leave no room for their places.
func TestOrdered(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 300 {
		for _, span := range []uint64{1, 3, 1 << 40, math.MaxUint64} {
			values, want, got := make([]int64, n), make([]uint64, n), make([]uint64, n)
			for i := range values {
				values[i], want[i] = int64(rng.Uint64N(span)), uint64(i)
			}
			slices.SortStableFunc(want, func(a, b uint64) int { return cmp.Compare(values[a], values[b]) })
			if ordered(got, func(i int) int64 { return values[i] }); !slices.Equal(got, want) {
				t.Fatalf("%d values below %d: %v, want %v", n, span, got, want)
			}
		}
	}
}

// TestRankOf: ranks compare as their numbers do.
func TestRankOf(t *testing.T) {
	inf := float32(math.Inf(1))
	xs := []float32{-inf, -math.MaxFloat32, -1, -math.SmallestNonzeroFloat32, float32(math.Copysign(0, -1)), 0,
		math.SmallestNonzeroFloat32, 1, math.MaxFloat32, inf}
	for _, a := range xs {
		for _, b := range xs {
			if cmp.Compare(rankOf(a), rankOf(b)) != cmp.Compare(a, b) {
				t.Errorf("%v and %v: ranks %d and %d", a, b, rankOf(a), rankOf(b))
			}
		}
	}
}
