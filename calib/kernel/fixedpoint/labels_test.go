package fixedpoint

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLabelKeys compares every path with the keys one by one.
func TestLabelKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	const n, k = 100, 7
	for name, on := range scaledPaths() {
		off := on()
		for _, m := range []int{1, 2, 15, 3600} {
			slack := 2e-6 * float64(m)
			if m == 1 {
				slack = 1
			}
			y, p := make([]int32, n), make([]float64, n)
			for i := range p {
				y[i], p[i] = int32(rng.IntN(k)), rng.Float64()
				switch rng.IntN(5) {
				case 0:
					p[i] = float64(rng.IntN(m+1)) / float64(m)
				case 1:
					p[i] = 1 - p[i]*1e-9
				}
			}
			for _, count := range []int{0, 1, 8, 13, n} {
				var rows []int32
				for range count {
					rows = append(rows, int32(rng.IntN(n)))
				}
				keys := make([]uint32, count)
				(&LabelRows{y, p, rows}).Keys(keys, m, slack)
				for x, i := range rows {
					at := min(p[i]*float64(m), float64(m)-2*slack)
					want := uint32(NoKey)
					if f := at - math.Floor(at); f > slack && f < 1-slack {
						want = uint32(y[i])*uint32(m+1) + uint32(at)
					}
					if keys[x] != want {
						t.Errorf("%s, m = %d, p = %v of class %d: key %d, want %d", name, m, p[i], y[i], keys[x], want)
					}
				}
			}
		}
		off()
	}
}

// TestRowLimits compares every path with the limits one by one.
func TestRowLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	for name, on := range scaledPaths() {
		off := on()
		for _, n := range []int{1, 5, 8, 33} {
			scales, edges, most := make([]float64, n), make([]uint32, n+1), make([]uint32, n+1)
			for i := range scales {
				scales[i] = math.Ldexp(1+rng.Float64(), rng.IntN(300)-200)
			}
			const untouched = 12345
			edges[n], most[n] = untouched, untouched
			rowLimits(edges[:n], most[:n], scales, 1.0/15)
			for i, s := range scales {
				if limit, small := limits(s, 1.0/15); edges[i] != small || most[i] != limit {
					t.Errorf("%s, scale %v: %d and %d, want %d and %d", name, s, edges[i], most[i], small, limit)
				}
			}
			if !slices.Equal([]uint32{edges[n], most[n]}, []uint32{untouched, untouched}) {
				t.Errorf("%s wrote beyond %d rows", name, n)
			}
		}
		off()
	}
}
