package refit

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// putInForce puts a calibrator into force from now, the end of the deciding label pane.
func (p *publisher) putInForce(d *record.Calibrator, cal calibrator.Calibrator, encoded []byte, now int64) error {
	v := p.version
	old := v.Newest()
	p.revision++
	f := &stage.InForce{Revision: p.revision, From: now, Cal: cal, Encoded: encoded, Reason: d.Reason}
	d.Published, d.Stage, d.Calibrator, d.Replaces = true, record.StageFull, encoded, 0
	d.State = cmp.Or(d.State, record.DecidedPublished)
	if old != nil {
		d.Replaces = old.Revision
	}
	v.Calibrators = append(v.Calibrators, f)
	v.ForgetBefore(now - p.stage.env.FinalAfter)
	p.doubt = doubt{}
	if from := d.Evidence.FitFrom; !from.IsZero() && d.State == record.DecidedPublished {
		p.doubt = doubt{from: from.UnixNano(), before: math.MinInt64}
		if old != nil {
			p.doubt.before = old.From
		}
	}
	p.monitor = p.monitor.next(old, f, p.unit)
	if err := p.monitor.allow(f, p.sampled()); err != nil {
		return err
	}
	return p.emit(d, pipeline.StreamCalibrators, now)
}

// emit publishes a decision and keeps it as the latest.
func (p *publisher) emit(d *record.Calibrator, stream pipeline.Stream, now int64) error {
	v := p.version
	d.Schema, d.Model, d.Version, d.State = 1, v.Model, v.Name, cmp.Or(d.State, record.DecidedNoChange)
	d.DecidedAt = record.At(now)
	if d.EffectiveFrom.IsZero() {
		d.EffectiveFrom = d.DecidedAt
	}
	d.Revision = p.revision
	if p.pin != nil {
		d.Pinned = true
		if d.By == "" {
			d.By, d.Why = p.pin.by, p.pin.why
		}
	}
	// The calibrators topic is compacted by key. A canary has a key of its own, so that the last record of a version
	// stays its calibrator in force.
	key := v.Model + "/" + v.Name
	canary := d.Stage == record.StageCanary
	if canary {
		key += "/" + record.StageCanary
	}
	m, err := pipeline.NewMessage(stream, key, now, d)
	if err != nil {
		return fmt.Errorf("record of a refit: %w", err)
	}
	if !canary {
		v.Decision = stage.Decision{At: now, Revision: p.revision,
			Published: stage.Published[record.Calibrator]{Record: d, Encoded: m.Value}}
	}
	p.whole().Chain(m)
	out, err := p.signed(stream, key, *d)
	if err != nil {
		return err
	}
	p.stage.env.Emit(nil, out)
	return nil
}

// signed is a decision as it is published. State and ledger are without the build, so that a rolling upgrade and a
// replay by another build end with the hash of one build alone.
func (p *publisher) signed(stream pipeline.Stream, key string, d record.Calibrator) (pipeline.Message, error) {
	d.Build = p.stage.deps.Build
	m, err := pipeline.NewMessage(stream, key, d.DecidedAt.UnixNano(), &d)
	if err != nil {
		return m, fmt.Errorf("record of a refit: %w", err)
	}
	return m, nil
}

// Again publishes what is in force once more, as far as the calibrators topic lacks it by the record's key and
// revision: the topic may have been deleted and made again. It decides nothing.
func Again(s *State, lacks func(key string, revision int) bool) (n int, err error) {
	v := s.version
	key := v.Model + "/" + v.Name
	emit := func(m pipeline.Message) {
		m.Record = nil // no news for this process or for the history
		s.stage.env.Emit(nil, m)
		n++
	}
	for _, f := range v.Calibrators {
		of, stage := key, record.StageFull
		switch {
		case f.Share > 0 && f.Until == 0:
			of, stage = key+"/"+record.StageCanary, record.StageCanary
		case f != v.Newest():
			continue
		}
		if !lacks(of, f.Revision) {
			continue
		}
		m, err := s.signed(pipeline.StreamCalibrators, of, s.recordOf(f, stage))
		if err != nil {
			return n, err
		}
		emit(m)
	}
	top := s.corrections.served.at(math.MaxInt64, v.Newest())
	if top.correction.None() || !lacks(key+"/"+record.StageTop, top.base) {
		return n, nil
	}
	m, err := top.message(v, s.corrections.following.learnt())
	if err == nil {
		emit(m)
	}
	return n, err
}

