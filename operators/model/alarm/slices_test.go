package alarm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestSliceTestsRestartOnlyWithEvidence checks the condition of Theorem 3 in docs/math.md: resolving an alert resets
// the e-value to 1 if it is 1 or more, and leaves it as it is if it is less.
func TestSliceTestsRestartOnlyWithEvidence(t *testing.T) {
	t.Parallel()
	spec := testSpec(stage.SignalRaw)
	seen := map[bool]int{}
	for _, gap := range []float64{0, .3} {
		for panes := 1; panes < 40; panes++ {
			a := newKeyAlarm(spec, stage.SignalRaw, true, 0)
			for i := range panes {
				observe(t, a, int64(i), slicePane(spec.Bins, 40, gap))
			}
			before, had := a.logE(), a.tests.Headline.Panes()
			a.alert.State = stage.Firing
			a.resolve(spec)
			anew := a.tests.Headline.Panes() == 0 && a.tests.Diagnosis.Panes() == 0
			if anew != (before >= 0) || anew && !math.IsInf(a.logE(), -1) || !anew &&
				(a.logE() != before || a.tests.Headline.Panes() != had) {
				t.Errorf("gap %v, %d panes: log e %v, then %v after %d panes; begins anew: %v", gap, panes, before,
					a.logE(), a.tests.Headline.Panes(), anew)
			}
			seen[anew]++
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("begins anew %d times, goes on %d times: both are to be seen", seen[true], seen[false])
	}
}

// TestSliceEValuesWithRestarts resolves at every pane, whether that resets the e-value or not; no alert can do more. On
// calibrated rows P(M ≥ 10 ever) ≤ 1/10, and the mean of M at the end is ≤ 1, up to five standard errors.
func TestSliceEValuesWithRestarts(t *testing.T) {
	t.Parallel()
	spec, rng := testSpec(stage.SignalRaw), rand.New(rand.NewPCG(1, 2))
	const runs, panes = 1000, 60
	var over, restarts int
	var sum, square float64
	for range runs {
		a := newKeyAlarm(spec, stage.SignalRaw, true, 0)
		top := math.Inf(-1)
		for i := range panes {
			observe(t, a, int64(i), drawnPane(rng, spec.Bins, 25))
			top = max(top, a.logE())
			if a.logE() >= 0 {
				restarts++
			}
			if i < panes-1 {
				a.resolve(spec)
			}
		}
		if top >= math.Log(10) {
			over++
		}
		m := math.Exp(a.logE())
		sum, square = sum+m, square+m*m
	}
	mean := sum / runs
	if restarts == 0 {
		t.Error("nothing begins anew")
	}
	t.Logf("mean e-value %.3f, %d of %d runs ever at 10, %d restarts", mean, over, runs, restarts)
	if se := math.Sqrt((square/runs - mean*mean) / runs); mean > 1+5*se ||
		float64(over)/runs > .1+5*math.Sqrt(.09/runs) {
		t.Errorf("mean e-value %v, %d of %d runs ever at 10 (%d restarts)", mean, over, runs, restarts)
	}
}

func observe(t *testing.T, a *keyAlarm, id int64, p detect.Pane) {
	t.Helper()
	if _, err := a.tests.Observe(id, p, nil); err != nil {
		t.Fatal(err)
	}
}

// slicePane returns a pane with n rows in the middle of a high bin. Their accuracy is gap below their confidence.
func slicePane(bins int, n, gap float64) detect.Pane {
	p := make(detect.Pane, bins)
	j := bins - 3
	c := (float64(j) + .5) / float64(bins)
	p[j] = detect.BinSums{N1: n * (c - gap), C1: n * (c - gap) * c, N0: n * (1 - c + gap), C0: n * (1 - c + gap) * c}
	return p
}

// drawnPane returns a pane with n rows of random confidence. Their labels are on the boundary of the tolerance of the
// ECE: P(right) = c - ε.
func drawnPane(rng *rand.Rand, bins, n int) detect.Pane {
	p := make(detect.Pane, bins)
	for range n {
		c := .3 + .69*rng.Float64()
		j := min(bins-1, int(c*float64(bins)))
		if rng.Float64() < c-.02 {
			p[j].N1, p[j].C1 = p[j].N1+1, p[j].C1+c
		} else {
			p[j].N0, p[j].C0 = p[j].N0+1, p[j].C0+c
		}
	}
	return p
}
