package unlabelled

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRangeOf(t *testing.T) {
	a, b := Estimate{Accuracy: .8, Lo: .79, Hi: .81}, Estimate{Accuracy: .7, Lo: .68, Hi: .72}
	both := []Estimate{a, b}
	// None outside but the last ones, with their excesses.
	none := func(n int, last ...float64) []Past {
		out := make([]Past, n)
		for i, x := range last {
			out[n-len(last)+i].Excess = x
		}
		return out
	}
	refuted := Estimate{Lo: 1, Hi: 1, Accuracy: 1, Rejected: true}
	for name, c := range map[string]struct {
		past      []Past
		stale     bool
		estimates []Estimate
		want      Range
	}{
		"untested":       {nil, false, both, Range{Lo: .68, Hi: .81}},
		"8 blocks":       {none(8), false, both, Range{Lo: .68, Hi: .81, Past: 8}},
		"9 blocks":       {none(9), false, both, Range{Lo: .68, Hi: .81, Past: 9, Known: true}},
		"one":            {none(9), false, []Estimate{a}, Range{Lo: .79, Hi: .81, Past: 9}},
		"largest of few": {none(3, .008, 0, 0), false, both, Range{Lo: .672, Hi: .818, Margin: .008, Past: 3}},
		"too wide":       {none(9, .02), false, both, Range{Lo: .66, Hi: .83, Margin: .02, Past: 9}},
		"ends":           {none(9, .5), false, both, Range{Lo: .18, Hi: 1, Margin: .5, Past: 9}},
		"9 of 10 of 19": {none(19, .008, .3, 0, 0), false, both,
			Range{Lo: .672, Hi: .818, Margin: .008, Past: 19, Known: true}},
		"the largest of 18": {none(18, .01, .3, 0, 0), false, both,
			Range{Lo: .38, Hi: 1, Margin: .3, Past: 18}},
		"stale":           {none(20), true, both, Range{Lo: .68, Hi: .81, Past: 20, Stale: true}},
		"1 of 20 outside": {none(20, .3), false, both, Range{Lo: .68, Hi: .81, Past: 20, Known: true}},
		"1 of 9 outside":  {none(9, .001), false, both, Range{.679, .811, .001, 9, true, false, false}},
		"refuted": {none(20), false, []Estimate{{Lo: .96, Hi: .97}, refuted},
			Range{Lo: .96, Hi: 1, Past: 20, Rejected: true}},
	} {
		got := RangeOf(c.past, c.stale, c.estimates...)
		if math.Abs(got.Lo-c.want.Lo) > 1e-12 || math.Abs(got.Hi-c.want.Hi) > 1e-12 {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
		if got.Lo, got.Hi = c.want.Lo, c.want.Hi; got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	// .9 ± 1.96·sqrt(.9·.1/10,000) = .9 ± .0059
	if x := PastOf(9000, 10_000, a, b); x.Rows != 10_000 || math.Abs(x.Miss-.1) > 1e-12 ||
		math.Abs(x.Excess-(.9-.81-.0059)) > 1e-4 {
		t.Errorf("%+v above", x)
	}
	if x := PastOf(6000, 10_000, a, b); math.Abs(x.Miss+.1) > 1e-12 || math.Abs(x.Excess-(.68-.6-.0096)) > 1e-4 {
		t.Errorf("%+v below", x)
	}
	if x := PastOf(7500, 10_000, a, b); x != (Past{Rows: 10_000}) {
		t.Errorf("%+v inside", x)
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
		var past []Past
		for range n {
			e, truth := block()
			past = append(past, Past{Excess: max(0, e.Lo-truth, truth-e.Hi)})
		}
		e, truth := block()
		if r := RangeOf(past, false, e, e); r.Lo <= truth && truth <= r.Hi {
			held++
		}
	}
	// Four standard errors.
	if share := float64(held) / runs; share < .9-4*math.Sqrt(.09/runs) {
		t.Errorf("%.3f of the ranges hold the accuracy, want .9", share)
	}
}

// TestStale: the newest blocks together show what none of them does alone; one bad block is no change.
func TestStale(t *testing.T) {
	const right, rows = 9000, 10_000 // A = .9: a block of 1,000 has a standard error of .0095
	blocks := func(n int, miss ...float64) []Past {
		out := make([]Past, n)
		for i := range out {
			out[i].Rows = 1000
		}
		for i, x := range miss {
			out[n-len(miss)+i].Miss = x
		}
		return out
	}
	all := func(x float64) []float64 { return []float64{x, x, x, x, x, x, x, x, x, x} }
	for name, c := range map[string]struct {
		past []Past
		want bool
	}{
		"none":                 {nil, false},
		"one":                  {blocks(1, -.5), false},
		"between":              {blocks(20), false},
		"one bad block":        {blocks(20, -.5, 0, 0), false},
		"each within noise":    {blocks(20, all(-.014)...), true},
		"above":                {blocks(20, all(.014)...), true},
		"by less than chance":  {blocks(20, all(-.012)...), false},
		"both ways":            {blocks(20, .1, -.1, .1, -.1, .1, -.1, .1, -.1, .1, -.1), false},
		"long ago":             {append(blocks(10, all(-.1)...), blocks(10)...), false},
		"written without them": {make([]Past, 20), false},
	} {
		if got := Stale(c.past, right, rows); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if Stale(blocks(20, all(-.5)...), 0, 0) {
		t.Error("stale without a reference")
	}
}
