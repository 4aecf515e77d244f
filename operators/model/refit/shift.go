package refit

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// StepShift checks the class shares each time FreshRows predictions have come, with or without labels. It proposes
// class weights if the shares have moved significantly and the label-shift assumption is not rejected.
func (s *State) StepShift(in *stage.Pane) error {
	cfg, c := &s.stage.cfg, s.whole().Corrector
	if cfg.LabelShift != ShiftCandidate && cfg.LabelShift != ShiftAtOnce || c == nil {
		return nil
	}
	s.recount(in.End)
	now, err := c.Collect(in, int64(max(cfg.FreshRows, 1)))
	if err != nil || now == nil {
		return err
	}
	last := c.Corrected()
	if s.pin != nil || s.run != nil || s.account.resting() || last != 0 && in.End-last < int64(cfg.Cooldown) {
		return nil
	}
	found, why := c.Correct(now, cfg.Alpha, in.End)
	if found == nil {
		if why != "" {
			v := s.version
			s.stage.env.Log.Debug("no correction of class shares", "model", v.Model, "version", v.Name, "why", why)
		}
		return nil
	}
	return s.propose(in, found)
}

// propose puts a correction into force, or makes it the candidate of a validation. A validation decides by the paired
// test on rows whose labels come later.
func (rs *runs) propose(in *stage.Pane, c *stage.Correction) error {
	encoded, err := calibrator.Encode(c.Cal)
	if err != nil {
		return err
	}
	if CheckSize(encoded, rs.stage.deps.MaxBytes) != nil {
		return nil // the calibrator in force already fills a record
	}
	back, err := calibrator.Decode(encoded)
	if err != nil {
		return err
	}
	method := c.Cal.Method()
	if rs.stage.cfg.LabelShift == ShiftAtOnce {
		at := record.At(in.End)
		d := record.Calibrator{Reason: reasonShift, Method: method, Outcome: fmt.Sprintf(
			"published: class weights, before labels: shares of classes have moved by %.3f by %d predictions, "+
				"if %s (test of that: p = %.2g)",
			c.Moved, c.Rows, c.Assumption, c.P),
			Evidence: record.Evidence{FitRows: int(c.Rows), FitFrom: at, FitTo: at, FitBegan: at, FitDigest: c.Digest}}
		return rs.putInForce(&d, back, encoded, in.End)
	}
	one := &candidate{fitResult: fitResult{method: method, encoded: encoded, cal: back}}
	if one.test, err = evalue.NewPaired(rs.bound(), 0); err != nil {
		return err
	}
	k := rs.sampled()
	rs.run = &run{
		reason:     reasonShift,
		base:       rs.version.InForceRevision(),
		started:    in.End,
		due:        in.Index,
		phase:      phaseShadow,
		seed:       k.Seed(reasonShift, in.Index),
		methods:    []string{method},
		fitRows:    c.Rows,
		fitFrom:    in.End,
		fitTo:      in.End,
		digest:     c.Digest,
		weight:     maxWeight(k.Sample),
		candidates: []*candidate{one},
	}
	return nil
}
