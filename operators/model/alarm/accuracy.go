package alarm

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// The alarm on accuracy is separate from the alarms on calibration: accuracy also falls when the inputs become harder
// and the confidences show it correctly. The alarm tests the model's own predictions and has an alert of its own name.
// No calibrator raises accuracy, so the alert starts no refit. It never inhibits an alert on calibration, but may be
// inhibited by one.

// accuracyRule is the name of the alert on accuracy.
const accuracyRule = "accuracy-fall"

// reference returns the kind of reference that the tests of a signal compare with. It is "" if they test calibration
// itself. Accuracy always has a reference.
func (s *spec) reference(signal string) string {
	switch {
	case s.Reference != None && s.Reference != "":
		return s.Reference
	case signal == stage.SignalAccuracy:
		return Pinned
	}
	return ""
}

// mostPutOff times reference_rows labelled rows of a version are the most that go by without a reference of the
// accuracy: where a class never has labels, the others' accuracy is one then.
const mostPutOff = 10

// putOff begins the first reference of the accuracy anew, of a version and its slices, while labels of a class are
// withheld: accuracy falls once they come.
func (t *Stage) putOff(c *stage.Closing) error {
	whole := slices.IndexFunc(c.Keys, func(k stage.Closed) bool { return k.Slice == "" })
	if whole < 0 || t.env.Maturity.On() || c.Keys[whole].Labelled >= mostPutOff*t.cfg.ReferenceRows {
		return nil
	}
	a := c.Keys[whole].State.(*State).on(stage.SignalAccuracy)
	if a == nil || !a.observed || !a.curve.ended(t.cfg) {
		return nil
	}
	why, err := stage.Withheld(c.Keys[whole].Key, math.MinInt64)
	if why == "" || err != nil {
		return err
	}
	for _, k := range c.Keys {
		if a := k.State.(*State).on(stage.SignalAccuracy); a != nil && a.curve.inForce == nil {
			a.curve.begin(t.cfg)
		}
	}
	return nil
}

// severity returns the severity of the alert on a signal.
func (s *spec) severity(signal string) string {
	if signal == stage.SignalAccuracy {
		return s.AccuracySeverity
	}
	return s.Severity
}

// confidence returns the signal whose bins the alarm's alerts show.
func (a *keyAlarm) confidence() string {
	if a.signal == stage.SignalAccuracy {
		return stage.SignalRaw
	}
	return a.signal
}

// accuracyInside reports whether accuracy is back inside the tolerance with 95 % confidence, one-sided: the fall below
// the level A - D of the reference, plus 1.645 standard errors, is at most ε + κ. While inputs are hard it is at most
// ε/2 + κ: of a fall near ε that goes on, some rows look like its end.
func (a *keyAlarm) accuracyInside(s detect.Spec, p detect.Pane) bool {
	var right float64
	for _, b := range p {
		right += b.N1
	}
	n := p.N()
	rate := (right + 1) / (n + 2)
	epsilon := s.Epsilon
	if a.hard.from != 0 {
		epsilon /= 2
	}
	return s.Reference.Level()-right/n+z95one*math.Sqrt(rate*(1-rate)/n) <= epsilon+s.Reference.AccuracySlack
}

// accuracyEvidence describes why an alarm on accuracy fired.
func (a *keyAlarm) accuracyEvidence(spec *spec, since int64) *record.AlertEvidence {
	head := a.fired.Headline
	e := &record.AlertEvidence{
		Tests:           []string{detect.NullAccuracy.String()},
		EpsilonAccuracy: head.Epsilon,
		LogE:            stage.FiniteOrZero(head.LogE),
		Threshold:       head.Threshold,
		Since:           record.At(since),
		Reference:       spec.reference(a.signal),
		Direction:       "accuracy fell",
		Bins:            []record.EvidenceBin{},
	}
	if a.slice {
		e.Threshold = 0
	}
	ref := a.tests.Headline.Specification().Reference
	e.ReferenceAccuracy, e.AccuracySlack, e.AccuracyDip = &ref.Accuracy, ref.AccuracySlack, ref.AccuracyDip
	if least := a.hard.known.accuracy; least < ref.Level() {
		e.AccuracyHard = &least
	}
	return e
}
