package student

import (
	"math"
	"testing"
)

// TestIntervalByHand: mean 2, s = 1, and t₀.₉₇₅ with 2 degrees of freedom is 4.302653.
func TestIntervalByHand(t *testing.T) {
	for _, shared := range []float64{0, 1} {
		mean, h := Interval([]float64{1, 2, 3}, shared)
		if want := 4.302653 * math.Sqrt(1./3+shared); mean != 2 || math.Abs(h-want) > 1e-5 {
			t.Errorf("shared %g: %g ± %g, want 2 ± %g", shared, mean, h, want)
		}
	}
	if mean, h := Interval([]float64{1}, 1); mean != 1 || !math.IsNaN(h) {
		t.Errorf("one repeat: %g ± %g, want 1 ± NaN", mean, h)
	}
}
