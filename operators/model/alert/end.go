package alert

import (
	"slices"
	"strings"

	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// End resolves pending and firing alerts whose rule or alarm is gone, although nothing shows that the error is. Without
// this record their last alert would stay on the topic. It reports whether it published anything.
func (s *Stage) End(k *stage.Key, ended []stage.Ended, at int64) (published bool) {
	for i := range ended {
		published = s.end(k, &ended[i], at) || published
	}
	return published
}

// SortByRule sorts by the name of the rule, so that the order of publishing does not depend on how alerts were stored.
func SortByRule(ended []stage.Ended) {
	slices.SortStableFunc(ended, func(a, b stage.Ended) int { return strings.Compare(a.State.Rule(), b.State.Rule()) })
}

func (s *Stage) end(k *stage.Key, e *stage.Ended, at int64) bool {
	last := e.State.Last.Record
	if e.State.State == stage.Inactive || last == nil {
		return false // nothing was published that would have to be resolved
	}
	a := &record.Alert{Schema: 1, Model: k.Version.Model, Version: k.Version.Name, Slice: k.Slice, Rule: last.Rule,
		Kind: last.Kind, Measure: last.Measure, Severity: last.Severity, State: stage.Resolved, Since: last.Since,
		At: record.At(at), Threshold: last.Threshold, ECE: last.ECE, ECENull: last.ECENull, ECELo: last.ECELo,
		ECEHi: last.ECEHi, MeanConfidence: last.MeanConfidence, Accuracy: last.Accuracy, Rows: last.Rows,
		Signal: last.Signal, Window: last.Window, Diagram: last.Diagram, InhibitedBy: e.State.InhibitedBy,
		Message: e.Why}
	if e.State.Notified {
		a.InhibitedBy = ""
	}
	s.send(k, &stage.Alert{Rule: last.Rule}, a, at)
	return true
}
