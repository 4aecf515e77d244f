package vexp

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestShifted(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var x []float64
	for range 20_003 {
		x = append(x, -rng.ExpFloat64()*math.Pow(10, 6*rng.Float64()-3))
	}
	x = append(x, 0, math.Copysign(0, -1), -5e-324, -700, math.Nextafter(-700, -701), -708, -745, -1e9,
		-math.MaxFloat64, math.Inf(-1), -math.Ln2/2, -1e-17)
	eachPath(t, func(t *testing.T) {
		for _, top := range []float64{0, 3.5, -1e3} {
			z, got := make([]float64, len(x)), make([]float64, len(x))
			for i, v := range x {
				z[i] = v + top
			}
			Shifted(got, z, top)
			for i, v := range z {
				d := v - top
				want := math.Exp(d)
				if d < Floor {
					want = 0
				}
				const ulps = 4e-16 // two units in the last place, one of each side
				if math.Abs(got[i]-want) > ulps*want {
					t.Fatalf("exp(%g) = %g, want %g", d, got[i], want)
				}
				if slow := expGo(d); math.Float64bits(slow) != math.Float64bits(got[i]) {
					t.Fatalf("exp(%g) = %g, plain %g", d, got[i], slow)
				}
			}
			Shifted(z, z, top)
			for i := range z {
				if math.Float64bits(z[i]) != math.Float64bits(got[i]) {
					t.Fatalf("in place: %g, apart %g", z[i], got[i])
				}
			}
		}
	})
	Shifted(nil, nil, 0)
}

func BenchmarkShifted(b *testing.B) {
	x, dst := make([]float64, 1000), make([]float64, 1000)
	for i := range x {
		x[i] = -float64(i) / 50
	}
	for b.Loop() {
		Shifted(dst, x, 0)
	}
}
