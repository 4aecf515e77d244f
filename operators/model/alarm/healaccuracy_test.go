package alarm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// fallRun returns the rows of firing and resolved alerts on accuracy, which is .9, and lower by fall in rows 15,000 to
// until. The first 10,000 rows are the reference.
func fallRun(t *testing.T, s *spec, fall float64, until, rows int, seed uint64) (fired, resolved []int) {
	t.Helper()
	const pane = 50
	rng := rand.New(rand.NewPCG(seed, 6))
	a := newKeyAlarm(s, stage.SignalAccuracy, false, 0)
	for row := 0; row < rows; row += pane {
		p := alarmPane{id: int64(row/pane+1) * 10 * second, sums: make(detect.Pane, 15)}
		rate := .9
		if row >= 15_000 && row < until {
			rate -= fall
		}
		for range pane {
			if b := &p.sums[13]; rng.Float64() < rate {
				b.N1, b.C1 = b.N1+1, b.C1+.9
			} else {
				b.N0, b.C0 = b.N0+1, b.C0+.9
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

// TestHealingOfAccuracy: after a fall of 2,000 to 8,000 rows the alert on accuracy is resolved within two windows and
// does not fire again; one that goes on is not resolved.
func TestHealingOfAccuracy(t *testing.T) {
	testsize.Slow(t)
	c := setting.Default[Config]()
	s := New(&stage.Env{Pane: 10 * second}, &c).cfg
	for _, fall := range []float64{.1, .2, .4} {
		var after []int
		for seed := range uint64(3) {
			for _, length := range []int{2000, 4000, 8000} {
				end := 15_000 + length
				fired, resolved := fallRun(t, s, fall, end, end+3*window, seed)
				if len(fired) != 1 || len(resolved) != 1 || resolved[0] < end || resolved[0] > end+2*window {
					t.Errorf("%g lower for %d rows: fires at rows %v, resolved at %v", fall, length, fired, resolved)
					continue
				}
				after = append(after, resolved[0]-end)
			}
			fired, resolved := fallRun(t, s, fall, 60_000, 60_000, seed)
			if len(fired) != 1 || len(resolved) != 0 {
				t.Errorf("%g lower for good: fires at rows %v, resolved at %v", fall, fired, resolved)
			}
		}
		slices.Sort(after)
		t.Logf("%g lower: resolved after rows %v", fall, after)
	}
}
