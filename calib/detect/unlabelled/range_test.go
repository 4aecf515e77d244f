package unlabelled

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRangeOf(t *testing.T) {
	a, b := Estimate{Accuracy: .8, Lo: .79, Hi: .81}, Estimate{Accuracy: .7, Lo: .68, Hi: .72}
	both := []Estimate{a, b}
	none := func(n int, last ...float64) []float64 { return append(make([]float64, n-len(last)), last...) }
	refuted := Estimate{Lo: 1, Hi: 1, Accuracy: 1, Rejected: true}
	for name, c := range map[string]struct {
		past      []float64
		estimates []Estimate
		want      Range
	}{
		"untested":       {nil, both, Range{Lo: .68, Hi: .81}},
		"8 blocks":       {none(8), both, Range{Lo: .68, Hi: .81, Past: 8}},
		"9 blocks":       {none(9), both, Range{Lo: .68, Hi: .81, Past: 9, Known: true}},
		"one":            {none(9), []Estimate{a}, Range{Lo: .79, Hi: .81, Past: 9}},
		"largest of few": {[]float64{.008, 0, 0}, both, Range{Lo: .672, Hi: .818, Margin: .008, Past: 3}},
		"too wide":       {none(9, .02), both, Range{Lo: .66, Hi: .83, Margin: .02, Past: 9}},
		"ends":           {none(9, .5), both, Range{Lo: .18, Hi: 1, Margin: .5, Past: 9}},
		"9 of 10 of 19": {none(19, .008, .3, 0, 0), both,
			Range{Lo: .672, Hi: .818, Margin: .008, Past: 19, Stale: true}},
		"the largest of 18": {none(18, .01, .3, 0, 0), both,
			Range{Lo: .38, Hi: 1, Margin: .3, Past: 18, Stale: true}},
		"2 outside": {none(20, .001, .001), both,
			Range{Lo: .679, Hi: .811, Margin: .001, Past: 20, Stale: true}},
		"1 of 20 outside": {none(20, .3), both, Range{Lo: .68, Hi: .81, Past: 20, Known: true}},
		"1 of 9 outside":  {none(9, .001), both, Range{.679, .811, .001, 9, true, false, false}},
		"2, long ago": {append([]float64{.1, .1}, none(30)...), both,
			Range{Lo: .68, Hi: .81, Past: 32, Known: true}},
		"refuted": {none(20), []Estimate{{Lo: .96, Hi: .97}, refuted},
			Range{Lo: .96, Hi: 1, Past: 20, Rejected: true}},
	} {
		got := RangeOf(c.past, c.estimates...)
		if math.Abs(got.Lo-c.want.Lo) > 1e-12 || math.Abs(got.Hi-c.want.Hi) > 1e-12 {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
		if got.Lo, got.Hi = c.want.Lo, c.want.Hi; got != c.want {
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
