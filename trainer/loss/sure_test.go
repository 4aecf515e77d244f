package loss

import "testing"

// TestSureRowsKeepTheirOrder: aurc by negent ranks rows whose 1 − H/ln K is 1 in float64, and all of whose
// probabilities are 1 in float32: the surer a wrong row, the larger the loss.
func TestSureRowsKeepTheirOrder(t *testing.T) {
	l := mustParse(t, "aurc{csf:negent}(squared)")
	gaps := []float64{45, 80, 60, 50}
	last := 0.0
	for _, wrong := range []int{0, 3, 2, 1} { // ascending by gap
		z, y := make([]float64, 0, 2*len(gaps)), make([]int32, len(gaps))
		for _, g := range gaps {
			z = append(z, g, 0)
		}
		y[wrong] = 1
		v, err := l.Eval(z, Batch{N: len(gaps), K: 2, Y: y}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v <= last {
			t.Errorf("the row of gap %g is wrong: loss %v, want more than %v of a less sure one", gaps[wrong], v, last)
		}
		last = v
	}
}
