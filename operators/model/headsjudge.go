package model

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/plumbline/plumbline/operators/model/finetune"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// JudgeSpec is when a shadow is ready to be served, or not.
type JudgeSpec = finetune.HeadsConfig

// statePending is a request whose head has not run yet; the other states are those of package output.
const statePending = "pending"

// judge compares a shadow with the version that serves, on the sampled rows that both have.
type judge struct {
	number   int
	state    string
	deadline int64 // event time; 0 = none
	readyAt  int64 // event time; 0 = not
	until    int64 // event time from which it runs no more; 0 = open
	pairs    *pairs
	last     []byte // the newest verdict
}

// pairs are the rows of both so far: since the shadow began, or, once it is ready, since then.
type pairs struct {
	rows            int64
	from, to        int64          // prediction times
	serving, shadow *acc.Set       // as their calibrators in force make them
	better, worse   *evalue.Paired // by NLL floored at the bound
	accuracy        *evalue.Paired // hits of the shadow less those of the version that serves, with the margin
	nll             [2]float64     // sums, not floored
}

func (t *ModelTask) newPairs(k int) (*pairs, error) {
	spec := &t.cfg.Judge
	p := &pairs{from: math.MaxInt64, to: math.MinInt64}
	var err error
	if p.serving, err = t.env.NewSums(k); err != nil {
		return nil, err
	}
	if p.shadow, err = t.env.NewSums(k); err != nil {
		return nil, err
	}
	if p.better, err = evalue.NewPaired(spec.NLLBound, 0); err != nil {
		return nil, err
	}
	if p.worse, err = evalue.NewPaired(spec.NLLBound, 0); err != nil {
		return nil, err
	}
	p.accuracy, err = evalue.NewPaired(1, spec.MaxAccuracyDrop)
	return p, err
}

// shadowing says whether a version is a shadow that has not been found ready: then it raises no alarm, is not refitted
// and asks for no head.
func (t *ModelTask) shadowing(m *model, name string) bool {
	base, number, ok := record.BaseVersion(name)
	if !ok || !t.cfg.Judge.Shadow || m.versions[base] == nil {
		return false
	}
	for _, j := range t.loopOf(m, base).judges {
		if j.number == number {
			return j.state != record.ShadowReady
		}
	}
	return true
}

// judgeAll takes a label pane's rows of a version and of its shadows.
func (t *ModelTask) judgeAll(m *model, v *version, end int64) error {
	if !t.cfg.Judge.Shadow {
		return nil
	}
	l := t.loopOf(m, v.Name)
	for _, j := range l.judges {
		sv := m.versions[record.ShadowVersion(v.Name, j.number)]
		if err := t.judge(m, v, sv, l, j, end); err != nil {
			return fmt.Errorf("head %d: %w", j.number, err)
		}
	}
	return nil
}

// rowsOf are the sampled rows of a version of the label pane at hand.
func (t *ModelTask) rowsOf(m *model, version string) []acc.SampleRow {
	if l := t.loops[m.name][version]; l != nil {
		return l.rows
	}
	return nil
}

// discover adds judges of shadows that no request of this log was for: heads that came otherwise.
func (t *ModelTask) discover(m *model) {
	for _, name := range slices.Sorted(maps.Keys(t.loops[m.name])) {
		base, number, ok := record.BaseVersion(name)
		if ok && len(t.rowsOf(m, name)) > 0 && m.versions[base] != nil {
			t.loopOf(m, base).known(number)
		}
	}
}

// known adds a judge of a head that no request of this log was for.
func (l *loop) known(number int) {
	for _, j := range l.judges {
		if j.number == number {
			return
		}
	}
	l.judges = append(l.judges, &judge{number: number, state: statePending})
	l.number = max(l.number, number)
}

