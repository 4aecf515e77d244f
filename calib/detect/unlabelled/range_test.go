package unlabelled

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRangeOf(t *testing.T) {
	a, b := Estimate{Accuracy: .8, Lo: .79, Hi: .81}, Estimate{Accuracy: .7, Lo: .68, Hi: .72}
	both := []Estimate{a, b}
	for name, c := range map[string]struct {
		past      []float64
		estimates []Estimate
		want      Range
	}{
		"hull":              {nil, both, Range{Lo: .68, Hi: .81, Known: true}},
		"one":               {nil, []Estimate{a}, Range{Lo: .79, Hi: .81}},
		"largest of few":    {[]float64{.008, 0, .005}, both, Range{.672, .818, .008, 3, true}},
		"too wide":          {[]float64{.02}, both, Range{.66, .83, .02, 1, false}},
		"ends":              {[]float64{.5}, both, Range{.18, 1, .5, 1, false}},
		"9 of 10 of 19":     {append(make([]float64, 17), .008, .3), both, Range{.672, .818, .008, 19, true}},
		"the largest of 18": {append(make([]float64, 16), .01, .3), both, Range{.38, 1, .3, 18, false}},
	} {
		got := RangeOf(c.past, c.estimates...)
		if math.Abs(got.Lo-c.want.Lo) > 1e-12 || math.Abs(got.Hi-c.want.Hi) > 1e-12 || got.Margin != c.want.Margin ||
			got.Past != c.want.Past || got.Known != c.want.Known {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	// .9 ± 1.96·sqrt(.9·.1/10,000) = .9 ± .0059
	if x := Excess(9000, 10_000, a, b); math.Abs(x-(.9-.81-.0059)) > 1e-4 {
		t.Errorf("excess %v above", x)
	}
	if x := Excess(6000, 10_000, a, b); math.Abs(x-(.68-.6-.0096)) > 1e-4 {
		t.Errorf("excess %v below", x)
	}
	if x := Excess(7500, 10_000, a, b); x != 0 {
		t.Errorf("excess %v inside", x)
	}
}

// TestRangeCovers: where excesses are exchangeable, nine of ten ranges hold the next block, however wrong both
// estimates are.
func TestRangeCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 17))
	const runs, n = 2000, 19
	held := 0
	for range runs {
		block := func() (Estimate, float64) {
			truth := .5 + .3*rng.Float64()
			off := truth + .1*rng.NormFloat64()
			return Estimate{Lo: off, Hi: off}, truth
		}
		var past []float64
		for range n {
			e, truth := block()
			past = append(past, max(0, e.Lo-truth, truth-e.Hi))
		}
		e, truth := block()
		if r := RangeOf(past, e, e); r.Lo <= truth && truth <= r.Hi {
			held++
		}
	}
	// Four standard errors.
	if share := float64(held) / runs; share < .9-4*math.Sqrt(.09/runs) {
		t.Errorf("%.3f of the ranges hold the accuracy, want .9", share)
	}
}
