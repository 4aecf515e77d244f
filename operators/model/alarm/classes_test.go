package alarm

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

const testClasses = 10

// classPane returns a pane of rows that are calibrated but for those predicted as class, right times as often.
func classPane(rng *rand.Rand, end int64, n, class int, times float64) alarmPane {
	p := alarmPane{id: end, sums: make(detect.Pane, 15), classes: make(detect.Pane, testClasses*detect.ClassBands)}
	for range n {
		c := .4 + .599*rng.Float64()
		k, rate := rng.IntN(testClasses), c
		if k == class {
			rate *= times
		}
		right := rng.Float64() < rate
		for _, b := range []*detect.BinSums{&p.sums[min(14, int(c*15))], &p.classes[detect.ClassCell(k, c)]} {
			if right {
				b.N1, b.C1 = b.N1+1, b.C1+c
			} else {
				b.N0, b.C0 = b.N0+1, b.C0+c
			}
		}
	}
	return p
}

// step feeds a pane of ten seconds and returns the state where it changes.
func (a *keyAlarm) step(t *testing.T, s *spec, p alarmPane) string {
	t.Helper()
	a.fired, a.observed = nil, true
	if err := a.observe(s, p); err != nil {
		t.Fatal(err)
	}
	state, changed := a.decide(s, false, p.id, 10*second)
	if !changed {
		return ""
	}
	return state
}

// TestClassFault: a class that is off fires, named, while bins and ECE hardly show it; the alarm stays while the fault
// goes on, also over a restart, and is resolved after it.
func TestClassFault(t *testing.T) {
	s := testSpec(stage.SignalCalibrated)
	s.EpsilonECE, s.EpsilonBin = .2, .3 // the test by class is alone
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a := newKeyAlarm(s, stage.SignalCalibrated, false, testClasses)
		end, fired, resolved := int64(0), 0, 0
		for row := 0; row < 40_000; row += 50 {
			end += 10 * second
			times := 1.0
			if row >= 10_000 && row < 25_000 {
				times = .4
			}
			state := a.step(t, s, classPane(rng, end, 50, 3, times))
			if state == stage.Firing {
				if row < 10_000 || fired > 0 {
					t.Fatalf("seed %d: fires at row %d", seed, row)
				}
				fired = row
				checkClassEvidence(t, s, a, end)
			}
			if state == stage.Resolved {
				if row < 25_000 || resolved > 0 {
					t.Fatalf("seed %d: resolved at row %d", seed, row)
				}
				resolved = row
			}
			if row%5000 == 0 {
				a = again(t, s, a)
			}
		}
		if fired > 12_000 || fired == 0 || resolved == 0 || resolved > 28_000 {
			t.Errorf("seed %d: fires at row %d, resolved at %d; the fault is in 10,000 to 25,000", seed, fired,
				resolved)
		}
	}
}

func checkClassEvidence(t *testing.T, s *spec, a *keyAlarm, end int64) {
	t.Helper()
	e := (&Stage{env: &stage.Env{Pane: 10 * second}}).evidence(&stage.Key{}, s, a, end, a.alert.Since)
	if !slices.Equal(e.Tests, []string{"class"}) || len(e.Classes) != 1 || e.Classes[0].Class != 3 ||
		e.Classes[0].Gap > -.1 || e.Direction != "overconfident" || e.LogEClass < e.ThresholdClass {
		t.Errorf("evidence %+v", e)
	}
	text := a.message(&record.Alert{Evidence: e, Signal: a.signal}, nil)
	if !strings.Contains(text, "each predicted class 0.1") || !strings.Contains(text, "predicted class 3 by -0.") {
		t.Errorf("message %q", text)
	}
}

// again returns the alarm after its state was saved and read.
func again(t *testing.T, s *spec, a *keyAlarm) *keyAlarm {
	t.Helper()
	body, err := a.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	n := newKeyAlarm(s, a.signal, a.slice, a.classes)
	if err := n.restore(body, s); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestClassesTested: slices, other signals, references, matured rows and many classes have no test by class.
func TestClassesTested(t *testing.T) {
	has := func(s *spec, signal string, slice bool, k int) bool {
		a := newKeyAlarm(s, signal, slice, k)
		return a.tests != nil && a.tests.Classes != nil
	}
	s := testSpec(stage.SignalCalibrated)
	if !has(s, stage.SignalCalibrated, false, 10) || !has(s, stage.SignalCalibrated, false, detect.MaxClasses) {
		t.Error("no test by class")
	}
	if has(s, stage.SignalRaw, false, 10) || has(s, stage.SignalCalibrated, true, 10) ||
		has(s, stage.SignalCalibrated, false, detect.MaxClasses+1) {
		t.Error("a test by class of raw, a slice or too many classes")
	}
	for _, change := range []func(c *spec){
		func(c *spec) { c.EpsilonClass = 0 },
		func(c *spec) { c.Matured = 1 },
		func(c *spec) { c.Reference = Rolling },
	} {
		s := testSpec(stage.SignalCalibrated)
		change(s)
		if has(s, stage.SignalCalibrated, false, 10) {
			t.Errorf("a test by class with %+v", s.Config)
		}
	}
}

// TestClassFaultStays: a class that stays off by about twice the tolerance is not resolved.
func TestClassFaultStays(t *testing.T) {
	s := testSpec(stage.SignalCalibrated)
	s.EpsilonECE, s.EpsilonBin = .2, .3
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 2))
		a := newKeyAlarm(s, stage.SignalCalibrated, false, testClasses)
		fired := false
		for row := 0; row < 60_000; row += 50 {
			switch a.step(t, s, classPane(rng, int64(row/50+1)*10*second, 50, 3, .7)) {
			case stage.Firing:
				fired = true
			case stage.Resolved:
				t.Errorf("seed %d: resolved at row %d", seed, row)
			}
		}
		if !fired {
			t.Errorf("seed %d: does not fire", seed)
		}
	}
}
