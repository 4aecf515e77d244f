package model

import (
	"fmt"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// What RefitSpec.LabelShift may be: what is done where the shares of the classes have moved; "" is nothing.
const (
	ShiftCandidate = "candidate" // class weights on the calibrator in force are tried as a refit's candidate is
	ShiftAtOnce    = "at_once"   // they are put into force before labels come, where the test of the assumption passes
)

const reasonShift = "label_shift"

// stepShift looks at the shares of the classes once FreshRows predictions have come since the last look, labels or not, and proposes
// class weights where they have moved for sure and the assumption of label shift is not rejected.
func (t *ModelTask) stepShift(v *version, k *keyState, in *stage.Pane) error {
	spec := &t.cfg.Refit
	if spec.LabelShift == "" || k.Corrector == nil {
		return nil
	}
	now, err := k.Corrector.Look(in, int64(max(spec.FreshRows, 1)))
	if err != nil || now == nil {
		return err
	}
	last := k.Corrector.Corrected()
	if v.refit.pin != nil || v.refit.trial != nil || last != 0 && in.End-last < int64(spec.Cooldown) {
		return nil
	}
	found, why := k.Corrector.Correct(now, spec.Alpha, in.End)
	if found == nil {
		if why != "" {
			t.log.Debug("no correction of class shares", "model", v.Model, "version", v.Name, "why", why)
		}
		return nil
	}
	return t.propose(v, k, in, found)
}

// propose puts a correction into force, or makes it the candidate of a validation: the paired test on rows whose labels come later decides.
func (t *ModelTask) propose(v *version, k *keyState, in *stage.Pane, c *stage.Correction) error {
	encoded, err := calibrator.Encode(c.Cal)
	if err != nil {
		return err
	}
	if CheckSize(encoded, t.cfg.MaxBytes) != nil {
		return nil // what is in force fills a record
	}
	back, err := calibrator.Decode(encoded)
	if err != nil {
		return err
	}
	if t.cfg.Refit.LabelShift == ShiftAtOnce {
		d := record.Calibrator{Reason: reasonShift, Method: c.Cal.Method(), Outcome: fmt.Sprintf(
			"published: class weights, before labels: shares of classes have moved by %.3f by %d predictions, if %s (test of that: p = %.2g)", c.Moved, c.Rows, c.Assumption, c.P),
			Evidence: record.Evidence{FitRows: int(c.Rows), FitFrom: pipeline.Format(in.End), FitTo: pipeline.Format(in.End), FitBegan: pipeline.Format(in.End), FitDigest: c.Digest}}
		return t.putInForce(v, k, &d, back, encoded, in.End)
	}
	tr := &trial{reason: reasonShift, base: v.InForceRevision(), started: in.End, due: in.Index, phase: phaseShadow, seed: k.Seed(reasonShift, in.Index),
		methods: []string{c.Cal.Method()}, fitRows: c.Rows, fitFrom: in.End, fitTo: in.End, digest: c.Digest}
	for i := range k.Sample {
		tr.weight = max(tr.weight, float64(k.Sample[i].W))
	}
	one := &candidate{fitResult: fitResult{method: c.Cal.Method(), encoded: encoded, cal: back}}
	if one.test, err = evalue.NewPaired(nllBound(v.K), 0); err != nil {
		return err
	}
	tr.candidates = []*candidate{one}
	v.refit.trial = tr
	return nil
}
