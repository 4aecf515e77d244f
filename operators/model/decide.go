package model

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// endTrial ends the refit under way without a change, with its evidence.
func (t *ModelTask) endTrial(v *version, k *keyState, why string, now int64) error {
	tr := v.refit.trial
	t.drop(v)
	d := record.Calibrator{Reason: tr.reason, Outcome: "no change: " + why, Evidence: tr.evidence(v, &t.cfg.Refit, tr.nearest())}
	if i := tr.nearest(); i >= 0 && tr.rows > 0 {
		c := tr.candidates[i]
		d.Stage, d.Method = record.StageShadow, c.method
		said := tr.verdict(c, &t.cfg.Refit)
		if said == "" {
			var err error
			if said, err = t.unsure(v, k, c); err != nil {
				return err
			}
		}
		if said != "" {
			d.Outcome += "; nearest was " + c.method + ": " + said
		}
	}
	for _, c := range tr.candidates {
		if c.err != nil {
			d.Outcome += "; " + c.err.Error()
		}
	}
	v.refit.trial = nil
	if tr.phase == phaseCanary {
		if err := t.endCanary(v, k, d.Outcome, now); err != nil {
			return err
		}
	}
	return t.record(v, k, &d, pipeline.StreamDecisions, now)
}

// promote takes a candidate to its next stage: the canary where there is one, else into force.
func (t *ModelTask) promote(v *version, k *keyState, i int, now int64) error {
	tr := v.refit.trial
	if spec := &t.cfg.Refit; spec.CanaryShare > 0 && tr.phase != phaseCanary {
		return t.beginCanary(v, k, i, now)
	}
	c := tr.candidates[i]
	e := tr.evidence(v, &t.cfg.Refit, i)
	canary := tr.phase == phaseCanary
	v.refit.trial, v.refit.unit = nil, tr.weight
	d := record.Calibrator{Reason: tr.reason, Method: c.method, Evidence: e,
		Outcome: fmt.Sprintf("published: %s, NLL %.5f → %.5f, ECE %.4f → %.4f on %d newer rows", c.method, e.NLLInForce, e.NLLNew, e.ECEInForce, e.ECENew, e.TestRows)}
	if err := t.putInForce(v, k, &d, c.cal, c.encoded, now); err != nil || !canary {
		return err
	}
	return t.endCanary(v, k, "in force for all", now)
}

// putInForce puts a calibrator in force from now, the end of the deciding label pane.
func (t *ModelTask) putInForce(v *version, k *keyState, d *record.Calibrator, cal calibrator.Calibrator, encoded []byte, now int64) error {
	old := v.Newest()
	v.refit.revision++
	f := &stage.InForce{Revision: v.refit.revision, From: now, Cal: cal, Encoded: encoded, Reason: d.Reason}
	d.Published, d.Stage, d.Calibrator, d.Replaces = true, record.StageFull, encoded, 0
	if old != nil {
		d.Replaces = old.Revision
	}
	v.Calibrators = append(v.Calibrators, f)
	v.ForgetBefore(now - t.cfg.FinalAfter)
	v.refit.guard = v.refit.guard.next(old, f, v.refit.unit)
	return t.record(v, k, d, pipeline.StreamCalibrators, now)
}

// record writes a decision, and keeps it as the latest.
func (t *ModelTask) record(v *version, k *keyState, d *record.Calibrator, s pipeline.Stream, now int64) error {
	d.Schema, d.Model, d.Version, d.Build = 1, v.Model, v.Name, t.cfg.Build
	d.DecidedAt = pipeline.Format(now)
	if d.EffectiveFrom == "" {
		d.EffectiveFrom = d.DecidedAt
	}
	d.Revision = v.refit.revision
	if p := v.refit.pin; p != nil {
		d.Pinned = true
		if d.By == "" {
			d.By, d.Why = p.by, p.why
		}
	}
	// The calibrators topic is compacted by key: what is in force must stay the last record of its own.
	key := v.Model + "/" + v.Name
	canary := d.Stage == record.StageCanary
	if canary {
		key += "/" + record.StageCanary
	}
	m, err := pipeline.NewMessage(s, key, now, d)
	if err != nil {
		return fmt.Errorf("record of a refit: %w", err)
	}
	if !canary {
		v.refit.last = m.Value
	}
	t.env.Emit(&k.Key, m)
	return nil
}

// evidence is what a trial found, in the words of candidate i; -1 where none was fitted.
func (tr *trial) evidence(v *version, spec *RefitSpec, i int) record.Evidence {
	e := record.Evidence{FitRows: int(tr.fitRows), FitFrom: pipeline.Format(tr.fitFrom), FitTo: pipeline.Format(tr.fitTo), FitBegan: pipeline.Format(tr.started), FitDigest: tr.digest, TestRows: int(tr.rows),
		Alpha: spec.Alpha, NLLBound: nllBound(v.K), Seed: tr.seed, LogENeeded: tr.need(spec)}
	if tr.rows > 0 {
		e.TestTo = pipeline.Format(tr.testTo)
		e.NLLInForce, e.ECEInForce, e.AccInForce = orZero(tr.inForce.mean()), orZero(tr.inForce.ece()), orZero(tr.inForce.acc())
		e.ECERadius = evalue.ECERadius(float64(tr.rows), gateBins, spec.Alpha)
	}
	for n, c := range tr.candidates {
		o := record.Candidate{Method: c.method, Outcome: tr.verdict(c, spec), OnBound: c.onBound, Warnings: c.warnings}
		if c.test != nil && c.score.w > 0 {
			mean, se := c.diff()
			o.NLL, o.NLLDiff, o.NLLDiffSE = orZero(c.score.mean()), orZero(mean), orZero(se)
			o.ECE, o.Accuracy, o.LogE = orZero(c.score.ece()), orZero(c.score.acc()), c.test.LogE()
		}
		e.Candidates = append(e.Candidates, o)
		if n == i {
			e.NLLNew, e.NLLDiff, e.NLLDiffSE, e.ECENew, e.AccNew, e.LogE, e.OnBound = o.NLL, o.NLLDiff, o.NLLDiffSE, o.ECE, o.Accuracy, o.LogE, o.OnBound
			if tmp, ok := c.cal.(calibrator.Temperature); ok {
				e.Temperature = tmp.T()
			}
		}
	}
	return e
}

// orZero makes a number of rows without weight one that JSON has.
func orZero(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}
