package detect

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestWealthIsItsLogarithm compares R with log R ← log(R + inject) + l by itself, over walks that leave float64 at
// both ends and come back.
func TestWealthIsItsLogarithm(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	large, small := 0, 0
	for _, size := range []float64{.1, 5, 80, 2000, 1e8} {
		w, log, inject := wealth(0), math.Inf(-1), 1.0
		drift := size / 4
		for i := range 2000 {
			if i%200 == 0 {
				drift, inject = -drift, 1/float64(i+1)
			}
			l := drift + size*rng.NormFloat64()
			w = w.bet(inject, math.Exp(l), l)
			top, other := max(log, math.Log(inject)), min(log, math.Log(inject))
			log = top + math.Log1p(math.Exp(other-top)) + l
			if !w.valid() {
				t.Fatalf("steps of %v: R is %v", size, float64(w))
			}
			switch got := w.log(); {
			case log < -700: // R is next to 0, and what a pane adds is all of the next one
				small++
				if got > -690 {
					t.Fatalf("steps of %v: log R is %v, want %v", size, got, log)
				}
			case math.Abs(got-log) > 1e-9*(1+math.Abs(log)):
				t.Fatalf("steps of %v, step %d: log R is %v, want %v", size, i, got, log)
			case w < 0:
				large++
			}
		}
	}
	if large < 100 || small < 100 {
		t.Errorf("%d values beyond e^%d and %d near 0: too few to compare", large, wealthTop, small)
	}
}
