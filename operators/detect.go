package operators

import (
	"encoding/json"
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
}

const (
	signalRaw = "raw"
	ruleOK    = ""
	pending   = "pending"
	firing    = "firing"
	resolved  = "resolved"
)

// recent holds the reliability bins of the latest label panes: what rules look back on.
type recent struct {
	panes []paneBins
}

type paneBins struct {
	end        int64
	rawN, calN int64
	raw, cal   []metric.Bin
}

func (r *recent) add(in *paneInput, sc scored, bins int, keep int64) error {
	if in.labelled == 0 || keep == 0 {
		return nil
	}
	p := paneBins{end: in.end}
	for _, c := range in.cells {
		if err := addBins(&p.raw, &p.rawN, c.set, bins); err != nil {
			return err
		}
		if s := sc[c.predictionPane]; s != nil {
			if err := addBins(&p.cal, &p.calN, s, bins); err != nil {
				return err
			}
		}
	}
	r.panes = append(r.panes, p)
	for len(r.panes) > 1 && r.enough(1, keep) {
		r.panes = r.panes[1:]
	}
	return nil
}

// enough reports whether the panes from i on hold at least so many rows of both signals.
func (r *recent) enough(i int, rows int64) bool {
	var raw, cal int64
	for _, p := range r.panes[i:] {
		raw += p.rawN
		cal += p.calN
	}
	return raw >= rows && cal >= rows
}

// last sums the bins of the latest panes with at least so many rows of the signal.
func (r *recent) last(signal string, rows int64) (bins []metric.Bin, n int64) {
	for i := len(r.panes) - 1; i >= 0 && n < rows; i-- {
		p := &r.panes[i]
		b, m := p.cal, p.calN
		if signal == signalRaw {
			b, m = p.raw, p.rawN
		}
		bins = plusBins(bins, b)
		n += m
	}
	return bins, n
}

func plusBins(dst, b []metric.Bin) []metric.Bin {
	if dst == nil {
		dst = make([]metric.Bin, len(b))
	}
	for i := range b {
		dst[i].N += b[i].N
		dst[i].W += b[i].W
		dst[i].SumC += b[i].SumC
		dst[i].SumA += b[i].SumA
	}
	return dst
}

// detect judges the rules of a key at the end of a label pane.
func (t *ModelTask) detect(v *version, k *keyState, in *paneInput) {
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
			m := alertMessage(v, k, spec, &k.rules[i], state, j, in.end)
			k.rules[i].last = m.Value
			t.emit(k, m)
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
		*r = ruleState{state: pending, since: start, overFrom: end}
		if spec.For > 0 {
			return pending, true
		}
		r.state = firing
		return firing, true
	case r.state == pending && !over:
		*r = ruleState{lastChange: r.since}
		return resolved, true
	case r.state == pending && end-r.overFrom >= spec.For:
		r.state = firing
		return firing, true
	case r.state == firing && j.excess() < spec.Clear:
		if r.clearFrom == 0 {
			r.clearFrom = end
		}
		if end-r.clearFrom >= spec.ClearFor {
			since := r.since
			*r = ruleState{lastChange: since}
			return resolved, true
		}
	case r.state == firing:
		r.clearFrom = 0
	}
	return r.state, false
}

func alertMessage(v *version, k *keyState, spec *RuleSpec, r *ruleState, state string, j judgement, at int64) pipeline.Message {
	since := r.since
	if state == resolved {
		since = r.lastChange
	}
	a := output.Alert{Schema: 1, Model: v.model, Version: v.name, Slice: k.slice, Rule: spec.Name, Severity: spec.Severity, State: state,
		At: pipeline.Format(at), Value: j.excess(), Threshold: spec.Fire, ECE: j.ece, ECENull: j.iv.Null, ECELo: &j.iv.Lo, ECEHi: &j.iv.Hi,
		Rows: j.rows, Signal: spec.Signal, Window: fmt.Sprintf("last %d rows", spec.Rows)}
	if since != 0 {
		a.Since = pipeline.Format(since)
	}
	a.Message = fmt.Sprintf("%s ECE %.4f over the last %d labelled rows, %.4f more than a calibrated model would show (%.4f); fires above %.4f, resolves below %.4f",
		spec.Signal, j.ece, j.rows, j.excess(), j.iv.Null, spec.Fire, spec.Clear)
	value, err := json.Marshal(a)
	if err != nil {
		panic("operators: alert does not marshal: " + err.Error())
	}
	return pipeline.Message{Stream: pipeline.StreamAlerts, Key: []byte(v.model + "/" + v.name + "/" + k.slice + "/" + spec.Name), Value: value, Time: at}
}

// firingSince returns the earliest start among the firing rules of a key.
func (k *keyState) firingSince() (since int64, any bool) {
	for i := range k.rules {
		r := &k.rules[i]
		if r.state == firing && (!any || r.since < since) {
			since, any = r.since, true
		}
	}
	return since, any
}