// recordOf is the record of a calibrator in force: the decision itself if that was the latest, else without evidence.
func (p *publisher) recordOf(f *stage.InForce, stage string) record.Calibrator {
	from := record.At(f.From)
	v := p.version
	if d := v.Decision.Record; stage == record.StageFull && d != nil && d.Published && d.Revision == f.Revision {
		return *d
	}
	d := record.Calibrator{Schema: 1, Model: v.Model, Version: v.Name, Revision: f.Revision, Stage: stage,
		State: record.DecidedPublished, Published: stage == record.StageFull, Share: f.Share, Reason: f.Reason,
		DecidedAt: from, EffectiveFrom: from, Calibrator: f.Encoded,
		Outcome: "published again: the calibrators topic had lost it"}
	if !d.Published {
		d.State = record.DecidedCanary
	}
	if p.pin != nil {
		d.Pinned, d.By, d.Why = true, p.pin.by, p.pin.why
	}
	return d
}

// saidFor is how long nothing must have been withheld until it is said again: labels of a biased sample come pane after
// pane.
const saidFor = int64(time.Hour)

// withhold publishes that something does not happen, or ends, because the labels are no fair sample of the rows.
func (p *publisher) withhold(what, why string, now int64) error {
	before := p.withheld
	if p.withheld = now; before != 0 && now-before < saidFor {
		return nil
	}
	return p.emit(&record.Calibrator{Reason: record.ReasonLabels, Outcome: "no change: the labels that came are no " +
		"fair sample of the predictions, so " + what + ": " + why}, pipeline.StreamDecisions, now)
}

// evidence returns what a run found with losses up to bound, and the figures of candidate i; -1 = none was fitted.
func (r *run) evidence(bound float64, cfg *Config, i int) record.Evidence {
	e := record.Evidence{
		FitRows:    int(r.fitRows),
		FitFrom:    record.At(r.fitFrom),
		FitTo:      record.At(r.fitTo),
		FitBegan:   record.At(r.started),
		FitDigest:  r.digest,
		TestRows:   int(r.rows),
		Alpha:      cfg.Alpha,
		NLLBound:   bound,
		Seed:       r.seed,
		LogENeeded: r.need(cfg),
	}
	if r.rows > 0 {
		e.TestTo = record.At(r.testTo)
		e.NLLInForce, e.ECEInForce = stage.FiniteOrZero(r.inForce.mean()), stage.FiniteOrZero(r.inForce.ece())
		e.AccInForce = stage.FiniteOrZero(r.inForce.acc())
		e.ECERadius = evalue.ECERadius(float64(r.rows), eceBins, cfg.Alpha)
	}
	for n, c := range r.candidates {
		o := record.Candidate{Method: c.method, Outcome: r.verdict(c, cfg), OnBound: c.onBound, Warnings: c.warnings}
		if c.test != nil && c.score.w > 0 {
			mean, se := c.diff()
			o.NLL, o.ECE = stage.FiniteOrZero(c.score.mean()), stage.FiniteOrZero(c.score.ece())
			o.NLLDiff, o.NLLDiffSE = stage.FiniteOrZero(mean), stage.FiniteOrZero(se)
			o.Accuracy, o.LogE = stage.FiniteOrZero(c.score.acc()), c.test.LogE()
		}
		e.Candidates = append(e.Candidates, o)
		if n != i {
			continue
		}
		e.NLLNew, e.NLLDiff, e.NLLDiffSE, e.ECENew = o.NLL, o.NLLDiff, o.NLLDiffSE, o.ECE
		e.AccNew, e.LogE, e.OnBound = o.Accuracy, o.LogE, o.OnBound
		if tmp, ok := c.cal.(calibrator.Temperature); ok {
			e.Temperature = tmp.T()
		}
	}
	return e
}
