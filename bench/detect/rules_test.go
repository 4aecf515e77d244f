package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// someRows are n rows, right with the confidence less off.
func someRows(n int, off float64) []drawn {
	rng := rand.New(rand.NewPCG(4, 1))
	out := make([]drawn, n)
	for i := range out {
		c := .3 + .7*rng.Float64()
		out[i] = drawn{c, rng.Float64() < c-off}
	}
	return out
}

// TestWindowed: the running sums of the fixed-window rule give the ECE of the last rows.
func TestWindowed(t *testing.T) {
	rows := someRows(3000, .1)
	seen := 0
	windowed(rows, func(row int, ece float64) bool {
		seen++
		var gap [bins]float64
		for _, r := range rows[row-windowRows : row] {
			gap[binOf(r.c)] -= r.c
			if r.right {
				gap[binOf(r.c)]++
			}
		}
		var want float64
		for _, g := range gap {
			want += math.Abs(g) / windowRows
		}
		if math.Abs(ece-want) > 1e-9 {
			t.Fatalf("row %d: ECE %v, want %v", row, ece, want)
		}
		return true
	})
	if want := (3000-windowRows)/windowStep + 1; seen != want {
		t.Errorf("%d evaluations, want %d", seen, want)
	}
	first, early, err := windowAt(.2).first(append(someRows(2000, 0), someRows(2000, .4)...), 2000)
	if err != nil || early || first < 2100 || first > 3000 {
		t.Errorf("first alarm at %d, early %v, error %v", first, early, err)
	}
}

// TestRowsNeeded: for one bin that is off, the oracle is ln(2/α) over a divergence or a bet's growth; none is needed
// inside the tolerance.
func TestRowsNeeded(t *testing.T) {
	at := func(rate float64) pool { return pool{c: []float64{.8, .8}, p: []float64{rate, rate}} }
	if got := rowsNeeded(at(.79)); !math.IsInf(got, 1) {
		t.Errorf("within the tolerance: %v rows", got)
	}
	// H0-ECE: the boundary is .78, and bets of all stakes up to .88 nearly reach the divergence from it.
	for _, rate := range []float64{.7, .6} {
		got, want := rowsNeeded(at(rate)), math.Log(2*yearly)/kl(rate, .78)
		if got < want*(1-1e-9) || got > want*1.4 {
			t.Errorf("rate %v: %v rows, want about %v", rate, got, want)
		}
	}
}

// TestRegimes: blocks keep their level for their length, waves their mean, and the change takes the fall off.
func TestRegimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	level := blocks(50, easyHard)(rng)
	changes := 0
	for row := 1; row < 1000; row++ {
		if level(row) != level(row-1) {
			changes++
		}
	}
	if changes < 19 || changes > 20 {
		t.Errorf("%d changes in 1,000 rows of blocks of 50", changes)
	}
	at, err := regime{"fall", .3, steady(.9)}.firstFall(1, false)
	if err != nil || at <= regimeChange || at > regimeChange+500 {
		t.Errorf("fall by .3: alarm at %d, error %v", at, err)
	}
	if at, err := (regime{"none", 0, steady(.9)}).firstFall(1, false); err != nil || at >= 0 {
		t.Errorf("no fall: alarm at %d, error %v", at, err)
	}
}
