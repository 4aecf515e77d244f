package alarm

import (
	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// persists reports whether the rows that the newest calibrator serves show that the error is still beyond the
// tolerance. The tests cannot tell: their evidence is also of rows that came before. The rows show it with outside, or
// the alarm of a whole version fires again once there are ClearRows of them, which covers classes too.
func (t *Stage) persists(k *stage.Key, a *keyAlarm) bool {
	p := t.served(k)
	return p != nil && a.tests != nil && (a.outside(p) || a.again && p.N() >= float64(t.cfg.ClearRows))
}

// served returns the sums of the rows that the newest calibrator serves; nil if there are none. With more than
// acc.CoarseBins bins, confidences are right to the width of a bin of 60 only.
func (t *Stage) served(k *stage.Key) detect.Pane {
	if f := k.Version.Newest(); f == nil || k.Since.Revision != f.Revision || k.Since.Calibrated.Empty() {
		return nil
	}
	p, err := t.unpackPane(k)
	if err != nil {
		panic("alarm: " + err.Error()) // what the task has packed itself
	}
	return p
}

func (t *Stage) unpackPane(k *stage.Key) (detect.Pane, error) {
	_, sums, err := t.env.Summaries(k.K)
	if err != nil {
		return nil, err
	}
	if err := sums.Unpack(&k.Since.Calibrated); err != nil {
		return nil, err
	}
	set := sums.AsSet()
	if set.LabelledRows() == 0 {
		return nil, nil
	}
	p, err := detect.FromGrid(&set.Labelled.MSP, t.cfg.Bins)
	if err != nil {
		return nil, err
	}
	n, w := set.Labelled.MSP.Total()
	t.cfg.scale(p, n, w)
	return p, nil
}

// outside is the counterpart of inside:
//
//	ECE, debiased - 3 se > ε, or of a bin that the diagnosis named |gap| - 4 sqrt(v_j) > its ε
//
// The rows are looked at after every pane, and there are several bins: with 1.645 as in inside, two in five healed
// alarms would look as if they were not.
func (a *keyAlarm) outside(p detect.Pane) bool {
	e := a.errorsOf(p)
	for j, b := range e.bins {
		if a.bins>>j&1 == 1 && b.W > 0 && e.gap(j)-sureBin*e.se[j] > a.binTolerance(j) {
			return true
		}
	}
	return e.ece-sure*e.eceSE > a.tests.Headline.Specification().Epsilon
}

// Standard errors of outside.
const (
	sure    = 3
	sureBin = 4
)
