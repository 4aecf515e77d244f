package model

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// beginCanary gives a share of the ids the chosen candidate, from now.
func (t *ModelTask) beginCanary(v *version, k *keyState, i int, now int64) error {
	spec, tr := &t.cfg.Refit, v.refit.trial
	var err error
	if tr.worse, err = evalue.NewPaired(nllBound(v.k), 0); err != nil {
		return err
	}
	tr.phase, tr.chosen, tr.stageFrom = phaseCanary, i, now
	c := tr.candidates[i]
	v.calibrators = append(v.calibrators, &inForce{revision: v.refit.revision, from: now, share: spec.CanaryShare, cal: c.cal, encoded: c.encoded, reason: tr.reason})
	d := record.Calibrator{Reason: tr.reason, Stage: record.StageCanary, Share: spec.CanaryShare, Method: c.method, Calibrator: c.encoded,
		Evidence: tr.evidence(v, spec, i), Outcome: fmt.Sprintf("canary: %s for %g of the ids", c.method, spec.CanaryShare)}
	return t.record(v, k, &d, pipeline.StreamCalibrators, now)
}

// stepCanary ends a canary: at once where its candidate is proved worse than what is in force or breaks a bound, else after
// its time. What it gets wrong outside of these statistics is for a person to see meanwhile (calibrators rollback).
func (t *ModelTask) stepCanary(v *version, k *keyState, in *paneInput) error {
	spec, tr := &t.cfg.Refit, v.refit.trial
	c := tr.candidates[tr.chosen]
	if c.out == "" {
		c.out = tr.refuted(c, spec)
	}
	if c.out == "" && tr.worse.LogE() >= math.Log(1/spec.Alpha) {
		c.out = "worse than what is in force while it was the canary"
	}
	if c.out != "" {
		return t.endTrial(v, k, c.out, in.end)
	}
	if in.end-tr.stageFrom < spec.CanaryFor {
		return nil
	}
	if wait, err := t.turning(v, k, c); err != nil || wait {
		return err
	}
	return t.promote(v, k, tr.chosen, in.end)
}

// endCanary takes the canary back from its ids; where it was promoted they keep it as everybody's.
func (t *ModelTask) endCanary(v *version, k *keyState, why string, now int64) error {
	for _, f := range v.calibrators {
		if f.share > 0 && f.until == 0 {
			f.until = now
		}
	}
	v.forget(now - t.cfg.FinalAfter)
	d := record.Calibrator{Reason: reasonCanary, Stage: record.StageCanary, Outcome: "canary ended: " + why}
	return t.record(v, k, &d, pipeline.StreamCalibrators, now)
}
