package finetune

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// statePending means that the head of a request has not run yet. Package record has the other states.
const statePending = "pending"

// evaluator compares a shadow with the version that serves, on the sampled rows that both have.
type evaluator struct {
	number   int
	state    string
	deadline int64 // event time; 0 = none
	readyAt  int64 // event time; 0 = not ready
	until    int64 // event time at which the shadow stops; 0 = not known yet
	pairs    *pairs
	last     []byte // the newest verdict, as published
}

// open reports whether a request or its shadow is under way.
func (e *evaluator) open() bool {
	return e.state == statePending || e.state == record.ShadowRunning || e.state == record.ShadowReady && e.until == 0
}

// over reports whether the shadow is no longer evaluated.
func (e *evaluator) over(end int64) bool {
	switch e.state {
	case record.ShadowRejected, record.ShadowRolled, record.ShadowLost:
		return true
	}
	return e.until != 0 && end > e.until
}

// pairs holds the rows that both versions have, since the shadow began or, once it is ready, since it became ready.
type pairs struct {
	rows            int64
	from, to        int64          // range of prediction times
	serving, shadow *acc.Set       // scored by the calibrators in force of each version
	better, worse   *evalue.Paired // tests on NLL, capped at the bound
	accuracy        *evalue.Paired // test on hits of the shadow minus hits of the version that serves, with the margin
	nll             [2]float64     // sums of NLL without the cap: serving, shadow
}

func (g *Stage) newPairs(k int) (*pairs, error) {
	p := &pairs{from: math.MaxInt64, to: math.MinInt64}
	var err error
	if p.serving, err = g.env.NewSums(k); err != nil {
		return nil, err
	}
	if p.shadow, err = g.env.NewSums(k); err != nil {
		return nil, err
	}
	if p.better, err = evalue.NewPaired(g.heads.NLLBound, 0); err != nil {
		return nil, err
	}
	if p.worse, err = evalue.NewPaired(g.heads.NLLBound, 0); err != nil {
		return nil, err
	}
	p.accuracy, err = evalue.NewPaired(1, g.heads.MaxAccuracyDrop)
	return p, err
}

// evaluateAll processes the label pane's rows of a version and all of its shadows.
func (m *Model) evaluateAll(s *state, end int64) error {
	if !m.stage.heads.Shadow {
		return nil
	}
	for _, e := range s.evaluators {
		if err := s.evaluate(e, m.states[record.ShadowVersion(s.version.Name, e.number)], end); err != nil {
			return fmt.Errorf("head %d: %w", e.number, err)
		}
	}
	return nil
}

// evaluate processes the label pane's rows of one shadow. shadow is nil before its first message.
func (s *state) evaluate(e *evaluator, shadow *state, end int64) error {
	// A version exists from its first message on, which may be far ahead in the log. So only rows of processed panes
	// count as a start.
	if e.state == statePending && (shadow == nil || len(shadow.rows) == 0) {
		if e.deadline != 0 && end > e.deadline {
			why := "no row of it came by the deadline: its trainer failed, or there is none"
			return s.decide(e, ruling{record.ShadowLost, why}, end, nil)
		}
		return nil
	}
	if shadow == nil || e.over(end) {
		return nil
	}
	if k := shadow.version.K; k != s.version.K {
		why := fmt.Sprintf("it has %d classes, the version that serves %d", k, s.version.K)
		return s.decide(e, ruling{record.ShadowRejected, why}, end, nil)
	}
	if e.pairs == nil {
		var err error
		if e.pairs, err = s.stage.newPairs(s.version.K); err != nil {
			return err
		}
	}
	if e.state == statePending {
		e.state = record.ShadowRunning
	}
	n, err := s.pair(shadow, e.pairs)
	if err != nil || n == 0 && e.state != record.ShadowReady {
		return err
	}
	return s.weigh(e, end)
}

// pair adds the rows that both versions have, ordered by prediction time and id.
func (s *state) pair(shadow *state, p *pairs) (added int64, err error) {
	if len(shadow.rows) == 0 || len(s.rows) == 0 {
		return 0, nil
	}
	at := make(map[[16]byte]int, len(s.rows))
	for i := range s.rows {
		at[s.rows[i].ID] = i
	}
	sc := stage.NewScorer(s.version.K)
	for i := range shadow.rows {
		theirs := &shadow.rows[i]
		k, ok := at[theirs.ID]
		if !ok || s.rows[k].TS != theirs.TS || s.rows[k].Y != theirs.Y {
			continue
		}
		var one outcome
		f := s.version.At(theirs.TS, theirs.ID)
		if one.servingNLL, one.servingHit, err = sc.AddRow(p.serving, f, &s.rows[k]); err != nil {
			return added, err
		}
		f = shadow.version.At(theirs.TS, theirs.ID)
		if one.shadowNLL, one.shadowHit, err = sc.AddRow(p.shadow, f, theirs); err != nil {
			return added, err
		}
		if err := p.add(theirs.TS, one, s.stage.heads.NLLBound); err != nil {
			return added, err
		}
		added++
	}
	return added, nil
}

// outcome holds the scores of one row under both versions.
type outcome struct {
	servingNLL, servingHit float64
	shadowNLL, shadowHit   float64
}

