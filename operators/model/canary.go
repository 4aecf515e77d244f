package model

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// beginCanary gives a share of the ids the chosen candidate, from now.
func (t *ModelTask) beginCanary(v *version, k *keyState, i int, now int64) error {
	spec, tr := &t.cfg.Refit, v.refit.trial
	var err error
	if tr.worse, err = evalue.NewPaired(nllBound(v.K), 0); err != nil {
		return err
	}
	tr.phase, tr.chosen, tr.stageFrom = phaseCanary, i, now
	c := tr.candidates[i]
	v.Calibrators = append(v.Calibrators, &stage.InForce{Revision: v.refit.revision, From: now, Share: spec.CanaryShare, Cal: c.cal, Encoded: c.encoded, Reason: tr.reason})
	d := record.Calibrator{Reason: tr.reason, Stage: record.StageCanary, Share: spec.CanaryShare, Method: c.method, Calibrator: c.encoded,
		Evidence: tr.evidence(v, spec, i), Outcome: fmt.Sprintf("canary: %s for %g of the ids", c.method, spec.CanaryShare)}
	return t.record(v, k, &d, pipeline.StreamCalibrators, now)
}

// stepCanary ends a canary: at once where its candidate is proved worse than what is in force or breaks a bound, else after
// its time. What it gets wrong outside of these statistics is for a person to see meanwhile (calibrators rollback).
func (t *ModelTask) stepCanary(v *version, k *keyState, in *stage.Pane) error {
	spec, tr := &t.cfg.Refit, v.refit.trial
	c := tr.candidates[tr.chosen]
	if c.out == "" {
		c.out = tr.refuted(c, spec)
	}
	if c.out == "" && tr.worse.LogE() >= math.Log(1/spec.Alpha) {
		c.out = "worse than what is in force while it was the canary"
	}
	if c.out != "" {
		return t.endTrial(v, k, c.out, in.End)
	}
	if in.End-tr.stageFrom < int64(spec.CanaryFor) {
		return nil
	}
	if wait, err := t.turning(v, k, c); err != nil || wait {
		return err
	}
	return t.promote(v, k, tr.chosen, in.End)
}

// endCanary takes the canary back from its ids; where it was promoted they keep it as everybody's.
func (t *ModelTask) endCanary(v *version, k *keyState, why string, now int64) error {
	for _, f := range v.Calibrators {
		if f.Share > 0 && f.Until == 0 {
			f.Until = now
		}
	}
	v.ForgetBefore(now - t.cfg.FinalAfter)
	d := record.Calibrator{Reason: reasonCanary, Stage: record.StageCanary, Outcome: "canary ended: " + why}
	return t.record(v, k, &d, pipeline.StreamCalibrators, now)
}
