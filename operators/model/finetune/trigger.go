package finetune

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// blocksKept is the number of blocks that hold the latest rows. The rows move on by one block at a time.
const blocksKept = 8

// block holds the sums of some consecutive sampled rows.
type block struct {
	start, end int64 // span of its label panes
	from       int64 // earliest prediction time
	rows       int64
	set        *acc.Set
}

// excess describes how long something has been over its bound. reason is empty if nothing is.
type excess struct {
	reason      string
	since, from int64 // end of the label pane where it began; earliest prediction time of the rows that showed it
	rows        int64 // sampled rows since from, those included
}

// tried says when recalibration was tried: at the refit decision that put the calibrator of a revision in force, or at
// the first decision that did not.
type tried struct {
	at       int64 // end of a label pane; 0 = not tried
	revision int
}

// finding says what is over its bound, with the evidence and the text for a request. reason is empty if nothing is.
type finding struct {
	evidence    record.FinetuneEvidence
	reason, why string
}

// trigger processes the rows of a label pane and publishes a request if one is due.
func (s *state) trigger(pane int64) error {
	cfg := &s.stage.cfg
	if !cfg.Enabled || len(s.rows) == 0 {
		return nil
	}
	full, err := s.addReference()
	if err != nil || !full {
		return err
	}
	if err := s.addBlock(pane); err != nil {
		return err
	}
	found, err := s.overBound(pane)
	if err != nil {
		return err
	}
	end := (pane + 1) * s.stage.env.Pane
	if found.reason == "" {
		s.over = excess{}
		return nil
	}
	if s.over.reason == "" {
		s.over = excess{since: end, from: s.blocks[0].from, rows: s.latestRows()}
	} else {
		s.over.rows += int64(len(s.rows))
	}
	s.over.reason = found.reason
	if end-s.over.since < int64(cfg.For) || s.over.rows < cfg.DataRows || !s.may(end) {
		return nil
	}
	return s.ask(found, end)
}

// addReference adds rows to the reference until it is full.
func (s *state) addReference() (full bool, err error) {
	if s.reference == nil {
		if s.reference, err = s.stage.env.NewSums(s.version.K); err != nil {
			return false, err
		}
	}
	if s.reference.LabelledRows() >= s.stage.cfg.ReferenceRows {
		return true, nil
	}
	return false, s.addRows(s.reference)
}

