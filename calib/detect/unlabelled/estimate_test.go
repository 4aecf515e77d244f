package unlabelled

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
)

// TestConfidenceBased: raw confidence c, true rate q(c) = c². With the right calibrator the interval holds the
// accuracy of the drawn labels in 95 %, ECE is that of the definition on rows, and the miss is no news; with the wrong
// one it is.
func TestConfidenceBased(t *testing.T) {
	square := func(c float64) float64 { return c * c }
	rng := rand.New(rand.NewPCG(1, 1))
	const trials = 200
	inside, squares := 0, 0.0
	for range trials {
		var g acc.Grid
		var right float64
		ece := make([]float64, 15)
		const n = 1000
		for range n {
			c := rng.Float64()
			if err := g.Add(c, 1, false); err != nil {
				t.Fatal(err)
			}
			ece[metric.BinIndex(c, 15)] += (square(c) - c) / n
			if rng.Float64() < square(c) {
				right++
			}
		}
		e := ConfidenceBased(g.Groups(), square, 15)
		if e.N != n || e.Assumption == "" {
			t.Fatalf("%+v", e)
		}
		var want float64
		for _, x := range ece {
			want += math.Abs(x)
		}
		if math.Abs(e.ECE-want) > 1e-6 { // cells are 1/3600 wide
			t.Fatalf("ECE %v, on rows %v", e.ECE, want)
		}
		if e.Lo <= right/n && right/n <= e.Hi {
			inside++
		}
		m := e.Against(right, n)
		if squares += m.Z * m.Z; math.Abs(m.Z) > 5 {
			t.Errorf("right calibrator: miss %+v", m)
		}
		if m := ConfidenceBased(g.Groups(), nil, 15).Against(right, n); m.Z < 5 {
			t.Errorf("wrong calibrator: miss %+v, want far above", m)
		}
	}
	if inside < trials*90/100 || inside == trials {
		t.Errorf("%d of %d intervals hold the accuracy, want about 95 %%", inside, trials)
	}
	if v := squares / trials; v < .7 || v > 1.4 {
		t.Errorf("Z of a true assumption has variance %v, want about 1", v)
	}
	if e := ConfidenceBased(nil, nil, 15); !math.IsNaN(e.Accuracy) || e.N != 0 {
		t.Errorf("no rows: %+v", e)
	}
}
