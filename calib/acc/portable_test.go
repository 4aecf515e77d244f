package acc

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
)

// TestPortable compares with package math, which is within an ulp of the truth.
func TestPortable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	check := func(name string, x, got, want float64) {
		t.Helper()
		if ulps := math.Abs(want) * 0x1p-51; !(math.Abs(got-want) <= ulps) {
			t.Fatalf("%s(%v): got %v, want %v", name, x, got, want)
		}
	}
	for range 200000 {
		x := (rng.Float64()*2 - 1) * math.Ldexp(1, -rng.IntN(40)) * 700
		check("exp", x, fixedpoint.Exp(x), math.Exp(x))
		y := math.Ldexp(1+rng.Float64(), rng.IntN(120)-60)
		check("log", y, log(y), math.Log(y))
	}
	for _, x := range []float64{0, 1, -1, 700, -700, math.Ln2, -math.Ln2 / 64, math.Ln2 / 64} {
		check("exp", x, fixedpoint.Exp(x), math.Exp(x))
	}
	for _, x := range []float64{0x1p-60, math.Sqrt2 - 1, 1, 2, 3, 1e300, 0x1p53, 0x1p54} {
		check("log", 1+x, log(1+x), math.Log(1+x))
	}
	if fixedpoint.Exp(-1e300) != 0 || fixedpoint.Exp(0) != 1 || log(1) != 0 {
		t.Errorf("exact values: %v %v %v", fixedpoint.Exp(-1e300), fixedpoint.Exp(0), log(1))
	}
}
