package unlabelled

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// TestCorrectnessShift draws references and windows of other accuracy from the same two distributions: estimates are
// unbiased, and their interval holds the truth in about 95 % of the cases.
func TestCorrectnessShift(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, right bool) []float64 {
		h := make([]float64, 20)
		for range n {
			c := r.Float64()
			if right {
				c = math.Sqrt(c) // density 2c
			}
			h[int(c*20)]++
		}
		return h
	}
	for _, c := range []struct {
		right, wrong int // rows of the reference
		accuracy     float64
	}{{3000, 1000, .2}, {3000, 1000, .5}, {3000, 1000, .9}, {400, 30, .2}, {400, 30, .5}, {400, 30, .9}} {
		accuracy := c.accuracy
		var sum float64
		held, runs, m := 0, 400, 2000
		for range runs {
			right := int(accuracy * float64(m))
			now := draw(right, true)
			for i, x := range draw(m-right, false) {
				now[i] += x
			}
			e, err := CorrectnessShift(draw(c.right, true), draw(c.wrong, false), now)
			if err != nil {
				t.Fatal(err)
			}
			if e.N != int64(m) || !math.IsNaN(e.ECE) || e.Assumption == "" {
				t.Fatalf("estimate %+v", e)
			}
			sum += e.Accuracy
			if e.Lo <= accuracy && accuracy <= e.Hi {
				held++
			}
		}
		// Four standard errors of the mean, and of the coverage of a 95 % interval, which is conservative here: the
		// share of right rows of a window is fixed.
		if mean := sum / float64(runs); c.wrong > 100 && math.Abs(mean-accuracy) > .02 {
			t.Errorf("accuracy %v: mean estimate %.4f", accuracy, mean)
		}
		if share := float64(held) / float64(runs); share < .95-4*math.Sqrt(.95*.05/float64(runs)) {
			t.Errorf("accuracy %v, %d wrong rows of reference: %.3f of the intervals hold it", accuracy, c.wrong, share)
		}
	}
	flat := []float64{100, 100}
	for name, in := range map[string][3][]float64{
		"no contrast": {flat, flat, flat}, "few": {{1, 2}, flat, flat}, "shape": {flat, flat, {1, 2, 3}},
		"negative": {{-1, 200}, flat, flat}, "NaN": {flat, flat, {math.NaN(), 50}},
	} {
		if _, err := CorrectnessShift(in[0], in[1], in[2]); !errors.Is(err, ErrInput) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestCorrectnessRefuted: t = .8 and f = .2. Shares of sure rows beyond these are no mixture of them, so there is no
// estimate; within noise of them there is one, of some width.
func TestCorrectnessRefuted(t *testing.T) {
	for name, c := range map[string]struct {
		unsure, sure float64
		rejected     bool
	}{
		"half":                   {500, 500, false},
		"all right":              {200, 800, false},
		"all wrong":              {800, 200, false},
		"a little surer":         {190, 810, false},
		"a little less sure":     {815, 185, false},
		"surer than right":       {50, 950, true},
		"less sure than wrong":   {950, 50, true},
		"all sure":               {0, 1000, true},
		"none sure":              {1000, 0, true},
		"all sure, but few rows": {0, 10, false},
	} {
		e, err := CorrectnessShift([]float64{200, 800}, []float64{800, 200}, []float64{c.unsure, c.sure})
		if err != nil {
			t.Fatal(err)
		}
		if e.Rejected != c.rejected || !c.rejected && e.Hi-e.Lo < .005 {
			t.Errorf("%s: %+v, want rejected: %t, or else a width", name, e, c.rejected)
		}
		if e.Lo < 0 || e.Hi > 1 || e.Accuracy < e.Lo || e.Accuracy > e.Hi {
			t.Errorf("%s: %+v is not in [0, 1]", name, e)
		}
	}
	// A reference of few rows: t - f is within its own error, so nothing is refuted.
	e, err := CorrectnessShift([]float64{6, 6}, []float64{7, 5}, []float64{0, 1000})
	if err != nil || e.Rejected || e.Lo != 0 || e.Hi != 1 {
		t.Errorf("few rows of reference: %+v, %v", e, err)
	}
}
