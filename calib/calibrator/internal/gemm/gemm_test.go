package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func random(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// plain is the definition, with a fused product and sum.
func plain(c []float64, a func(i, p int) float64, b []float64, m, n, k, cs, bs int) []float64 {
	out := append([]float64(nil), c...)
	for i := range m {
		for j := range n {
			for p := range k {
				out[i*cs+j] = math.FMA(a(i, p), b[p*bs+j], out[i*cs+j])
			}
		}
	}
	return out
}

func TestAddAgainstDefinition(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, s := range []struct{ m, n, k, more int }{
			{8, 16, 1, 0}, {8, 16, 0, 0}, {16, 32, 7, 3}, {40, 48, 101, 5}, {0, 16, 3, 0},
		} {
			cs, as, at, bs := s.n+s.more, s.k+s.more, s.m+s.more, s.n+s.more
			c, a, b := random(rng, s.m*cs), random(rng, max(s.m*as, s.k*at)), random(rng, s.k*bs)
			of := Size{s.m, s.n, s.k}
			check := func(name string, want []float64, f func(c []float64)) {
				t.Helper()
				got := append([]float64(nil), c...)
				f(got)
				for i := range got {
					if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
						t.Fatalf("%s %+v, element %d: got %g, want %g", name, s, i, got[i], want[i])
					}
				}
			}
			check("Add", plain(c, func(i, p int) float64 { return a[i*as+p] }, b, s.m, s.n, s.k, cs, bs),
				func(c []float64) { Add(Matrix{c, cs}, Matrix{a, as}, Matrix{b, bs}, of) })
			check("AddTransposed", plain(c, func(i, p int) float64 { return a[p*at+i] }, b, s.m, s.n, s.k, cs, bs),
				func(c []float64) { AddTransposed(Matrix{c, cs}, Matrix{a, at}, Matrix{b, bs}, of) })
		}
	})
}

func TestAddPanics(t *testing.T) {
	of := func(n, stride int) Matrix { return Matrix{make([]float64, n), stride} }
	for name, f := range map[string]func(){
		"rows":    func() { Add(of(128, 16), of(7, 1), of(16, 16), Size{7, 16, 1}) },
		"columns": func() { Add(of(128, 16), of(8, 1), of(16, 16), Size{8, 15, 1}) },
		"c":       func() { Add(of(127, 16), of(8, 1), of(16, 16), Size{8, 16, 1}) },
		"a":       func() { Add(of(128, 16), of(7, 1), of(16, 16), Size{8, 16, 1}) },
		"b":       func() { Add(of(128, 16), of(8, 1), of(15, 16), Size{8, 16, 1}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			f()
		}()
	}
}

func BenchmarkAdd(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{112, 1008} {
		b.Run(fmt.Sprint(k), func(b *testing.B) {
			const m = 256
			c, x, w := make([]float64, m*k), random(rng, m*k), random(rng, k*k)
			for b.Loop() {
				Add(Matrix{c, k}, Matrix{x, k}, Matrix{w, k}, Size{m, k, k})
			}
			b.ReportMetric(2*float64(m*k*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
