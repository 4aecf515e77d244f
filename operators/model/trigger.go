package model

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/plumbline/plumbline/operators/model/finetune"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TriggerSpec is when a model version is to get a new head. Event time, ns.
type TriggerSpec = finetune.TriggerConfig

// Reasons of a request.
const (
	reasonECE      = "ece"
	reasonAccuracy = "accuracy"
	reasonAURC     = "aurc"
)

// triggerBlocks is how many blocks the judged rows are kept in: they move on by a block at a time.
const triggerBlocks = 8

// loop is what the last step of the loop knows of a model version: the rows that its trigger judges, the requests that it
// has made, and the shadows that came of them.
type loop struct {
	reference *acc.Set // of the first ReferenceRows sampled rows, as the calibrators in force made them
	blocks    []triggerBlock
	over      overState
	tried     triedState
	number    int     // of the newest request
	asked     []int64 // event times of the requests within the budget's period
	judges    []*judge
	rows      []acc.SampleRow // of the label pane at hand
}

// triggerBlock are the sums of some consecutive sampled rows.
type triggerBlock struct {
	start, end int64 // of its label panes
	from       int64 // earliest prediction time
	rows       int64
	set        *acc.Set
}

// overState is since when something has been over its bound; reason is empty where nothing is.
type overState struct {
	reason      string
	since, from int64 // end of the label pane; earliest prediction time of the rows that were judged
	rows        int64 // sampled rows from then on, those judged then included
}

// triedState is since when recalibration has been tried: the refit decision that put the calibrator of a revision in force,
// or the first one that did not.
type triedState struct {
	at       int64 // end of a label pane; 0 = not
	revision int
}

func (l *loop) idle() bool {
	return l.reference == nil && l.number == 0 && len(l.judges) == 0
}

// loopOf finds or makes the loop of a version.
func (t *ModelTask) loopOf(m *model, version string) *loop {
	if t.loops == nil {
		t.loops = map[string]map[string]*loop{}
	}
	if t.loops[m.name] == nil {
		t.loops[m.name] = map[string]*loop{}
	}
	l := t.loops[m.name][version]
	if l == nil {
		l = &loop{}
		t.loops[m.name][version] = l
	}
	return l
}

// note keeps a label pane's sampled rows of a version until closeLoop.
func (t *ModelTask) note(v *version, rows []acc.SampleRow) {
	if t.cfg.Trigger.Enabled || t.cfg.Judge.Shadow {
		t.loopOf(t.models[v.Model], v.Name).rows = rows
	}
}

// closeLoop judges shadows and then the trigger, when all versions of a model have processed a label pane.
func (t *ModelTask) closeLoop(m *model, pane int64) error {
	if !t.cfg.Trigger.Enabled && !t.cfg.Judge.Shadow {
		return nil
	}
	end := (pane + 1) * t.cfg.Pane
	if t.cfg.Judge.Shadow {
		t.discover(m)
	}
	for _, name := range slices.Sorted(maps.Keys(m.versions)) {
		v := m.versions[name]
		if err := t.judgeAll(m, v, end); err != nil {
			return fmt.Errorf("shadows of version %q: %w", name, err)
		}
		if err := t.trigger(m, v, pane); err != nil {
			return fmt.Errorf("trigger of version %q: %w", name, err)
		}
	}
	for _, l := range t.loops[m.name] {
		l.rows = nil
	}
	return nil
}

// trigger takes a label pane's rows and asks for a head where that is due.
func (t *ModelTask) trigger(m *model, v *version, pane int64) error {
	spec, l := &t.cfg.Trigger, t.loopOf(m, v.Name)
	if !spec.Enabled || len(l.rows) == 0 || t.shadowing(m, v.Name) {
		return nil
	}
	full, err := t.addReference(v, l)
	if err != nil || !full {
		return err
	}
	if err := t.addBlock(v, l, pane); err != nil {
		return err
	}
	ev, reason, why, err := t.overBound(v, l, pane)
	if err != nil {
		return err
	}
	end := (pane + 1) * t.cfg.Pane
	if reason == "" {
		l.over = overState{}
		return nil
	}
	if l.over.reason == "" {
		l.over = overState{since: end, from: l.blocks[0].from, rows: l.judged()}
	} else {
		l.over.rows += int64(len(l.rows))
	}
	l.over.reason = reason
	if end-l.over.since < int64(spec.For) || l.over.rows < spec.DataRows || !l.may(spec, end) {
		return nil
	}
	return t.ask(v, l, ev, reason, why, end)
}

