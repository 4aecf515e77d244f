package alarm

import (
	"fmt"
	"sync"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// spec is the alarm of a task. Its keys share the dictionaries of experts, so it is made once and not copied.
//
// For a whole model version E[false alarms by pane t] ≤ alpha·t, which its signals share equally. The slices of a
// version have e-values instead, and those fire that the e-BH procedure rejects at level FDR.
type spec struct {
	Config
	perPane      float64 // false alarms a pane
	once         sync.Once
	whole, slice *detect.Alarm
}

// Alarm references.
const (
	None    = "none" // calibration itself
	Pinned  = "pinned"
	Rolling = "rolling"
)

// never is an Alpha that no evidence reaches: the tests of slices are judged together, by e-BH.
const never = 1e-299

// alpha is that of one signal.
func (s *spec) alpha() float64 { return s.perPane / float64(len(s.Signals)) }

// fresh returns the tests of a key and signal without any rows, against ref where that is not nil. It panics on a
// specification that no configuration gives.
func (s *spec) fresh(signal string, slice bool, ref *detect.Reference) *detect.Alarm {
	build := func(slice bool, ref *detect.Reference) *detect.Alarm {
		spec := detect.AlarmSpec{Bins: s.Bins, EpsilonECE: s.EpsilonECE, EpsilonBin: s.EpsilonBin, Alpha: s.alpha(),
			Reference: ref,
			Accuracy:  signal == stage.SignalAccuracy, EpsilonAccuracy: s.EpsilonAccuracy}
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

// print tells specifications apart that state depends on, and the experts of the build: the tests of others begin anew.
func (s *spec) print(signal string) string {
	eps := []float64{s.EpsilonECE, s.EpsilonBin}
	if signal == stage.SignalAccuracy {
		eps = []float64{s.EpsilonAccuracy}
	}
	return fmt.Sprint(detect.DictionaryVersion, s.Bins, eps, s.alpha(), s.MaxWeight, int64(s.Matured),
		s.reference(signal), s.ReferenceRows, s.Slack)
}

// rule is the name of the alarm on a signal in alerts.
func (s *spec) rule(signal string) string {
	if signal == stage.SignalAccuracy {
		return accuracyRule
	}
	return "calibration-" + signal
}
