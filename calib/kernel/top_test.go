package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTop: the short forms agree with the whole rows, and refuse the same.
func TestTop(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	near := func(a, b float64) bool { return math.Abs(a-b) <= 4e-15*max(1, math.Abs(b)) }
	for range 3000 {
		k := 1 + rng.IntN(40)
		z, p := make([]float64, k), make([]float64, k)
		scale := math.Exp(4*rng.Float64() - 1)
		for i := range z {
			z[i] = scale * rng.NormFloat64()
		}
		switch rng.IntN(12) {
		case 0:
			z[rng.IntN(k)] = math.Inf(rng.IntN(2)*2 - 1)
		case 1:
			z[rng.IntN(k)] = math.NaN()
		case 2:
			z[rng.IntN(k)] = 1e300
		}
		r, ok := Logits(z, p)
		got, gotOK := LogitTop(z, make([]float64, k))
		if ok != gotOK {
			t.Fatalf("%v: ok is %v, want %v", z, gotOK, ok)
		}
		if ok && (got.Arg != r.Arg || got.Max != r.Max || !near(got.LSE, r.LSE) || !near(got.Conf, r.Conf)) {
			t.Fatalf("%v: got %v, want %v", z, got, r)
		}
		if !ok {
			continue
		}
		switch rng.IntN(8) {
		case 0:
			p[rng.IntN(k)] += .06 * rng.Float64()
		case 1:
			p[rng.IntN(k)] *= -1
		}
		r, ok = Probs(p, make([]float64, k))
		got, gotOK = ProbTop(p)
		if ok != gotOK || ok && got != (Top{r.Arg, r.Max, r.LSE, r.Conf}) {
			t.Fatalf("%v: got %v, %v, want %v, %v", p, got, gotOK, r, ok)
		}
	}
	if _, ok := LogitTop(nil, nil); ok {
		t.Error("no logits are taken")
	}
	if _, ok := ProbTop(nil); ok {
		t.Error("no probabilities are taken")
	}
}
