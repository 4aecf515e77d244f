package refit

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// beginCanary publishes the chosen candidate for a share of the ids, from now on.
func (rs *runs) beginCanary(i int, now int64) error {
	cfg, r, v := &rs.stage.cfg, rs.run, rs.version
	var err error
	if r.worse, err = evalue.NewPaired(rs.bound(), 0); err != nil {
		return err
	}
	r.phase, r.chosen, r.canaryFrom = phaseCanary, i, now
	c := r.candidates[i]
	v.Calibrators = append(v.Calibrators, &stage.InForce{Revision: rs.revision, From: now, Share: cfg.CanaryShare,
		Cal: c.cal, Encoded: c.encoded, Reason: r.reason})
	d := record.Calibrator{Reason: r.reason, State: record.DecidedCanary,
		Stage: record.StageCanary, Share: cfg.CanaryShare, Method: c.method,
		Calibrator: c.encoded, Evidence: r.evidence(rs.bound(), cfg, i),
		Outcome: fmt.Sprintf("canary: %s for %g of the ids", c.method, cfg.CanaryShare)}
	return rs.emit(&d, pipeline.StreamCalibrators, now)
}

// stepCanary continues a canary. It ends the canary at once if the candidate is shown to be worse than the calibrator
// in force, or breaks a bound; otherwise it promotes the candidate when its time is over. During that time a person can
// look for faults that these statistics do not show, and roll back.
func (rs *runs) stepCanary(in *stage.Pane) error {
	cfg, r := &rs.stage.cfg, rs.run
	c := r.candidates[r.chosen]
	if c.out == "" {
		c.out = r.refuted(c, cfg)
	}
	if c.out == "" && r.worse.LogE() >= math.Log(1/cfg.Alpha) {
		c.out = "worse than what is in force while it was the canary"
	}
	if c.out != "" {
		return rs.end(c.out, in.End)
	}
	if in.End-r.canaryFrom < int64(cfg.CanaryFor) {
		return nil
	}
	if wait, err := rs.mustWait(c); err != nil || wait {
		return err
	}
	return rs.promote(r.chosen, in.End)
}

// endCanary ends the canary period of its ids. If the candidate was promoted, they keep it, because all ids have it
// now.
func (p *publisher) endCanary(why string, now int64) error {
	v := p.version
	for _, f := range v.Calibrators {
		if f.Share > 0 && f.Until == 0 {
			f.Until = now
		}
	}
	v.ForgetBefore(now - p.stage.env.FinalAfter)
	d := record.Calibrator{Reason: reasonCanary, State: record.DecidedCanaryEnded, Stage: record.StageCanary,
		Outcome: "canary ended: " + why}
	return p.emit(&d, pipeline.StreamCalibrators, now)
}
