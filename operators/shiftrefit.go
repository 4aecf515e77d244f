package operators

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/output"
)

// What RefitSpec.LabelShift may be: what is done where the shares of the classes have moved; "" is nothing.
const (
	ShiftCandidate = "candidate" // class weights on the calibrator in force are tried as a refit's candidate is
	ShiftAtOnce    = "at_once"   // they are put into force before labels come, where the test of the assumption passes
)

const reasonShift = "label_shift"

const (
	// leastShift is the total variation of shares that is worth a correction.
	leastShift = .02
	// weightBound keeps a class from being ruled out by a window in which it did not come.
	weightBound = 100
)

// stepShift looks at the shares of the classes once FreshRows predictions have come since the last look, labels or not, and proposes
// class weights where they have moved for sure and the assumption of label shift is not rejected.
func (t *ModelTask) stepShift(v *version, k *keyState, in *paneInput) error {
	spec := &t.cfg.Refit
	if spec.LabelShift == "" || k.drift == nil {
		return nil
	}
	c := &k.drift.classes
	for _, cell := range in.cells {
		var err error
		if c.block, err = plusClasses(c.block, cell.set); err != nil {
			return err
		}
	}
	if c.block == nil {
		return nil
	}
	if n, _ := c.block.Total(); n < int64(max(spec.FreshRows, 1)) {
		return nil
	}
	now := c.block
	c.block = nil
	if v.refit.pin != nil || v.refit.trial != nil || c.at != 0 && in.end-c.at < spec.Cooldown {
		return nil
	}
	cal, e, why := c.correction(v, now, spec)
	if cal == nil {
		if why != "" {
			t.log.Debug("no correction of class shares", "model", v.model, "version", v.name, "why", why)
		}
		return nil
	}
	c.at = in.end
	digest, err := c.soft.digest(now)
	if err != nil {
		return err
	}
	return t.propose(v, k, in, cal, e, digest)
}

// correction is the calibrator in force with weights for the shares of now; nil where it needs none, or none is known.
func (d *classDrift) correction(v *version, now *acc.ClassCounts, spec *RefitSpec) (*calibrator.ClassWeights, *shift.Estimate, string) {
	if d.k > shift.MaxClasses {
		return nil, nil, fmt.Sprintf("%d classes, allowed up to %d: of more some are estimated together, and a correction needs each", d.k, shift.MaxClasses)
	}
	e, err := d.soft.estimate(now)
	if err != nil {
		return nil, nil, err.Error()
	}
	if e.Fit.P < spec.Alpha {
		return nil, nil, fmt.Sprintf("label shift does not explain what the model says: p = %.2g", e.Fit.P)
	}
	if e.Ridge > 0 {
		return nil, nil, fmt.Sprintf("classes are confused too much: condition %.3g", e.Condition)
	}
	base, inForce := v.unweighted()
	apart := func(held []float64) bool {
		distance, sure := e.Moved(held, spec.Alpha)
		return sure && distance >= leastShift
	}
	// Not from what is in force presumes, or, where that is fitted, not from its rows: class by class it is off, but for no news.
	if !apart(presumed(e.Reference, d.soft.bias, inForce)) || inForce == nil && !apart(e.Reference) {
		return nil, nil, ""
	}
	weights := make([]float64, d.k)
	for j, w := range e.Weights {
		weights[j] = d.soft.bias[j] * min(weightBound, max(1./weightBound, w))
	}
	cal, err := calibrator.NewClassWeights(base, weights)
	if err != nil {
		return nil, nil, err.Error()
	}
	return cal, &e, ""
}

// presumed are the shares that a base under weights w (nil: 1) is right for, where under weights u it is for shares p.
func presumed(p, u, w []float64) []float64 {
	q := make([]float64, len(p))
	var sum float64
	for j := range q {
		if q[j] = p[j]; u[j] > 0 {
			q[j] /= u[j]
		}
		if w != nil {
			q[j] *= w[j]
		}
		sum += q[j]
	}
	for j := range q {
		q[j] /= sum
	}
	return q
}

// propose puts a correction into force, or makes it the candidate of a validation: the paired test on rows whose labels come later decides.
func (t *ModelTask) propose(v *version, k *keyState, in *paneInput, cal *calibrator.ClassWeights, e *shift.Estimate, digest string) error {
	encoded, err := calibrator.Encode(cal)
	if err != nil {
		return err
	}
	back, err := calibrator.Decode(encoded)
	if err != nil {
		return err
	}
	tv, _ := e.Distance()
	if t.cfg.Refit.LabelShift == ShiftAtOnce {
		d := output.Calibrator{Reason: reasonShift, Method: cal.Method(), Outcome: fmt.Sprintf(
			"published: class weights, before labels: shares of classes have moved by %.3f by %d predictions, if %s (test of that: p = %.2g)", tv, e.N, e.Assumption, e.Fit.P),
			Evidence: output.Evidence{FitRows: int(e.N), FitFrom: pipeline.Format(in.end), FitTo: pipeline.Format(in.end), FitBegan: pipeline.Format(in.end), FitDigest: digest}}
		return t.putInForce(v, k, &d, back, encoded, in.end)
	}
	tr := &trial{reason: reasonShift, base: v.inForceRevision(), started: in.end, due: in.pane, phase: phaseShadow, seed: seed(v, k, reasonShift, in.pane),
		methods: []string{cal.Method()}, fitRows: e.N, fitFrom: in.end, fitTo: in.end, digest: digest}
	for i := range k.sample {
		tr.weight = max(tr.weight, float64(k.sample[i].W))
	}
	c := &candidate{fitResult: fitResult{method: cal.Method(), encoded: encoded, cal: back}}
	if c.test, err = evalue.NewPaired(nllBound(v.k), 0); err != nil {
		return err
	}
	tr.candidates = []*candidate{c}
	v.refit.trial = tr
	return nil
}
