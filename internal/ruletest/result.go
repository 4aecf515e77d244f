package ruletest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Result is how a case went.
type Result struct {
	File     string   `json:"file"`
	Name     string   `json:"name"`
	At       string   `json:"at"` // FILE:LINE
	OK       bool     `json:"ok"`
	Problems []string `json:"problems,omitempty"` // lines of a diff: "- " what was expected, "+ " what came
	Alerts   []Alert  `json:"alerts"`
}

// Alert is an alert as a case sees it.
type Alert struct {
	At          string  `json:"at"` // since the first row
	Rule        string  `json:"rule"`
	Slice       string  `json:"slice"`
	State       string  `json:"state"`
	InhibitedBy string  `json:"inhibited_by,omitempty"`
	Value       float64 `json:"value"`
	Message     string  `json:"message"`

	Direction string               `json:"direction,omitempty"` // of the evidence
	Bins      []record.EvidenceBin `json:"bins,omitempty"`

	at time.Duration
}

// alertOf is the alert of an output; false for other outputs.
func alertOf(m pipeline.Message) (record.Alert, bool) {
	a, ok := m.Record.(*record.Alert)
	if !ok {
		return record.Alert{}, false
	}
	return *a, true
}

// compare says how what came differs from what was expected; start is the event time that all times are counted from.
func (t *Test) compare(alerts []record.Alert, start time.Time) Result {
	r := Result{Name: t.Name, At: t.At, Alerts: []Alert{}}
	for i := range alerts {
		r.Alerts = append(r.Alerts, newAlert(&alerts[i], start))
	}
	expected := make([]bool, len(r.Alerts))
	for i := range t.Expect {
		r.check(&t.Expect[i], expected)
	}
	if t.Complete {
		for j := range r.Alerts {
			if a := &r.Alerts[j]; !expected[j] && a.State == "firing" && a.InhibitedBy == "" {
				r.Problems = append(r.Problems, "+ "+a.String()+", not expected")
			}
		}
	}
	r.OK = len(r.Problems) == 0
	return r
}

// newAlert is a record as a case sees it.
func newAlert(a *record.Alert, start time.Time) Alert {
	since := a.At.Std().Sub(start)
	out := Alert{
		At:          since.String(),
		Rule:        a.Rule,
		Slice:       a.Slice,
		State:       a.State,
		InhibitedBy: a.InhibitedBy,
		Value:       a.Value,
		Message:     a.Message,
		at:          since,
	}
	if a.Evidence != nil {
		out.Direction, out.Bins = a.Evidence.Direction, a.Evidence.Bins
	}
	return out
}

// check notes how the alerts differ from one expectation, and in expected those that it matches.
func (r *Result) check(e *Expectation, expected []bool) {
	found := false
	for j := range r.Alerts {
		if !e.matches(&r.Alerts[j]) {
			continue
		}
		found, expected[j] = true, true
		if e.Never {
			r.Problems = append(r.Problems, "- "+e.String(), "+ "+r.Alerts[j].String())
		}
	}
	if found || e.Never {
		return
	}
	r.Problems = append(r.Problems, "- "+e.String())
	near := 0
	for j := range r.Alerts {
		if a := &r.Alerts[j]; a.Rule == e.Rule && a.Slice == e.Slice {
			r.Problems = append(r.Problems, "+ "+a.String())
			near++
		}
	}
	if near == 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("+ nothing of rule %s, slice %q", e.Rule, e.Slice))
	}
}

func (e *Expectation) matches(a *Alert) bool {
	return a.Rule == e.Rule && a.Slice == e.Slice && e.matchesState(a) && a.at >= e.From &&
		(e.To == 0 || a.at <= e.To) && e.matchesEvidence(a)
}

func (e *Expectation) matchesState(a *Alert) bool {
	if e.State == "inhibited" {
		if a.State == "resolved" || a.InhibitedBy == "" {
			return false
		}
	} else if a.State != e.State {
		return false
	}
	if e.InhibitedBy != "" && a.InhibitedBy != e.InhibitedBy && !strings.HasSuffix(a.InhibitedBy, "/"+e.InhibitedBy) {
		return false
	}
	return e.Inhibited == nil || *e.Inhibited == (a.InhibitedBy != "")
}

// matchesEvidence reports whether every range of expected bins has one of the evidence, and with OnlyBins each of the
// evidence a range.
func (e *Expectation) matchesEvidence(a *Alert) bool {
	if e.Direction != "" && a.Direction != e.Direction {
		return false
	}
	used := make([]bool, len(a.Bins))
	for _, want := range e.Bins {
		found := false
		for j, b := range a.Bins {
			if want.has(b) {
				found, used[j] = true, true
			}
		}
		if !found {
			return false
		}
	}
	return !e.OnlyBins || !slices.Contains(used, false)
}

// has allows for edges that were rounded in writing.
func (w *expectedBins) has(b record.EvidenceBin) bool {
	const rounding = 5e-3
	return b.Lo >= w.Lo-rounding && b.Hi <= w.Hi+rounding && (w.Gap == "" || (w.Gap == "below") == (b.Gap < 0))
}

// String is the expectation as a line of a diff.
func (e *Expectation) String() string {
	to := "the end"
	if e.To != 0 {
		to = e.To.String()
	}
	s := fmt.Sprintf("%s %s, %v to %s", nameOf(e.Rule, e.Slice), e.State, e.From, to)
	if e.Inhibited != nil {
		s += fmt.Sprintf(", inhibited: %v", *e.Inhibited)
	}
	if e.InhibitedBy != "" {
		s += ", inhibited by " + e.InhibitedBy
	}
	if e.Direction != "" {
		s += ", " + e.Direction
	}
	for _, b := range e.Bins {
		s += fmt.Sprintf(", off in (%g, %g] %s", b.Lo, b.Hi, b.Gap)
	}
	if e.OnlyBins {
		s += ", nowhere else"
	}
	if e.Never {
		s = "never " + s
	}
	return fmt.Sprintf("%s (line %d)", s, e.line)
}

// String is the alert as a line of a diff.
func (a *Alert) String() string {
	s := fmt.Sprintf("%s %s, %s", nameOf(a.Rule, a.Slice), a.State, a.At)
	if a.InhibitedBy != "" {
		s += ", inhibited by " + a.InhibitedBy
	}
	if a.Direction != "" {
		s += ", " + a.Direction
	}
	for _, b := range a.Bins {
		s += fmt.Sprintf(", off in (%.3g, %.3g] by %+.3f", b.Lo, b.Hi, b.Gap)
	}
	return s
}

func nameOf(rule, slice string) string {
	if slice == "" {
		return rule
	}
	return rule + " of " + slice
}