// add adds a row to the tests.
func (p *pairs) add(ts int64, o outcome, bound float64) error {
	gain := min(o.servingNLL, bound) - min(o.shadowNLL, bound)
	if err := p.better.Add(gain); err != nil {
		return err
	}
	if err := p.worse.Add(-gain); err != nil {
		return err
	}
	if err := p.accuracy.Add(o.shadowHit - o.servingHit); err != nil {
		return err
	}
	p.nll[0], p.nll[1] = p.nll[0]+o.servingNLL, p.nll[1]+o.shadowNLL
	p.rows++
	p.from, p.to = min(p.from, ts), max(p.to, ts)
	return nil
}

// weigh decides if the pairs so far give enough evidence.
func (s *state) weigh(e *evaluator, end int64) error {
	cfg, p := &s.stage.heads, e.pairs
	sure := math.Log(1 / cfg.Alpha)
	if e.state == record.ShadowReady {
		switch {
		case e.until == 0 && p.rows >= cfg.MinRows && p.worse.LogE() >= sure:
			why := "its NLL has turned worse than that of the old head"
			return s.decide(e, ruling{record.ShadowRolled, why}, end, p)
		case e.until == 0 && end-e.readyAt >= int64(cfg.Watch):
			why := "it has stayed as good for heads.watch, and is watched no more"
			return s.decide(e, ruling{record.ShadowReady, why}, end, p)
		}
		return nil
	}
	if p.rows < cfg.MinRows {
		return nil
	}
	ev, err := s.evidence(p)
	if err != nil {
		return err
	}
	switch {
	case p.worse.LogE() >= sure:
		why := "its NLL is worse than that of the version that serves"
		return s.decide(e, ruling{record.ShadowRejected, why}, end, p)
	case p.better.LogE() >= sure && p.accuracy.LogE() >= sure && within(cfg, &ev):
		a, b := &ev.Serving, &ev.Shadow
		why := fmt.Sprintf("NLL %.4f → %.4f, accuracy %.4f → %.4f, ECE %.4f → %.4f ", a.NLL, b.NLL, a.Accuracy,
			b.Accuracy, a.ECE, b.ECE) + fmt.Sprintf("on %d rows that neither was fitted on", p.rows)
		return s.decide(e, ruling{record.ShadowReady, why}, end, p)
	case p.rows >= cfg.MaxRows:
		why := fmt.Sprintf("not shown to be better by heads.max_rows, %d rows", cfg.MaxRows)
		return s.decide(e, ruling{record.ShadowRejected, why}, end, p)
	}
	return nil
}

// within reports whether ECE and AURC have risen by no more than is allowed.
func within(c *proving.Config, ev *record.ShadowEvidence) bool {
	if ev.Shadow.ECE > ev.Serving.ECE+c.MaxECERise {
		return false
	}
	return ev.Shadow.AURC == nil || ev.Serving.AURC == nil || *ev.Shadow.AURC <= *ev.Serving.AURC+c.MaxAURCRise
}

func (s *state) evidence(p *pairs) (record.ShadowEvidence, error) {
	ev := record.ShadowEvidence{Rows: p.rows, Bound: s.stage.heads.NLLBound, Alpha: s.stage.heads.Alpha,
		LogEBetter: p.better.LogE(), LogEWorse: p.worse.LogE(), LogEAccuracy: p.accuracy.LogE()}
	if p.rows == 0 {
		return ev, nil
	}
	ev.From, ev.To = record.At(p.from), record.At(p.to)
	if p.rows > 1 {
		_, ev.NLLGain, ev.NLLGainSE = p.better.Gain()
	}
	for side, set := range []*acc.Set{p.serving, p.shadow} {
		to := []*record.ShadowScore{&ev.Serving, &ev.Shadow}[side]
		to.Accuracy, to.AURC = set.Labelled.MSP.Accuracy(), stage.Number(set.Labelled.MSP.AURC())
		to.NLL = p.nll[side] / float64(p.rows)
		var err error
		if to.ECE, to.ECENull, err = s.ece(set, p.rows, 0); err != nil {
			return ev, err
		}
	}
	return ev, nil
}

// ruling is the new state of a shadow, with the reason.
type ruling struct{ state, why string }

// decide publishes a verdict. A verdict that ends the shadow takes effect after the same delay as a new head, so that
// all shards read it in time.
func (s *state) decide(e *evaluator, r ruling, end int64, p *pairs) error {
	v, shadow := s.version, record.ShadowVersion(s.version.Name, e.number)
	d := record.Verdict{Schema: 1, Kind: record.HeadVerdict, ID: v.Model + "/" + shadow, Model: v.Model,
		Version: v.Name, Number: e.number, ShadowVersion: shadow, State: r.state, Why: r.why,
		DecidedAt: record.At(end)}
	if r.state != record.ShadowReady || e.state == record.ShadowReady {
		e.until = end + max(int64(s.stage.cfg.ShadowAfter), s.stage.env.Pane)
		d.EffectiveFrom = record.At(e.until)
	}
	if p != nil {
		var err error
		if d.Evidence, err = s.evidence(p); err != nil {
			return err
		}
	}
	if r.state == record.ShadowReady && e.state != record.ShadowReady {
		e.readyAt = end
	}
	e.state, e.pairs = r.state, nil
	if r.state == record.ShadowReady && e.until == 0 {
		var err error
		if e.pairs, err = s.stage.newPairs(v.K); err != nil {
			return err
		}
	}
	m, err := pipeline.NewMessage(pipeline.StreamHeads, record.HeadKey(d.ID, record.HeadVerdict), end, &d)
	if err != nil {
		return err
	}
	e.last = m.Value
	s.stage.env.Emit(s.whole(), m)
	return nil
}
