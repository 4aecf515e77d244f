package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/operators/model/rule"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// RuleSpec is a rule with hysteresis. Its value, by kind, is
//
//	excess      ECE - E[ECE of a perfectly calibrated model with the same confidences], significant where ECE is above the null's
//	            95 % quantile; of the latest label panes with at least Rows labelled rows
//	reference   how much worse Measure is than in the reference (calib/detect/reference), significant where the 95 % interval is above 0
//	distance    of the distribution of Score of the latest predictions from that of the reference, significant where it is above its
//	            threshold at level Alpha
//	estimate    of accuracy its fall from the labelled reference's, of ECE itself, without labels; of miss the difference between
//	            estimated and true accuracy of labelled rows, significant beyond 3 standard errors
//	threshold   Measure itself of the latest rows, significant always, or with Interval where its 95 % interval is beyond Fire
//
// It is pending while the value is above Fire and significant, fires after For of event time, and resolves after ClearFor below Clear;
// with Below the other way round. It is judged at label panes that bring rows, never by the clock.
type RuleSpec struct{ rule.Config }

// Rules are the rules of a configuration.
func Rules(list []rule.Config) []RuleSpec {
	out := make([]RuleSpec, len(list))
	for i, c := range list {
		out[i] = RuleSpec{c}
	}
	return out
}

// alerts judges the alarms and rules of a version at the end of a label pane, slices and whole together, and publishes what
// changed.
func (t *ModelTask) alerts(v *version, names []string, in map[string]*stage.Pane) error {
	for _, name := range names {
		k := v.keys[name]
		k.changes = map[*stage.AlertState]*record.Alert{}
		if err := t.judgeRules(v, k, in[name]); err != nil {
			return fmt.Errorf("slice %q: %w", name, err)
		}
	}
	if t.cfg.Alarm != nil {
		for _, signal := range t.cfg.Alarm.Signals {
			off, of := t.rejected(v, names, signal)
			for _, name := range names {
				if a := v.keys[name].alarm(signal); a != nil {
					t.judgeAlarm(v, v.keys[name], a, off[name], of, in[name])
				}
			}
		}
	}
	if len(names) > 0 {
		t.settle(v, names, in[names[0]].End)
	}
	return nil
}

// judgeAlarm notes the change of an alarm.
func (t *ModelTask) judgeAlarm(v *version, k *keyState, a *keyAlarm, rejected bool, of int, in *stage.Pane) {
	state, changed := a.judge(t.cfg.Alarm, rejected, in.End, t.cfg.Pane)
	if !changed {
		return
	}
	if !a.slice {
		of = 0
	}
	k.changes[&a.alert] = t.alarmAlert(v, k, a, state, in, of)
}

// judgeRules judges the rules of a key at the end of a label pane.
func (t *ModelTask) judgeRules(v *version, k *keyState, in *stage.Pane) error {
	for i := range t.cfg.Rules {
		spec := &t.cfg.Rules[i]
		if k.Slice != "" && !spec.Slices {
			continue
		}
		j, ok, err := t.judgement(v, k, spec, k.looks[i], in)
		if err != nil {
			return fmt.Errorf("rule %s: %w", spec.Name, err)
		}
		if !ok || j.rows < max(spec.MinRows, 1) || k.Labelled < spec.WarmupRows && spec.Kind != kindDistance && spec.Measure != measureCoverage {
			continue
		}
		if state, changed := spec.move(&k.rules[i], j, in.End-t.cfg.Pane, in.End); changed {
			k.changes[&k.rules[i]] = t.ruleAlert(v, k, spec, &k.rules[i], state, j, in.End)
		}
	}
	return nil
}

