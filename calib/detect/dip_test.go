package detect

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drawStretches returns n rows in stretches of 250, row i right with probability p(i).
func drawStretches(rng *rand.Rand, n int, p func(i int) float64) []Stretch {
	out := make([]Stretch, n/250)
	for i := range n / 250 * 250 {
		s := &out[i/250]
		s.N++
		if rng.Float64() < p(i) {
			s.Right++
		}
	}
	return out
}

// turns are easy and hard rows, .93 and .75, in turns of so many rows, from a row of the first turn.
func turns(length, from int) func(i int) float64 {
	return func(i int) float64 { return []float64{.93, .75}[(i+from)/length%2] }
}

// TestDip: without variation the dip is 0 in about 95 of 100 windows; in turns of 1,000 rows and more it is what hard
// rows are below the mean, whatever row of a turn the window begins with.
func TestDip(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 1))
	for _, accuracy := range []float64{.5, .84, .97, .999} {
		over, most := 0, 0.
		for range 400 {
			dip := Dip(drawStretches(rng, 10_000, func(int) float64 { return accuracy }))
			if dip > 0 {
				over++
			}
			most = max(most, dip)
		}
		if float64(over) > 400*dipLevel+4*math.Sqrt(400*dipLevel) ||
			most > 3*math.Sqrt(accuracy*(1-accuracy)/250) {
			t.Errorf("accuracy %v: %d of 400 windows dip, by %.3f at most", accuracy, over, most)
		}
	}
	for _, length := range []int{1000, 2000, 4000} {
		for range 100 {
			s := drawStretches(rng, 10_000, turns(length, rng.IntN(length)))
			var all Stretch
			for _, x := range s {
				all = all.plus(x)
			}
			// A dip that is too small by more than the tolerance lets the alarm fire; too large, it hides falls.
			if low := all.Right/all.N - Dip(s); low < .68 || low > .785 {
				t.Errorf("turns of %d: accuracy %.3f, lowest %.3f, want about .75", length, all.Right/all.N, low)
			}
		}
	}
	for name, s := range map[string][]Stretch{"none": nil, "one": {{100, 3}}, "no rows": make([]Stretch, 8),
		"all right": {{100, 100}, {100, 100}}} {
		if d := Dip(s); d != 0 {
			t.Errorf("%s: dip %v, want 0", name, d)
		}
	}
}

// TestTurnsAreNoFall: a stationary stream of easy and hard turns does not raise NullAccuracy, and a fall of all its
// rows by .1 does. Without the dip it fires in every stream.
func TestTurnsAreNoFall(t *testing.T) {
	const runs, reference, rows = 12, 10_000, 60_000
	fired := map[string]int{}
	for run := range runs {
		for name, setup := range map[string]struct {
			fall  float64
			plain bool
		}{"turns": {}, "turns without the dip": {plain: true}, "fall by .1": {fall: .1}} {
			rng := rand.New(rand.NewPCG(17, uint64(run)))
			level := turns(2000, rng.IntN(2000))
			s := drawStretches(rng, reference+rows, func(i int) float64 {
				if i >= reference+rows/2 {
					return level(i) - setup.fall
				}
				return level(i)
			})
			if firesOnStretches(t, s, reference/250, setup.plain) {
				fired[name]++
			}
		}
	}
	if fired["turns"] != 0 || fired["turns without the dip"] != runs || fired["fall by .1"] < runs-1 {
		t.Errorf("fired in %v of %d runs", fired, runs)
	}
}

// firesOnStretches gives NullAccuracy one stretch a pane, after a reference of the first ones.
func firesOnStretches(t *testing.T, s []Stretch, learn int, plain bool) bool {
	t.Helper()
	pane := func(x Stretch) Pane {
		p := make(Pane, DefaultBins)
		p[13] = BinSums{N1: x.Right, C1: x.Right * .9, N0: x.N - x.Right, C0: (x.N - x.Right) * .9}
		return p
	}
	var all Stretch
	for _, x := range s[:learn] {
		all = all.plus(x)
	}
	ref, err := ReferenceCurve(pane(all), 1)
	if err != nil {
		t.Fatal(err)
	}
	if !plain {
		ref.AccuracyDip = Dip(s[:learn])
	}
	d, err := New(Spec{Null: NullAccuracy, Alpha: 1. / PanesPerYear10 / 3, Reference: ref})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range s[learn:] {
		if e, err := d.Observe(int64(i), pane(x)); err != nil {
			t.Fatal(err)
		} else if e != nil {
			return true
		}
	}
	return false
}
