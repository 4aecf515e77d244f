package alarm

import (
	"fmt"
	"sync"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// spec is the specification of the alarms of a task. All keys share its dictionaries of experts, so it is made once and
// not copied.
//
// For a whole model version, E[false alarms by pane t] ≤ alpha·t, with alpha shared equally by its signals. The slices
// of a version yield e-values; those that the e-BH procedure rejects at level FDR fire, for each signal apart.
type spec struct {
	Config
	perPane      float64 // expected false alarms a pane
	once         sync.Once
	whole, slice *detect.Alarm
	mu           sync.Mutex
	byClass      map[int]*detect.Alarm // with the test by class, by K
}

// Kinds of reference.
const (
	None    = "none" // no reference: test calibration itself
	Pinned  = "pinned"
	Rolling = "rolling"
)

// never is an Alpha that no evidence reaches. The tests of slices use it, because e-BH decides over them together.
const never = 1e-299

// alpha returns the share of one signal.
func (s *spec) alpha() float64 { return s.perPane / float64(len(s.Signals)) }

// testsClasses reports whether the alarm on a signal of a whole version of k classes tests them one by one.
func (s *spec) testsClasses(signal string, k int) bool {
	return signal == stage.SignalCalibrated && s.EpsilonClass > 0 && s.Matured == 0 && s.reference(signal) == "" &&
		k >= 2 && k <= detect.MaxClasses
}

// fresh returns tests without rows for an alarm, against ref if it is not nil.
func (s *spec) fresh(a *keyAlarm, ref *detect.Reference) *detect.Alarm {
	spec := detect.AlarmSpec{
		Bins:            s.Bins,
		EpsilonECE:      s.EpsilonECE,
		EpsilonBin:      s.EpsilonBin,
		Alpha:           s.alpha(),
		Reference:       ref,
		Accuracy:        a.signal == stage.SignalAccuracy,
		EpsilonAccuracy: s.EpsilonAccuracy,
	}
	switch {
	case ref != nil:
		return build(spec, a.slice)
	case a.classes > 0:
		return s.freshByClass(spec, a.classes)
	}
	s.once.Do(func() { s.whole, s.slice = build(spec, false), build(spec, true) })
	if a.slice {
		return s.slice.Fresh()
	}
	return s.whole.Fresh()
}

// freshByClass returns tests with one by class; those of one K share their dictionaries.
func (s *spec) freshByClass(spec detect.AlarmSpec, k int) *detect.Alarm {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byClass[k] == nil {
		if s.byClass == nil {
			s.byClass = map[int]*detect.Alarm{}
		}
		spec.Classes, spec.EpsilonClass = k, s.EpsilonClass
		s.byClass[k] = build(spec, false)
	}
	return s.byClass[k].Fresh()
}

// build panics on a specification that the configuration cannot produce.
func build(spec detect.AlarmSpec, slice bool) *detect.Alarm {
	if slice {
		spec.Alpha, spec.Ever = never, true
	}
	a, err := detect.NewAlarm(spec)
	if err != nil {
		panic("alarm: " + err.Error())
	}
	return a
}

// fingerprint identifies everything that saved tests depend on, the experts of this build included. Tests of
// another fingerprint start again.
func (s *spec) fingerprint(signal string, classes int) string {
	eps := []float64{s.EpsilonECE, s.EpsilonBin}
	if signal == stage.SignalAccuracy {
		eps = []float64{s.EpsilonAccuracy}
	}
	if classes > 0 {
		eps = append(eps, s.EpsilonClass, float64(classes))
	}
	return fmt.Sprint(detect.DictionaryVersion, s.Bins, eps, s.alpha(), s.MaxWeight, int64(s.Matured),
		s.reference(signal), s.ReferenceRows, s.Slack)
}

// rule returns the name that the alarm on a signal has in alerts.
func (s *spec) rule(signal string) string {
	if signal == stage.SignalAccuracy {
		return accuracyRule
	}
	return "calibration-" + signal
}
