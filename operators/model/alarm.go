package model

import (
	"fmt"
	"math"
	"sync"

	"github.com/plumbline/plumbline/operators/model/alarm"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/detect"
)

// AlarmSpec is the anytime-valid alarm on calibration error (calib/detect; docs/math.md, "Sequential detection"): one for
// each key and signal. Make it once and do not copy it: its keys share the dictionaries of experts.
//
// For a whole model version E[false alarms by pane t] ≤ Alpha·t, which its signals share equally. The slices of a version have
// e-values instead, and those fire that the e-BH procedure rejects at level FDR.
type AlarmSpec struct {
	alarm.Config
	Alpha float64 // false alarms a pane

	once         sync.Once
	whole, slice *detect.Alarm
}

// NewAlarm returns the alarm of a configuration, for panes of this length; nil where it is off.
func NewAlarm(c alarm.Config, pane int64) *AlarmSpec {
	if !c.Enabled {
		return nil
	}
	return &AlarmSpec{Config: c, Alpha: float64(pane) / float64(c.FalseAlarmEvery)}
}

// Alarm references.
const (
	refNone    = "none" // of the alarm on calibration: no reference
	refPinned  = "pinned"
	refRolling = "rolling"
)

// never is an Alpha that no evidence reaches: the tests of slices are judged together, by e-BH.
const never = 1e-299

// alpha is that of one signal.
func (s *AlarmSpec) alpha() float64 { return s.Alpha / float64(len(s.Signals)) }

// fresh returns the tests of a key and signal without any rows, against ref where that is not nil. It panics on a specification
// that no configuration gives.
func (s *AlarmSpec) fresh(signal string, slice bool, ref *detect.Reference) *detect.Alarm {
	build := func(slice bool, ref *detect.Reference) *detect.Alarm {
		spec := detect.AlarmSpec{Bins: s.Bins, EpsilonECE: s.EpsilonECE, EpsilonBin: s.EpsilonBin, Alpha: s.alpha(), Reference: ref,
			Accuracy: signal == signalAccuracy, EpsilonAccuracy: s.EpsilonAccuracy}
		if slice {
			spec.Alpha, spec.Ever = never, true
		}
		a, err := detect.NewAlarm(spec)
		if err != nil {
			panic("operators: alarm: " + err.Error())
		}
		return a
	}
	if ref != nil {
		return build(slice, ref)
	}
	s.once.Do(func() { s.whole, s.slice = build(false, nil), build(true, nil) })
	if slice {
		return s.slice.Fresh()
	}
	return s.whole.Fresh()
}

// print tells specifications apart that state depends on, and the experts of the build: the tests of others begin anew.
func (s *AlarmSpec) print(signal string) string {
	eps := []float64{s.EpsilonECE, s.EpsilonBin}
	if signal == signalAccuracy {
		eps = []float64{s.EpsilonAccuracy}
	}
	return fmt.Sprint(detect.DictionaryVersion, s.Bins, eps, s.alpha(), s.MaxWeight, int64(s.Matured), s.reference(signal), s.ReferenceRows, s.Slack)
}

// rule is the name of the alarm on a signal in alerts.
func (s *AlarmSpec) rule(signal string) string {
	if signal == signalAccuracy {
		return accuracyRule
	}
	return "calibration-" + signal
}

// keyAlarm is the alarm of one key on one signal.
type keyAlarm struct {
	alert   stage.AlertState
	print   string // the specification: state of another one is nothing to this
	signal  string
	slice   bool
	tests   *detect.Alarm // nil in change mode until the curve is known
	curve   *alarmCurve   // change mode only
	waiting maturing      // matured mode only

	// While it fires: the rows since the last time that the evidence was enough, and the bins that the diagnosis spoke of
	// when it fired.
	since trail
	bins  uint64

	// Of this pane, not part of the state.
	fired    *detect.Fired
	observed bool
	answered bool // a calibrator in force answers it: no reason for another refit
}

func newKeyAlarm(s *AlarmSpec, signal string, slice bool) *keyAlarm {
	a := &keyAlarm{signal: signal, slice: slice, print: s.print(signal)}
	if s.reference(signal) == "" {
		a.tests = s.fresh(signal, slice, nil)
	} else {
		a.curve = newAlarmCurve(s.Bins)
	}
	return a
}

// alarmRows is how many of the latest labelled rows are kept for the ECE in its alerts.
const alarmRows = 2000

// addAlarms gives a new key its alarms.
func (k *keyState) addAlarms(s *AlarmSpec) {
	if s == nil || k.Slice != "" && !s.Slices {
		return
	}
	for _, signal := range s.Signals {
		k.alarms = append(k.alarms, newKeyAlarm(s, signal, k.Slice != ""))
	}
}

