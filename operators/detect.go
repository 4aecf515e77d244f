package operators

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/output"
)

// RuleSpec is the rule "excess ECE over what a calibrated model would show, for a while", with hysteresis. On
// the latest label panes with at least Rows labelled rows,
//
//	excess = ECE - E[ECE of a perfectly calibrated model with the same confidences]
//
// It is pending while excess > Fire and ECE is above the null's 95 % quantile, fires after For of event time, and
// resolves after ClearFor with excess < Clear. It is judged at label panes that bring rows, never by the clock.
type RuleSpec struct {
	Name, Signal, Severity    string
	Rows, MinRows, WarmupRows int64
	Fire, Clear               float64
	For, ClearFor             int64
	Slices                    bool
}

// ruleState is where a rule stands for one key.
type ruleState struct {
	state      string // "", pending, firing
	since      int64  // start of the first pane over Fire
	overFrom   int64  // end of that pane: `for` counts from here
	clearFrom  int64  // end of the first pane under Clear while firing; 0 = none
	lastChange int64
	last       []byte // the latest alert, as published

	inhibitedBy string // as in the latest alert
	told        bool   // it has fired uninhibited since it was last in order
	holdFrom    int64  // end of the pane at which its inhibitor was gone; 0 = it is there
}

const (
	signalRaw        = "raw"
	signalCalibrated = "calibrated"
	ruleOK           = ""
	pending          = "pending"
	firing           = "firing"
	resolved         = "resolved"
)

// alerts judges the alarms and rules of a version at the end of a label pane, slices and whole together, and publishes what
// changed.
func (t *ModelTask) alerts(v *version, names []string, in map[string]*paneInput) {
	for _, name := range names {
		k := v.keys[name]
		k.changes = map[*ruleState]*output.Alert{}
		if in[name].labelled > 0 {
			t.judgeRules(v, k, in[name])
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
	for _, name := range names {
		t.settle(v, names, in[name].end)
		return
	}
}

// judgeAlarm notes the change of an alarm.
func (t *ModelTask) judgeAlarm(v *version, k *keyState, a *keyAlarm, rejected bool, of int, in *paneInput) {
	state, changed := a.judge(t.cfg.Alarm, rejected, in.end, t.cfg.Pane)
	if !changed {
		return
	}
	if !a.slice {
		of = 0
	}
	k.changes[&a.alert] = t.alarmAlert(v, k, a, state, in, of)
}

// judgeRules judges the rules of a key at the end of a label pane that brought rows.
func (t *ModelTask) judgeRules(v *version, k *keyState, in *paneInput) {
	for i := range t.cfg.Rules {
		spec := &t.cfg.Rules[i]
		if k.slice != "" && !spec.Slices || k.labelled < spec.WarmupRows {
			continue
		}
		bins, n := k.recent.last(spec.Signal, spec.Rows)
		if n < max(spec.MinRows, 1) {
			continue
		}
		j := judgement{rows: n, ece: metric.ECE(bins), iv: metric.Resample(bins, t.cfg.Resamples, seed(v, k, spec.Signal, in.pane))}
		if state, changed := k.rules[i].judge(spec, j, in.end-t.cfg.Pane, in.end); changed {
			k.changes[&k.rules[i]] = t.ruleAlert(v, k, spec, &k.rules[i], state, j, in.end)
		}
	}
}

// judgement is what a rule sees at one pane.
type judgement struct {
	rows int64
	ece  float64
	iv   metric.Interval
}

func (j judgement) excess() float64 { return j.ece - j.iv.Null }

// judge moves the rule's state; changed states are published.
func (r *ruleState) judge(spec *RuleSpec, j judgement, start, end int64) (state string, changed bool) {
	over := j.excess() > spec.Fire && j.ece > j.iv.NullHi
	switch {
	case r.state == ruleOK && over:
		*r = ruleState{state: pending, since: start, overFrom: end, last: r.last}
		if spec.For > 0 {
			return pending, true
		}
		r.state = firing
		return firing, true
	case r.state == pending && !over:
		r.end()
		return resolved, true
	case r.state == pending && end-r.overFrom >= spec.For:
		r.state = firing
		return firing, true
	case r.state == firing && j.excess() < spec.Clear:
		if r.clearFrom == 0 {
			r.clearFrom = end
		}
		if end-r.clearFrom >= spec.ClearFor {
			r.end()
			return resolved, true
		}
	case r.state == firing:
		r.clearFrom = 0
	}
	return r.state, false
}

// end takes the rule back to order; who inhibited it, and who was told of it, is for the alert that says so.
func (r *ruleState) end() {
	*r = ruleState{lastChange: r.since, last: r.last, inhibitedBy: r.inhibitedBy, told: r.told}
}

func (t *ModelTask) ruleAlert(v *version, k *keyState, spec *RuleSpec, r *ruleState, state string, j judgement, at int64) *output.Alert {
	since := r.since
	if state == resolved {
		since = r.lastChange
	}
	a := &output.Alert{Schema: 1, Model: v.model, Version: v.name, Slice: k.slice, Rule: spec.Name, Kind: kindExcess, Severity: spec.Severity, State: state,
		At: pipeline.Format(at), Value: j.excess(), Threshold: spec.Fire, ECE: j.ece, ECENull: j.iv.Null, ECELo: &j.iv.Lo, ECEHi: &j.iv.Hi,
		Rows: j.rows, Signal: spec.Signal, Window: fmt.Sprintf("last %d rows", spec.Rows)}
	if since != 0 {
		a.Since = pipeline.Format(since)
	}
	a.Diagram = t.diagram(v, k, a.At)
	a.Message = fmt.Sprintf("%s ECE %.4f over the last %d labelled rows, %.4f more than a calibrated model would show (%.4f); fires above %.4f, resolves below %.4f",
		spec.Signal, j.ece, j.rows, j.excess(), j.iv.Null, spec.Fire, spec.Clear)
	return a
}