func (t *ModelTask) judge(m *model, v, sv *version, l *loop, j *judge, end int64) error {
	// A version is known from the first of its messages on, wherever that is in the log: only rows of processed panes count.
	rows := t.rowsOf(m, record.ShadowVersion(v.Name, j.number))
	if j.state == statePending && len(rows) == 0 {
		if j.deadline != 0 && end > j.deadline {
			return t.decideHead(v, j, record.ShadowLost, "no row of it came by the deadline: its trainer failed, or there is none", end, nil)
		}
		return nil
	}
	if sv == nil || j.state == record.ShadowRejected || j.state == record.ShadowRolled || j.state == record.ShadowLost || j.until != 0 && end > j.until {
		return nil
	}
	if sv.K != v.K {
		return t.decideHead(v, j, record.ShadowRejected, fmt.Sprintf("it has %d classes, the version that serves %d", sv.K, v.K), end, nil)
	}
	if j.pairs == nil {
		var err error
		if j.pairs, err = t.newPairs(v.K); err != nil {
			return err
		}
	}
	if j.state == statePending {
		j.state = record.ShadowRunning
	}
	n, err := t.pair(v, sv, l.rows, rows, j.pairs)
	if err != nil || n == 0 && j.state != record.ShadowReady {
		return err
	}
	return t.weigh(v, j, end)
}

// pair adds the rows that both versions have, in the order of prediction time and id.
func (t *ModelTask) pair(v, sv *version, serving, shadow []acc.SampleRow, p *pairs) (added int64, err error) {
	if len(shadow) == 0 || len(serving) == 0 {
		return 0, nil
	}
	at := make(map[[16]byte]int, len(serving))
	for i := range serving {
		at[serving[i].ID] = i
	}
	sc := stage.NewScorer(v.K)
	bound := t.cfg.Judge.NLLBound
	for i := range shadow {
		k, ok := at[shadow[i].ID]
		if !ok || serving[k].TS != shadow[i].TS || serving[k].Y != shadow[i].Y {
			continue
		}
		a, aHit, err := sc.AddRow(p.serving, v.At(serving[k].TS, serving[k].ID), &serving[k])
		if err != nil {
			return added, err
		}
		b, bHit, err := sc.AddRow(p.shadow, sv.At(shadow[i].TS, shadow[i].ID), &shadow[i])
		if err != nil {
			return added, err
		}
		gain := min(a, bound) - min(b, bound)
		for _, e := range []struct {
			test *evalue.Paired
			x    float64
		}{{p.better, gain}, {p.worse, -gain}, {p.accuracy, bHit - aHit}} {
			if err := e.test.Add(e.x); err != nil {
				return added, err
			}
		}
		p.nll[0], p.nll[1] = p.nll[0]+a, p.nll[1]+b
		p.rows, added = p.rows+1, added+1
		p.from, p.to = min(p.from, shadow[i].TS), max(p.to, shadow[i].TS)
	}
	return added, nil
}

// weigh decides, where the pairs so far say enough.
func (t *ModelTask) weigh(v *version, j *judge, end int64) error {
	spec, p := &t.cfg.Judge, j.pairs
	sure := math.Log(1 / spec.Alpha)
	if j.state == record.ShadowReady {
		switch {
		case j.until == 0 && p.rows >= spec.MinRows && p.worse.LogE() >= sure:
			return t.decideHead(v, j, record.ShadowRolled, "its NLL has turned worse than that of the old head", end, p)
		case j.until == 0 && end-j.readyAt >= int64(spec.Watch):
			return t.decideHead(v, j, record.ShadowReady, "it has stayed as good for heads.watch, and is watched no more", end, p)
		}
		return nil
	}
	if p.rows < spec.MinRows {
		return nil
	}
	ev, err := t.shadowEvidence(v, p)
	if err != nil {
		return err
	}
	switch {
	case p.worse.LogE() >= sure:
		return t.decideHead(v, j, record.ShadowRejected, "its NLL is worse than that of the version that serves", end, p)
	case p.better.LogE() >= sure && p.accuracy.LogE() >= sure && within(&ev, spec):
		return t.decideHead(v, j, record.ShadowReady, fmt.Sprintf("NLL %.4f → %.4f, accuracy %.4f → %.4f, ECE %.4f → %.4f on %d rows that neither was fitted on",
			ev.Serving.NLL, ev.Shadow.NLL, ev.Serving.Accuracy, ev.Shadow.Accuracy, ev.Serving.ECE, ev.Shadow.ECE, p.rows), end, p)
	case p.rows >= spec.MaxRows:
		return t.decideHead(v, j, record.ShadowRejected, fmt.Sprintf("not shown to be better by heads.max_rows, %d rows", spec.MaxRows), end, p)
	}
	return nil
}