// addRows adds the pane's rows to sums, each calibrated by the calibrator in force at its time.
func (s *state) addRows(set *acc.Set) error {
	sc := stage.NewScorer(s.version.K)
	for i := range s.rows {
		if err := sc.Add(set, s.version.At(s.rows[i].TS, s.rows[i].ID), &s.rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// addBlock adds the rows to the last block, or to a new block if that is full. It drops blocks that the latest rows no
// longer need.
func (s *state) addBlock(pane int64) error {
	rows, length := s.stage.cfg.Rows, s.stage.env.Pane
	if n := len(s.blocks); n == 0 || s.blocks[n-1].rows >= max(rows/blocksKept, 1) {
		set, err := s.stage.env.NewSums(s.version.K)
		if err != nil {
			return err
		}
		s.blocks = append(s.blocks, block{start: pane * length, from: math.MaxInt64, set: set})
	}
	b := &s.blocks[len(s.blocks)-1]
	b.end, b.rows = (pane+1)*length, b.rows+int64(len(s.rows))
	for i := range s.rows {
		b.from = min(b.from, s.rows[i].TS)
	}
	if err := s.addRows(b.set); err != nil {
		return err
	}
	for s.latestRows()-s.blocks[0].rows >= rows {
		s.blocks = slices.Delete(s.blocks, 0, 1)
	}
	return nil
}

func (s *state) latestRows() int64 {
	n := int64(0)
	for i := range s.blocks {
		n += s.blocks[i].rows
	}
	return n
}

// may reports whether a request is allowed now: no request or shadow is under way, and neither the cool-down nor the
// budget forbids it.
func (s *state) may(end int64) bool {
	cfg := &s.stage.cfg
	for _, e := range s.evaluators {
		if e.open() {
			return false
		}
	}
	cooldown, period := end-int64(cfg.Cooldown), end-int64(cfg.BudgetPeriod)
	s.asked = slices.DeleteFunc(s.asked, func(at int64) bool { return at <= period && at <= cooldown })
	n := 0
	for _, at := range s.asked {
		if at > cooldown {
			return false
		}
		if at > period {
			n++
		}
	}
	return n < cfg.Budget
}

// overBound checks the latest rows against all bounds.
func (s *state) overBound(pane int64) (f finding, err error) {
	cfg := &s.stage.cfg
	if s.latestRows() < cfg.MinRows {
		return f, nil
	}
	set, err := s.merge(s.blocks)
	if err != nil {
		return f, err
	}
	now, was := &set.Labelled.MSP, &s.reference.Labelled.MSP
	n, nRef := set.LabelledRows(), s.reference.LabelledRows()
	a, ref := now.Accuracy(), was.Accuracy()
	f.evidence = record.FinetuneEvidence{Rows: n, Accuracy: a, AURC: stage.Number(now.AURC()), ReferenceRows: nRef,
		ReferenceAccuracy: ref, ReferenceAURC: stage.Number(was.AURC()), Refit: s.version.Decision.Encoded}
	if f.evidence.ECE, f.evidence.ECENull, err = s.ece(set, pane, 0); err != nil {
		return f, err
	}
	noise := cfg.Z * math.Sqrt(ref*(1-ref)/float64(nRef)+a*(1-a)/float64(n))
	if drop := ref - a; drop > cfg.MaxAccuracyDrop && drop > noise {
		f.reason, f.why = reasonAccuracy, fmt.Sprintf("accuracy %.4f of %d rows, %.4f of the first %d", a, n, ref, nRef)
		return f, nil
	}
	if rise := now.AURC() - was.AURC(); rise > cfg.MaxAURCRise && rise > noise {
		f.reason = reasonAURC
		f.why = fmt.Sprintf("AURC %.4f of %d rows, %.4f of the first %d", now.AURC(), n, was.AURC(), nRef)
		return f, nil
	}
	return f, s.sinceRefit(pane, &f)
}

// sinceRefit checks the ECE that remains in the rows since recalibration was tried.
func (s *state) sinceRefit(pane int64, f *finding) error {
	d := &s.version.Decision
	if d.Record != nil && (s.tried.at == 0 || s.tried.revision != d.Revision) {
		s.tried = tried{d.At, d.Revision}
	}
	at, cfg := s.tried.at, &s.stage.cfg
	i := slices.IndexFunc(s.blocks, func(b block) bool { return b.from >= at })
	if at == 0 || i < 0 {
		return nil
	}
	set, err := s.merge(s.blocks[i:])
	if err != nil || set.LabelledRows() < cfg.MinRows {
		return err
	}
	ece, null, err := s.ece(set, pane, cfg.MaxECE)
	if err != nil || !(ece-null > cfg.MaxECE) {
		return err
	}
	f.reason = reasonECE
	f.why = fmt.Sprintf("ECE %.4f of %d rows since the refit decision at %s, a calibrated model would show %.4f",
		ece, set.LabelledRows(), pipeline.Format(at), null)
	return nil
}

// merge returns the sum of blocks.
func (s *state) merge(blocks []block) (*acc.Set, error) {
	set, err := s.stage.env.NewSums(s.version.K)
	if err != nil {
		return nil, err
	}
	for i := range blocks {
		if err := s.stage.env.MergeInto(set, blocks[i].set); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// ask publishes a request and starts its evaluator.
func (s *state) ask(f finding, end int64) error {
	cfg, v := &s.stage.cfg, s.version
	s.number++
	shadow := record.ShadowVersion(v.Name, s.number)
	f.evidence.Since = record.At(s.over.since)
	r := record.Finetune{
		Schema:        1,
		ID:            v.Model + "/" + shadow,
		Model:         v.Model,
		Version:       v.Name,
		Number:        s.number,
		ShadowVersion: shadow,
		Reason:        f.reason,
		Why:           f.why,
		DecidedAt:     record.At(end),
		ShadowFrom:    record.At(end + int64(cfg.ShadowAfter)),
		Deadline:      record.At(end + int64(cfg.Deadline)),
		Recipe:        cfg.Recipe,
		Classes:       v.K,
		Evidence:      f.evidence,
		Data:          record.FinetuneData{From: record.At(s.over.from), To: record.At(end), Rows: s.over.rows},
	}
	h := fnv.New64a()
	h.Write([]byte(r.ID))
	r.Seed = h.Sum64() >> 11 // 53 bits, the integers that a JSON number holds exactly
	m, err := pipeline.NewMessage(pipeline.StreamFinetune, v.Model+"/"+v.Name, end, &r)
	if err != nil {
		return err
	}
	s.asked = append(s.asked, end)
	e := &evaluator{number: s.number, state: statePending, deadline: end + int64(cfg.Deadline)}
	s.evaluators = append(s.evaluators, e)
	s.over = excess{}
	s.stage.env.Emit(s.whole(), m)
	return nil
}
