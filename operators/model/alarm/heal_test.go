package alarm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// healing is a fault: the rate of right rows at a true rate p, whose confidence is then conf(p).
type healing struct {
	name  string
	right func(p float64) float64
	conf  func(p float64) float64
}

func same(p float64) float64 { return p }

// logits returns the confidence where logits are multiplied.
func logits(by float64) func(float64) float64 {
	return func(p float64) float64 { return 1 / (1 + math.Pow((1-p)/p, by)) }
}

var healings = []healing{
	{"30 % wrong labels", func(p float64) float64 { return .7 * p }, same},
	{"logits × 3", same, logits(3)},
	{"logits × 2.5", same, logits(2.5)},
	{"all off by .1", func(p float64) float64 { return max(0, p-.1) }, same},
}

// healRun returns the rows of firing and resolved alerts of a fault in rows 10,000 to until. off is an error of the
// other rows, of a sign that changes by confidence.
func healRun(t *testing.T, s *spec, h healing, until, rows int, seed uint64, off float64) (fired, resolved []int) {
	t.Helper()
	const pane = 50
	rng := rand.New(rand.NewPCG(seed, 5))
	a := newKeyAlarm(s, stage.SignalRaw, false, 0)
	for row := 0; row < rows; row += pane {
		p := alarmPane{id: int64(row/pane+1) * 10 * second, sums: make(detect.Pane, 15)}
		for range pane {
			rate := 1 - .6*math.Pow(rng.Float64(), 3)
			rate = min(rate, .999)
			c, right := rate, rate
			if row >= 10_000 && row < until {
				c, right = h.conf(rate), h.right(rate)
			} else if off != 0 {
				right += off * math.Copysign(1, math.Sin(20*rate))
			}
			b := &p.sums[min(14, int(c*15))]
			if rng.Float64() < right {
				b.N1, b.C1 = b.N1+1, b.C1+c
			} else {
				b.N0, b.C0 = b.N0+1, b.C0+c
			}
		}
		switch a.step(t, s, p) {
		case stage.Firing:
			fired = append(fired, row)
		case stage.Resolved:
			resolved = append(resolved, row)
		}
	}
	return fired, resolved
}

// window is the row window of the default configuration.
const window = 5000

// TestHealing: after a fault of 2,000 to 8,000 rows the alert is resolved within two windows and does not fire again.
func TestHealing(t *testing.T) {
	testsize.Slow(t)
	c := setting.Default[Config]()
	s := New(&stage.Env{Pane: 10 * second}, &c).cfg
	for _, h := range healings {
		for _, off := range []float64{0, .01} {
			var rows []int
			for _, length := range []int{2000, 4000, 8000} {
				for seed := range uint64(3) {
					end := 10_000 + length
					fired, resolved := healRun(t, s, h, end, end+3*window, seed, off)
					if len(fired) != 1 || len(resolved) != 1 || resolved[0] > end+2*window {
						t.Errorf("%s for %d rows, off by %g: fires at rows %v, resolved at %v", h.name, length, off,
							fired, resolved)
						continue
					}
					rows = append(rows, resolved[0]-end)
				}
			}
			slices.Sort(rows)
			t.Logf("%s, off by %g: resolved after rows %v", h.name, off, rows)
		}
	}
}

// TestFaultStays: a fault that goes on is not resolved, and it fires once.
func TestFaultStays(t *testing.T) {
	testsize.Slow(t)
	c := setting.Default[Config]()
	s := New(&stage.Env{Pane: 10 * second}, &c).cfg
	for _, h := range healings {
		for seed := range uint64(3) {
			fired, resolved := healRun(t, s, h, 100_000, 60_000, seed, 0)
			if len(fired) != 1 || len(resolved) != 0 {
				t.Errorf("%s: fires at rows %v, resolved at %v", h.name, fired, resolved)
			}
		}
	}
}