// addReference adds to the reference rows until there are enough of them; full is false while there are not.
func (t *ModelTask) addReference(v *version, l *loop) (full bool, err error) {
	if l.reference == nil {
		if l.reference, err = t.env.NewSums(v.K); err != nil {
			return false, err
		}
	}
	if l.reference.LabelledRows() >= t.cfg.Trigger.ReferenceRows {
		return true, nil
	}
	return false, t.addRows(v, l.reference, l.rows)
}

// addRows adds rows as the calibrator in force at their time makes them.
func (t *ModelTask) addRows(v *version, set *acc.Set, rows []acc.SampleRow) error {
	sc := stage.NewScorer(v.K)
	for i := range rows {
		if err := sc.Add(set, v.At(rows[i].TS, rows[i].ID), &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// addBlock adds the rows to the last block, or to a new one where that is full, and forgets what is not judged any more.
func (t *ModelTask) addBlock(v *version, l *loop, pane int64) error {
	spec := &t.cfg.Trigger
	start, end := pane*t.cfg.Pane, (pane+1)*t.cfg.Pane
	if n := len(l.blocks); n == 0 || l.blocks[n-1].rows >= max(spec.Rows/triggerBlocks, 1) {
		set, err := t.env.NewSums(v.K)
		if err != nil {
			return err
		}
		l.blocks = append(l.blocks, triggerBlock{start: start, from: math.MaxInt64, set: set})
	}
	b := &l.blocks[len(l.blocks)-1]
	b.end, b.rows = end, b.rows+int64(len(l.rows))
	for i := range l.rows {
		b.from = min(b.from, l.rows[i].TS)
	}
	if err := t.addRows(v, b.set, l.rows); err != nil {
		return err
	}
	for l.judged()-l.blocks[0].rows >= spec.Rows {
		l.blocks = slices.Delete(l.blocks, 0, 1)
	}
	return nil
}

func (l *loop) judged() int64 {
	n := int64(0)
	for i := range l.blocks {
		n += l.blocks[i].rows
	}
	return n
}

// may says whether a request is allowed now: none is under way, and neither the cool-down nor the budget forbids it.
func (l *loop) may(spec *TriggerSpec, end int64) bool {
	for _, j := range l.judges {
		if j.state == statePending || j.state == record.ShadowRunning || j.state == record.ShadowReady && j.until == 0 {
			return false
		}
	}
	l.asked = slices.DeleteFunc(l.asked, func(at int64) bool { return at <= end-int64(spec.BudgetPeriod) && at <= end-int64(spec.Cooldown) })
	n := 0
	for _, at := range l.asked {
		if at > end-int64(spec.Cooldown) {
			return false
		}
		if at > end-int64(spec.BudgetPeriod) {
			n++
		}
	}
	return n < spec.Budget
}

// overBound judges the latest rows.
func (t *ModelTask) overBound(v *version, l *loop, pane int64) (ev record.FinetuneEvidence, reason, why string, err error) {
	spec := &t.cfg.Trigger
	if l.judged() < spec.MinRows {
		return ev, "", "", nil
	}
	set, err := t.mergeBlocks(v, l.blocks)
	if err != nil {
		return ev, "", "", err
	}
	now, was := &set.Labelled.MSP, &l.reference.Labelled.MSP
	n, nRef := set.LabelledRows(), l.reference.LabelledRows()
	a, ref := now.Accuracy(), was.Accuracy()
	ev = record.FinetuneEvidence{Rows: n, Accuracy: a, AURC: stage.Number(now.AURC()), ReferenceRows: nRef, ReferenceAccuracy: ref, ReferenceAURC: stage.Number(was.AURC())}
	if len(v.Decision.Record) > 0 { // a restored task has an empty one where there was none
		ev.Refit = v.Decision.Record
	}
	if ev.ECE, ev.ECENull, err = t.excess(v, set, pane, 0); err != nil {
		return ev, "", "", err
	}
	noise := spec.Z * math.Sqrt(ref*(1-ref)/float64(nRef)+a*(1-a)/float64(n))
	if drop := ref - a; drop > spec.MaxAccuracyDrop && drop > noise {
		return ev, reasonAccuracy, fmt.Sprintf("accuracy %.4f of %d rows, %.4f of the first %d", a, n, ref, nRef), nil
	}
	if rise := now.AURC() - was.AURC(); rise > spec.MaxAURCRise && rise > noise {
		return ev, reasonAURC, fmt.Sprintf("AURC %.4f of %d rows, %.4f of the first %d", now.AURC(), n, was.AURC(), nRef), nil
	}
	return t.sinceRefit(v, l, pane, ev)
}

// sinceRefit judges the ECE of the rows since recalibration was tried: what it has left.
func (t *ModelTask) sinceRefit(v *version, l *loop, pane int64, ev record.FinetuneEvidence) (record.FinetuneEvidence, string, string, error) {
	if at, revision, ok := decision(v.Decision.Record); ok && (l.tried.at == 0 || l.tried.revision != revision) {
		l.tried = triedState{at, revision}
	}
	at := l.tried.at
	i := slices.IndexFunc(l.blocks, func(b triggerBlock) bool { return b.from >= at })
	if at == 0 || i < 0 {
		return ev, "", "", nil
	}
	set, err := t.mergeBlocks(v, l.blocks[i:])
	if err != nil || set.LabelledRows() < t.cfg.Trigger.MinRows {
		return ev, "", "", err
	}
	ece, null, err := t.excess(v, set, pane, t.cfg.Trigger.MaxECE)
	if err != nil || !(ece-null > t.cfg.Trigger.MaxECE) {
		return ev, "", "", err
	}
	return ev, reasonECE, fmt.Sprintf("ECE %.4f of %d rows since the refit decision at %s, a calibrated model would show %.4f",
		ece, set.LabelledRows(), pipeline.Format(at), null), nil
}

// excess returns the ECE and its null expectation, which is not computed (0) where the ECE is at most least.
func (t *ModelTask) excess(v *version, set *acc.Set, pane int64, least float64) (ece, null float64, err error) {
	bins, err := set.Labelled.MSP.Bins(t.cfg.Bins)
	if err != nil {
		return 0, 0, err
	}
	if ece = metric.ECE(bins); ece <= least {
		return ece, 0, nil
	}
	return ece, metric.Resample(bins, t.cfg.Resamples, (&stage.Key{Version: &v.Version}).Seed("trigger", pane)).Null, nil
}

func (t *ModelTask) mergeBlocks(v *version, blocks []triggerBlock) (*acc.Set, error) {
	set, err := t.env.NewSums(v.K)
	if err != nil {
		return nil, err
	}
	for i := range blocks {
		if err := t.env.MergeInto(set, blocks[i].set); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// decision reads when a refit decision was made, and the revision that was in force then.
func decision(last []byte) (at int64, revision int, ok bool) {
	var d struct {
		Revision  int
		DecidedAt string `json:"decided_at"`
	}
	if len(last) == 0 || json.Unmarshal(last, &d) != nil {
		return 0, 0, false
	}
	t, err := time.Parse(time.RFC3339Nano, d.DecidedAt)
	return t.UnixNano(), d.Revision, err == nil
}

// ask publishes a request.
func (t *ModelTask) ask(v *version, l *loop, ev record.FinetuneEvidence, reason, why string, end int64) error {
	spec := &t.cfg.Trigger
	l.number++
	shadow := record.ShadowVersion(v.Name, l.number)
	ev.Since = pipeline.Format(l.over.since)
	r := record.Finetune{Schema: 1, ID: v.Model + "/" + shadow, Model: v.Model, Version: v.Name, Number: l.number, ShadowVersion: shadow, Reason: reason, Why: why,
		DecidedAt: pipeline.Format(end), ShadowFrom: pipeline.Format(end + int64(spec.ShadowAfter)), Deadline: pipeline.Format(end + int64(spec.Deadline)), Recipe: spec.Recipe,
		Classes: v.K, Data: record.FinetuneData{From: pipeline.Format(l.over.from), To: pipeline.Format(end), Rows: l.over.rows}, Evidence: ev}
	h := fnv.New64a()
	h.Write([]byte(r.ID))
	r.Seed = h.Sum64() >> 11 // 53 bits: JSON's numbers hold it
	m, err := pipeline.NewMessage(pipeline.StreamFinetune, v.Model+"/"+v.Name, end, &r)
	if err != nil {
		return err
	}
	l.asked = append(l.asked, end)
	l.judges = append(l.judges, &judge{number: l.number, state: statePending, deadline: end + int64(spec.Deadline)})
	l.over = overState{}
	t.env.Emit(&v.key("", &t.cfg).Key, m)
	return nil
}
