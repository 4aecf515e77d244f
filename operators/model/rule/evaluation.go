package rule

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Evaluation is the result of a rule for its latest rows.
type Evaluation struct {
	Rows        int64
	Value       float64
	Lo, Hi      *float64 // 95 % interval of Value, or nil
	Significant bool
	Detail      string // the measurement in words
	Unlabelled  bool   // computed from predictions

	Bins     []metric.Bin           // of the labelled rows; nil = there is no ECE
	Interval func() metric.Interval // of their ECE, for a change that is published
	// Bounded is the evaluation with Lo, Hi and Significant, which cost much; nil = they are there. It is called only
	// where they decide, or are shown.
	Bounded func() (Evaluation, error)
}

// bounded returns the evaluation with its bounds.
func (j Evaluation) bounded() (Evaluation, error) {
	if j.Bounded == nil {
		return j, nil
	}
	return j.Bounded()
}

// move updates the state of an alert at the end of a pane. A changed state has to be published.
func (s *Config) move(r *stage.AlertState, j Evaluation, start, end int64) (state string, changed bool) {
	over := s.beyond(j.Value, s.Fire) && j.Significant
	switch {
	case r.State == stage.Inactive && over:
		*r = stage.AlertState{State: stage.Pending, Since: start, OverFrom: end, Last: r.Last}
		if s.For > 0 {
			return stage.Pending, true
		}
		r.State = stage.Firing
		return stage.Firing, true
	case r.State == stage.Pending && !over:
		r.End()
		return stage.Resolved, true
	case r.State == stage.Pending && end-r.OverFrom >= int64(s.For):
		r.State = stage.Firing
		return stage.Firing, true
	case r.State == stage.Firing && s.beyond(s.Clear, j.Value):
		if r.ClearFrom == 0 {
			r.ClearFrom = end
		}
		if end-r.ClearFrom >= int64(s.ClearFor) {
			r.End()
			return stage.Resolved, true
		}
	case r.State == stage.Firing:
		r.ClearFrom = 0
	}
	return r.State, false
}

// describe returns the record of a change.
func (t *Stage) describe(e *entry, state string, j Evaluation, at int64) (*record.Alert, error) {
	s, k := e.cfg, e.key
	j, err := j.bounded()
	if err != nil {
		return nil, err
	}
	since := e.alert.Since
	if state == stage.Resolved {
		since = e.alert.LastChange
	}
	a := &record.Alert{
		Schema:    1,
		Model:     k.Version.Model,
		Version:   k.Version.Name,
		Slice:     k.Slice,
		Rule:      s.Name,
		Kind:      s.kindName(),
		Measure:   s.Measure,
		Severity:  s.Severity,
		State:     state,
		At:        record.At(at),
		Value:     j.Value,
		ValueLo:   j.Lo,
		ValueHi:   j.Hi,
		Threshold: s.Fire,
		Rows:      j.Rows,
		Signal:    s.Signal,
		Window:    fmt.Sprintf("last %d rows", s.Rows),
	}
	if j.Unlabelled {
		a.Signal = stage.SignalRaw
	}
	if j.Bins != nil {
		stage.SetFigures(a, j.Bins, j.Interval())
	}
	if s.Kind == Distance {
		a.Measure += " of " + s.Score
	}
	if since != 0 {
		a.Since = record.At(since)
	}
	a.Diagram = t.env.Diagram(k, a.At)
	if a.Kind == Excess {
		a.Message = fmt.Sprintf("%s; fires above %.4f, resolves below %.4f", j.Detail, s.Fire, s.Clear)
		return a, nil
	}
	fire, clear := s.sides()
	a.Message = fmt.Sprintf("%s; fires %s %.4g, resolves %s %.4g", j.Detail, fire, s.Fire, clear, s.Clear)
	return a, nil
}