// TestFaultOfFewRowsStays: where a model says .85 of one row in 140, and is right in .6 of the cases, the alert
// stays. A handful of rows of that bin says nothing, whatever the many others say.
func TestFaultOfFewRowsStays(t *testing.T) {
	testsize.Slow(t)
	c := setting.Default[Config]()
	s := New(&stage.Env{Pane: 10 * second}, &c).cfg
	const pane, panes = 1000, 210
	for seed := range uint64(3) {
		rng, a := rand.New(rand.NewPCG(seed, 6)), newKeyAlarm(s, stage.SignalRaw, false, 0)
		var fired, resolved []int
		for i := range panes {
			p := alarmPane{id: int64(i+1) * 10 * second, sums: make(detect.Pane, 15)}
			for range pane {
				says, is := .995, .995
				if rng.IntN(140) == 0 {
					says, is = .85, .6
				}
				b := &p.sums[int(says*15)]
				if rng.Float64() < is {
					b.N1, b.C1 = b.N1+1, b.C1+says
				} else {
					b.N0, b.C0 = b.N0+1, b.C0+says
				}
			}
			switch a.step(t, s, p) {
			case stage.Firing:
				fired = append(fired, i)
			case stage.Resolved:
				resolved = append(resolved, i)
			}
		}
		if len(fired) != 1 || len(resolved) != 0 {
			t.Errorf("seed %d: fires in panes %v, resolved in %v", seed, fired, resolved)
		}
	}
}

// TestFaultOfRareRowsStays: where one row in 400 to 800 is of a bin in which nearly all are wrong, stretches without
// any are no reason to resolve the alert.
func TestFaultOfRareRowsStays(t *testing.T) {
	testsize.Slow(t)
	c := setting.Default[Config]()
	s := New(&stage.Env{Pane: 10 * second}, &c).cfg
	for _, rate := range []float64{.25, .5} {
		for seed := range uint64(2) {
			a, r := newKeyAlarm(s, stage.SignalRaw, false, 0), rand.New(rand.NewPCG(seed, 7))
			fired, resolved := 0, 0
			for pane := range int64(2000) {
				p := make(detect.Pane, s.Bins)
				for range 200 {
					addRow(p, 14, r.Float64() < 14.5/15)
				}
				for range 8 {
					if r.Float64() < rate/8 {
						addRow(p, 7, r.Float64() < .05)
					}
				}
				switch a.step(t, s, alarmPane{id: (pane + 1) * 10 * second, sums: p}) {
				case stage.Firing:
					fired++
				case stage.Resolved:
					resolved++
				}
			}
			if fired != 1 || resolved != 0 {
				t.Errorf("one row in %g, seed %d: fires %d times, is resolved %d times", 200/rate, seed, fired,
					resolved)
			}
		}
	}
}

// TestHealingEmptiesABin: a fault says .63 of one row in 10, and is right in .3 of the cases. Healed, the model says so
// of one row in 200: that there are few must not hold the alert.
func TestHealingEmptiesABin(t *testing.T) {
	c := setting.Default[Config]()
	s := New(&stage.Env{Pane: 10 * second}, &c).cfg
	const rows, healed, seeds = 60_000, 20_000, 20
	soon := 0
	for seed := range uint64(seeds) {
		a, r := newKeyAlarm(s, stage.SignalRaw, false, 0), rand.New(rand.NewPCG(seed, 8))
		var resolved []int
		for row := 0; row < rows; row += 50 {
			p := make(detect.Pane, s.Bins)
			for range 50 {
				switch faulty := row >= 10_000 && row < healed; {
				case faulty && r.IntN(10) == 0:
					addRow(p, 9, r.Float64() < .3)
				case r.IntN(200) == 0:
					addRow(p, 9, r.Float64() < 9.5/15)
				default:
					addRow(p, 14, r.Float64() < 14.5/15)
				}
			}
			if a.step(t, s, alarmPane{id: int64(row/50+1) * 10 * second, sums: p}) == stage.Resolved {
				resolved = append(resolved, row)
			}
		}
		if len(resolved) != 1 || resolved[0] < healed || resolved[0] > healed+3*window {
			t.Errorf("seed %d: resolved at rows %v, want one after row %d", seed, resolved, healed)
		} else if resolved[0] <= healed+window/2 {
			soon++
		}
	}
	if t.Logf("%d resolved soon", soon); soon < seeds/2 { // not so where the alarm was renewed just before
		t.Errorf("%d of %d resolved within %d rows, want half", soon, seeds, window/2)
	}
}

// addRow adds a row in the middle of a bin.
func addRow(p detect.Pane, bin int, right bool) {
	c := (float64(bin) + .5) / float64(len(p))
	if right {
		p[bin].N1, p[bin].C1 = p[bin].N1+1, p[bin].C1+c
	} else {
		p[bin].N0, p[bin].C0 = p[bin].N0+1, p[bin].C0+c
	}
}
