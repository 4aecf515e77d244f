package loss

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/trainer/philox"
)

// TestVectors: what the processor's vectors compute is what the plain loops do: places, differences, sums by four and
// scaled rows to the bit, the sum of differences to its rounding.
func TestVectors(t *testing.T) {
	src := philox.Source{Stream: philox.Stream{Seed: 1}}
	for _, n := range []int{1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 100, 1000, 1003} {
		for range 20 {
			z := make([]float32, n)
			for i := range z {
				z[i] = float32(int(40*src.Float64())-20) / 4 // ties
			}
			top := highestGo(z)
			if got := highest32(z); got != top {
				t.Fatalf("%d values: highest at %d, want %d: %v", n, got, top, z)
			}
			d, want := make([]float64, n), make([]float64, n)
			m := float64(z[top])
			if got, sum := minus32(d, z, m), minusGo(want, z, m); math.Abs(got-sum) > 1e-12*math.Abs(sum) {
				t.Errorf("%d values: sum of differences %v, want %v", n, got, sum)
			}
			p := make([]float64, n)
			for i := range d {
				if d[i] != want[i] {
					t.Fatalf("%d values: difference %d is %v, want %v", n, i, d[i], want[i])
				}
				p[i] = math.Exp(d[i] - src.Float64())
			}
			if got, sum := total(p), totalGo(p); got != sum {
				t.Errorf("%d values: sum %v, want %v", n, got, sum)
			}
			g, by := make([]float32, n), make([]float32, n)
			scaled32(g, p, 0.37, 1.0/128)
			scaledGo(by, p, 0.37, 1.0/128)
			for i := range g {
				if g[i] != by[i] {
					t.Fatalf("%d values: scaled %d is %v, want %v", n, i, g[i], by[i])
				}
			}
		}
	}
}

// TestVectorsSeeNaN: a value that is not finite is seen at every place, and so is a row of them.
func TestVectorsSeeNaN(t *testing.T) {
	for _, n := range []int{5, 8, 12, 24, 100} {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			for at := -1; at < n; at++ {
				z := make([]float32, n)
				for i := range z {
					if z[i] = float32(i % 3); at < 0 || i == at {
						z[i] = bad
					}
				}
				r := rows{}
				r.resize(Batch{N: 1, K: n})
				if differences(&r, 0, z) {
					t.Errorf("%d values, %v at %d: taken for finite", n, bad, at)
				}
			}
		}
	}
}
