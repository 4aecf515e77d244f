package alarm

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// keyAlarm is the alarm of one key on one signal.
type keyAlarm struct {
	alert       *stage.Alert
	fingerprint string // of the specification; a saved state is used only for an equal one
	signal      string
	slice       bool
	classes     int                   // that are tested one by one, 0 for none
	tests       *detect.Alarm         // in change mode nil until the curve is known
	curve       *alarmCurve           // change mode only
	waiting     stage.Slots[maturing] // matured mode only
	hard        *hardTimes            // of the alarm on accuracy only

	// Used while the alarm fires: the rows since the evidence was last above the bound, the bins that the diagnosis
	// named when it fired, and the same by class.
	since, sinceByClass trail
	bins, off           uint64

	// These fields belong to the current pane and are not part of the state.
	fired    *detect.Fired
	observed bool
	again    bool  // fired while it was firing already
	unshown  bool  // resolved since it stayed quiet, not since rows showed it
	seen     int64 // since when labels show the error
	delay    int64 // from predictions to the panes of the tests
	known    knownLogE
}

// knownLogE is the LogE of tests after so many panes with rows: e-BH asks for that of every slice at each pane, and
// few of them have rows.
type knownLogE struct {
	tests *detect.Alarm
	panes int64
	logE  float64
}

func newAlert(s *spec, signal string) *stage.Alert {
	return &stage.Alert{Rule: s.rule(signal), Severity: slices.Index(stage.Severities, s.severity(signal)),
		Signal: signal, Anytime: true}
}

// newKeyAlarm returns the alarm on a signal of a key; classes is K of a whole version.
func newKeyAlarm(s *spec, signal string, slice bool, classes int) *keyAlarm {
	if slice || !s.testsClasses(signal, classes) {
		classes = 0
	}
	a := &keyAlarm{
		alert:       newAlert(s, signal),
		signal:      signal,
		slice:       slice,
		classes:     classes,
		fingerprint: s.fingerprint(signal, classes),
	}
	if s.reference(signal) == "" {
		a.tests = s.fresh(a, nil)
	} else {
		a.curve = newAlarmCurve(s.Bins)
	}
	if signal == stage.SignalAccuracy {
		a.hard = newHardTimes()
	}
	return a
}

// observe passes the next pane to the tests. While the alarm fires, it also adds the pane to the rows that can show
// that the error is gone.
func (a *keyAlarm) observe(spec *spec, p alarmPane) error {
	if a.curve != nil {
		changed, err := a.curve.add(spec, a.signal, p.sums)
		if err != nil {
			return err
		}
		if changed {
			a.tests = spec.fresh(a, a.curve.inForce)
		}
	}
	shown := p.sums
	if a.hard != nil && a.tests != nil {
		lower := a.hard.observe(spec, a.curve.inForce, p, a.alert.State == stage.Firing)
		a.tests.Headline.Lower(lower)
		shown = easier(p.sums, lower*p.sums.N())
	}
	if a.alert.State == stage.Firing {
		a.since.add(shown)
		if a.classes > 0 {
			a.sinceByClass.add(p.classes.ByClass())
		}
	}
	if a.tests == nil {
		return nil
	}
	fired, err := a.tests.Observe(p.id, p.sums, p.classes)
	if err != nil {
		return err
	}
	if fired != nil {
		a.fired = fired
	}
	return nil
}

// logE returns the logarithm of the mean of the tests' e-values. This mean is an e-value too.
func (a *keyAlarm) logE() float64 {
	if a.tests == nil {
		return math.Inf(-1)
	}
	if n := a.tests.Headline.Panes(); a.known.tests != a.tests || a.known.panes != n {
		a.known = knownLogE{a.tests, n, a.tests.LogE()}
	}
	return a.known.logE
}

// decide updates the state of the alarm at the end of a label pane. For a slice, rejected says whether e-BH rejects it.
func (a *keyAlarm) decide(spec *spec, rejected bool, end, pane int64) (state string, changed bool) {
	fires := a.fired != nil
	a.again = fires && !a.slice && a.alert.State == stage.Firing
	if a.slice {
		fires = rejected && a.observed
		if fires && a.alert.State != stage.Firing {
			a.fired = a.tests.Current()
		}
	}
	switch {
	case fires && a.alert.State != stage.Firing:
		a.alert.AlertState = stage.AlertState{State: stage.Firing, Since: a.started(end, pane), Last: a.alert.Last}
		a.remember()
		return stage.Firing, true
	case fires && !a.slice:
		a.alert.ClearFrom = 0
		a.remember()
		return stage.Firing, false
	case a.alert.State != stage.Firing || !a.observed:
		return a.alert.State, false
	}
	if !a.cleared(spec) {
		a.alert.ClearFrom = 0
		return stage.Firing, false
	}
	if a.alert.ClearFrom == 0 {
		a.alert.ClearFrom = end
	}
	if end-a.alert.ClearFrom < int64(spec.ClearFor) {
		return stage.Firing, false
	}
	a.unshown = !a.shown(spec)
	a.resolve(spec)
	return stage.Resolved, true
}

// started estimates when the tests first saw the error: at the end of the last pane without evidence.
func (a *keyAlarm) started(end, pane int64) int64 {
	since := int64(math.MaxInt64)
	if a.fired.ECE || a.fired.Accuracy {
		since = a.fired.Headline.Since
	}
	if a.fired.Bin {
		since = min(since, a.fired.Diagnosis.Since)
	}
	if a.fired.Class {
		since = min(since, a.fired.Classes.Since)
	}
	return min(since, end-pane)
}

// remember clears the rows that can show that the error is gone, and notes the bins and classes that tests name.
func (a *keyAlarm) remember() {
	a.since, a.sinceByClass = trail{}, trail{}
	if a.fired.Bin {
		a.bins |= named(a.fired.Diagnosis)
	}
	if a.fired.Class {
		a.off |= named(a.fired.Classes)
	}
}

// named returns the bins with convincing evidence, and the one with the most.
func named(e *detect.Evidence) (bins uint64) {
	best, top := 0, math.Inf(-1)
	for j, b := range e.Bins {
		if b.LogE > top {
			best, top = j, b.LogE
		}
		if b.LogE >= convincing {
			bins |= 1 << j
		}
	}
	return bins | 1<<best
}

// convincing is the log evidence from which a bin counts as miscalibrated; e^3 is 20 to 1.
const convincing = 3

// resolve ends the episode. The tests of a slice start again only if they still have evidence. Otherwise they go on,
// because a fresh start would restore lost wealth (docs/math.md, Theorem 3).
func (a *keyAlarm) resolve(spec *spec) {
	a.alert.AlertState = stage.AlertState{LastChange: a.alert.Since, Last: a.alert.Last,
		InhibitedBy: a.alert.InhibitedBy, Notified: a.alert.Notified}
	a.since, a.sinceByClass, a.bins, a.off = trail{}, trail{}, 0, 0
	if a.slice && a.tests != nil && a.logE() >= 0 {
		a.tests = a.tests.Fresh()
	}
}