// observeAlarms gives a label pane to the alarms of a key.
func (t *ModelTask) observeAlarms(k *keyState, in *stage.Pane) error {
	spec := t.cfg.Alarm
	for _, a := range k.alarms {
		a.fired, a.observed = nil, false
		if err := t.observeAlarm(spec, a, in); err != nil {
			return fmt.Errorf("alarm on %s: %w", a.signal, err)
		}
	}
	return nil
}

func (t *ModelTask) observeAlarm(spec *AlarmSpec, a *keyAlarm, in *stage.Pane) error {
	panes, err := t.alarmPanes(spec, a, in)
	if err != nil {
		return err
	}
	for _, p := range panes {
		if p.sums.N() == 0 {
			continue
		}
		a.observed = true
		if err := a.observe(spec, p); err != nil {
			return err
		}
	}
	return nil
}

// observe gives the next pane to the tests, and to the rows that say whether the error is gone.
func (a *keyAlarm) observe(spec *AlarmSpec, p alarmPane) error {
	if a.curve != nil {
		changed, err := a.curve.add(spec, spec.reference(a.signal), p.sums)
		if err != nil {
			return err
		}
		if changed {
			a.tests = spec.fresh(a.signal, a.slice, a.curve.inForce)
		}
	}
	if a.alert.State == stage.Firing {
		a.since.add(p.sums)
	}
	if a.tests == nil {
		return nil
	}
	fired, err := a.tests.Observe(p.id, p.sums)
	if err != nil {
		return err
	}
	if fired != nil {
		a.fired = fired
	}
	return nil
}

// logE is the logarithm of the mean of the tests' e-values, which is one too.
func (a *keyAlarm) logE() float64 {
	if a.tests == nil {
		return math.Inf(-1)
	}
	return a.tests.LogE()
}

// judge moves the alarm's state at the end of a label pane. rejected says, of a slice, that e-BH rejects it.
func (a *keyAlarm) judge(spec *AlarmSpec, rejected bool, end, pane int64) (state string, changed bool) {
	fires := a.fired != nil
	if a.slice {
		fires = rejected && a.observed
		if fires && a.alert.State != stage.Firing {
			a.fired = a.tests.Evidence()
		}
	}
	switch {
	case fires && a.alert.State != stage.Firing:
		a.alert = stage.AlertState{State: stage.Firing, Since: a.started(spec, end, pane), Last: a.alert.Last}
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
	a.resolve(spec)
	return stage.Resolved, true
}

// started is the estimate of when the error began: the end of the last pane without evidence, in matured mode less the age.
func (a *keyAlarm) started(spec *AlarmSpec, end, pane int64) int64 {
	since := int64(math.MaxInt64)
	if a.fired.ECE || a.fired.Accuracy {
		since = a.fired.Headline.Since
	}
	if a.fired.Bin {
		since = min(since, a.fired.Diagnosis.Since)
	}
	return min(since, end-pane) - int64(spec.Matured)
}

// remember starts the rows that are to show that the error is gone anew.
func (a *keyAlarm) remember() {
	a.since = trail{}
	if !a.fired.Bin {
		return
	}
	best, top := 0, math.Inf(-1)
	for j, b := range a.fired.Diagnosis.Bins {
		if b.LogE > top {
			best, top = j, b.LogE
		}
		if b.LogE >= convincing {
			a.bins |= 1 << j
		}
	}
	a.bins |= 1 << best
}

// convincing is the log evidence from which a bin is held to be off, e^3 = 20 to 1.
const convincing = 3

// resolve ends the episode. The tests of a slice begin anew where they still have evidence: their sum may not go up by that
// (docs/math.md), and where there is none left it goes on.
func (a *keyAlarm) resolve(spec *AlarmSpec) {
	a.alert = stage.AlertState{LastChange: a.alert.Since, Last: a.alert.Last, InhibitedBy: a.alert.InhibitedBy, Notified: a.alert.Notified}
	a.since, a.bins = trail{}, 0
	if a.slice && a.tests != nil && a.logE() >= 0 {
		a.tests = a.tests.Fresh()
	}
}

// at returns the alarm of a key on a signal; nil where there is none.
func (k *keyState) alarm(signal string) *keyAlarm {
	for _, a := range k.alarms {
		if a.signal == signal {
			return a
		}
	}
	return nil
}

// firingSince returns the earliest start among the firing rules of a key and its alarm. An alarm that a calibrator
// in force answers is none of them, nor is one on accuracy, which no calibrator answers.
func (k *keyState) firingSince() (since int64, any bool) {
	add := func(r *stage.AlertState) {
		if r.State == stage.Firing && (!any || r.Since < since) {
			since, any = r.Since, true
		}
	}
	for i := range k.rules {
		add(&k.rules[i])
	}
	for _, a := range k.alarms {
		if !a.answered && a.signal != signalAccuracy {
			add(&a.alert)
		}
	}
	return since, any
}