// judgement is what a rule sees of a label pane; ok is false where there is nothing new or too little.
func (t *ModelTask) judgement(v *version, k *keyState, spec *RuleSpec, l *look, in *stage.Pane) (j judgement, ok bool, err error) {
	if l == nil {
		if in.Labelled == 0 || k.Labelled < spec.WarmupRows {
			return j, false, nil
		}
		bins, n := k.Recent.Last(spec.Signal, spec.Rows)
		if n < max(spec.MinRows, 1) {
			return j, false, nil
		}
		return judgement{rows: n, ece: metric.ECE(bins), iv: metric.Resample(bins, t.cfg.Resamples, k.Seed(spec.Signal, in.Index))}, true, nil
	}
	rows, err := t.look(v, k, spec, l, in)
	if err != nil || rows == 0 {
		return j, false, err
	}
	ref, cur, ok := l.windows(spec)
	if !ok || cur.rows < max(spec.MinRows, 1) {
		return j, false, nil
	}
	switch spec.Kind {
	case kindThreshold:
		return spec.threshold(cur, t.cfg.Bins, reference.Options{Resamples: t.cfg.Resamples, Seed: k.Seed(spec.Signal+spec.Measure, in.Index)})
	case kindReference:
		return spec.compare(ref, cur, t.cfg.Bins, reference.Options{Resamples: t.cfg.Resamples, Seed: k.Seed(spec.Signal+spec.Measure, in.Index)})
	case kindDistance:
		j, ok = spec.distance(ref, cur)
	case kindEstimate:
		if k.drift == nil {
			return j, false, nil
		}
		j, ok = spec.estimate(k, t.cfg.Unlabelled, cur, t.cfg.Bins)
	}
	return j, ok, nil
}

// newLook is what a rule looks at; nil for those that look at the key's recent panes.
func (s *RuleSpec) newLook() *look {
	if s.Kind == "" || s.Kind == kindExcess {
		return nil
	}
	l := &look{}
	if s.Kind == kindThreshold && s.Measure == measureCoverage {
		l.coverage = &coverage{}
	}
	return l
}

// lookSize is the length of the sums that a rule keeps.
func (s *RuleSpec) lookSize(bins int) int {
	switch {
	case s.labelled():
		return s.labelledSize(bins)
	case s.Kind == kindThreshold:
		return coverageSize
	}
	return s.unlabelledSize()
}

// look gives a rule the rows of a label pane and returns how many there were.
func (t *ModelTask) look(v *version, k *keyState, spec *RuleSpec, l *look, in *stage.Pane) (rows int64, err error) {
	if l.coverage != nil {
		sums := l.coverage.add(spec, in, t.cfg.Pane)
		l.add(spec, int64(sums[0]), sums[:])
		return int64(sums[0]), nil
	}
	sums := make([]float64, spec.lookSize(t.cfg.Bins))
	add := func(set *acc.Set) error {
		if !spec.labelled() {
			n, err := spec.addSeen(sums, set)
			rows += n
			return err
		}
		if set.LabelledRows() == 0 {
			return nil
		}
		rows += set.LabelledRows()
		return spec.addLabelled(sums, set, t.cfg.Bins)
	}
	if !spec.labelled() || spec.Signal == stage.SignalRaw {
		for _, c := range in.Cells {
			if err := add(c.Set); err != nil {
				return rows, err
			}
		}
	} else {
		for _, p := range slices.Sorted(maps.Keys(in.Scored)) {
			if err := add(in.Scored[p]); err != nil {
				return rows, err
			}
		}
	}
	if spec.labelled() && spec.Measure == measureNLL {
		if err := addMoments(sums, v, k, spec, in); err != nil {
			return rows, err
		}
	}
	l.add(spec, rows, sums)
	return rows, nil
}

// addMoments adds the NLL of the sampled rows of a pane.
func addMoments(sums []float64, v *version, k *keyState, spec *RuleSpec, in *stage.Pane) error {
	z, p := make([]float64, k.K), make([]float64, k.K)
	for i := range in.Rows {
		row := &in.Rows[i]
		for j, x := range row.Z {
			z[j] = float64(x)
		}
		var cal calibrator.Calibrator
		if f := v.At(row.TS, row.ID); f != nil && spec.Signal == stage.SignalCalibrated {
			cal = f.Cal
		}
		_, nll, err := stage.Evaluate(cal, z, p, int(row.Y))
		if err != nil {
			return err
		}
		w := float64(row.W)
		sums[0], sums[1], sums[2] = sums[0]+w, sums[1]+w*nll, sums[2]+w*nll*nll
	}
	return nil
}