// within says whether ECE and AURC are no more worse than is allowed.
func within(ev *record.ShadowEvidence, spec *JudgeSpec) bool {
	if ev.Shadow.ECE > ev.Serving.ECE+spec.MaxECERise {
		return false
	}
	return ev.Shadow.AURC == nil || ev.Serving.AURC == nil || *ev.Shadow.AURC <= *ev.Serving.AURC+spec.MaxAURCRise
}

func (t *ModelTask) shadowEvidence(v *version, p *pairs) (record.ShadowEvidence, error) {
	ev := record.ShadowEvidence{Rows: p.rows, Bound: t.cfg.Judge.NLLBound, Alpha: t.cfg.Judge.Alpha,
		LogEBetter: p.better.LogE(), LogEWorse: p.worse.LogE(), LogEAccuracy: p.accuracy.LogE()}
	if p.rows == 0 {
		return ev, nil
	}
	ev.From, ev.To = pipeline.Format(p.from), pipeline.Format(p.to)
	if p.rows > 1 {
		_, ev.NLLGain, ev.NLLGainSE = p.better.Gain()
	}
	for side, set := range []*acc.Set{p.serving, p.shadow} {
		to := []*record.ShadowScore{&ev.Serving, &ev.Shadow}[side]
		to.Accuracy, to.NLL, to.AURC = set.Labelled.MSP.Accuracy(), p.nll[side]/float64(p.rows), stage.Number(set.Labelled.MSP.AURC())
		var err error
		if to.ECE, to.ECENull, err = t.excess(v, set, p.rows, 0); err != nil {
			return ev, err
		}
	}
	return ev, nil
}

// decideHead publishes a verdict. One that ends the shadow takes effect as late as a head takes it up, so that all shards
// hear of it in time.
func (t *ModelTask) decideHead(v *version, j *judge, state, why string, end int64, p *pairs) error {
	shadow := record.ShadowVersion(v.Name, j.number)
	d := record.Verdict{Schema: 1, Kind: record.HeadVerdict, ID: v.Model + "/" + shadow, Model: v.Model, Version: v.Name, Number: j.number, ShadowVersion: shadow,
		State: state, Why: why, DecidedAt: pipeline.Format(end)}
	if state != record.ShadowReady || j.state == record.ShadowReady {
		j.until = end + max(int64(t.cfg.Trigger.ShadowAfter), t.cfg.Pane)
		d.EffectiveFrom = pipeline.Format(j.until)
	}
	if p != nil {
		var err error
		if d.Evidence, err = t.shadowEvidence(v, p); err != nil {
			return err
		}
	}
	if state == record.ShadowReady && j.state != record.ShadowReady {
		j.readyAt = end
	}
	j.state, j.pairs = state, nil
	if state == record.ShadowReady && j.until == 0 {
		var err error
		if j.pairs, err = t.newPairs(v.K); err != nil {
			return err
		}
	}
	m, err := pipeline.NewMessage(pipeline.StreamHeads, record.HeadKey(d.ID, record.HeadVerdict), end, &d)
	if err != nil {
		return err
	}
	j.last = m.Value
	t.env.Emit(&v.key("", &t.cfg).Key, m)
	return nil
}
