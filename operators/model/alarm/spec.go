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
// of a version yield e-values; those that the e-BH procedure rejects at level FDR fire.
type spec struct {
	Config
	perPane      float64 // expected false alarms a pane
	once         sync.Once
	whole, slice *detect.Alarm
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

// fresh returns tests without rows for a key and signal, against ref if it is not nil. It panics on a specification
// that the configuration cannot produce.
func (s *spec) fresh(signal string, slice bool, ref *detect.Reference) *detect.Alarm {
	build := func(slice bool, ref *detect.Reference) *detect.Alarm {
		spec := detect.AlarmSpec{
			Bins:            s.Bins,
			EpsilonECE:      s.EpsilonECE,
			EpsilonBin:      s.EpsilonBin,
			Alpha:           s.alpha(),
			Reference:       ref,
			Accuracy:        signal == stage.SignalAccuracy,
			EpsilonAccuracy: s.EpsilonAccuracy,
		}
		if slice {
			spec.Alpha, spec.Ever = never, true
		}
		a, err := detect.NewAlarm(spec)
		if err != nil {
			panic("alarm: " + err.Error())
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

// fingerprint identifies everything that saved tests depend on, the experts of this build included. Tests of
// another fingerprint start again.
func (s *spec) fingerprint(signal string) string {
	eps := []float64{s.EpsilonECE, s.EpsilonBin}
	if signal == stage.SignalAccuracy {
		eps = []float64{s.EpsilonAccuracy}
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