// judgement is what a rule sees at one pane. Of kind excess value and significance follow from ECE and interval; others have measured them.
type judgement struct {
	rows int64
	ece  float64
	iv   metric.Interval

	measured    bool
	value       float64
	lo, hi      *float64
	significant bool
	detail      string
}

func (j judgement) excess() float64 {
	if j.measured {
		return j.value
	}
	return j.ece - j.iv.Null
}

func (j judgement) isSignificant() bool {
	return j.measured && j.significant || !j.measured && j.ece > j.iv.NullHi
}

func (t *ModelTask) ruleAlert(v *version, k *keyState, spec *RuleSpec, r *stage.AlertState, state string, j judgement, at int64) *record.Alert {
	since := r.Since
	if state == stage.Resolved {
		since = r.LastChange
	}
	a := &record.Alert{Schema: 1, Model: v.Model, Version: v.Name, Slice: k.Slice, Rule: spec.Name, Kind: cmp.Or(spec.Kind, kindExcess), Measure: spec.Measure, Severity: spec.Severity,
		State: state, At: pipeline.Format(at), Value: j.excess(), ValueLo: j.lo, ValueHi: j.hi, Threshold: spec.Fire, ECE: j.ece, ECENull: j.iv.Null, ECELo: &j.iv.Lo, ECEHi: &j.iv.Hi,
		Rows: j.rows, Signal: spec.Signal, Window: fmt.Sprintf("last %d rows", spec.Rows)}
	if spec.Kind == kindDistance || spec.Kind == kindEstimate || spec.Measure == measureCoverage {
		a.Signal, a.ECELo, a.ECEHi = stage.SignalRaw, nil, nil
	}
	if spec.Kind == kindDistance {
		a.Measure += " of " + spec.Score
	}
	if since != 0 {
		a.Since = pipeline.Format(since)
	}
	a.Diagram = t.env.Diagram(&k.Key, a.At)
	if j.measured {
		fire, clear := spec.sides()
		a.Message = fmt.Sprintf("%s; fires %s %.4g, resolves %s %.4g", j.detail, fire, spec.Fire, clear, spec.Clear)
		return a
	}
	a.Message = fmt.Sprintf("%s ECE %.4f over the last %d labelled rows, %.4f more than a calibrated model would show (%.4f); fires above %.4f, resolves below %.4f",
		spec.Signal, j.ece, j.rows, j.excess(), j.iv.Null, spec.Fire, spec.Clear)
	return a
}

// move moves the rule's state; changed states are published.
func (spec *RuleSpec) move(r *stage.AlertState, j judgement, start, end int64) (state string, changed bool) {
	over := spec.beyond(j.excess(), spec.Fire) && j.isSignificant()
	switch {
	case r.State == stage.Inactive && over:
		*r = stage.AlertState{State: stage.Pending, Since: start, OverFrom: end, Last: r.Last}
		if spec.For > 0 {
			return stage.Pending, true
		}
		r.State = stage.Firing
		return stage.Firing, true
	case r.State == stage.Pending && !over:
		r.End()
		return stage.Resolved, true
	case r.State == stage.Pending && end-r.OverFrom >= int64(spec.For):
		r.State = stage.Firing
		return stage.Firing, true
	case r.State == stage.Firing && spec.beyond(spec.Clear, j.excess()):
		if r.ClearFrom == 0 {
			r.ClearFrom = end
		}
		if end-r.ClearFrom >= int64(spec.ClearFor) {
			r.End()
			return stage.Resolved, true
		}
	case r.State == stage.Firing:
		r.ClearFrom = 0
	}
	return r.State, false
}
