package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// ended is a rule or alarm of a checkpoint that the configuration has no more, or not like that. Where it fires its last alert would
// stay on the topic for ever: endSwitchedOff publishes that it is over.
type ended struct {
	state stage.AlertState
	why   string
}

// switchedOff reads the state of an alarm that the configuration has no more.
func (k *keyState) switchedOff(body []byte) error {
	r := binenc.NewReader(body)
	_ = r.String(binenc.MaxName) // the specification
	var s stage.AlertState
	s.Restore(&r)
	k.ended = append(k.ended, ended{s, fmt.Sprintf("switched off: the configuration has no alarm %s here any more; whether the error is gone is not known", ruleOf(&s))})
	return r.Err()
}

// endSwitchedOff publishes, once a checkpoint is read, the end of what it has firing and the configuration has no more, and forgets the
// slices of columns that it has no more. It is of the end of the last label pane that was processed, so that a process that restarts from
// the same checkpoint again says the same.
func (t *ModelTask) endSwitchedOff() {
	for _, name := range slices.Sorted(maps.Keys(t.models)) {
		m := t.models[name]
		for _, vn := range slices.Sorted(maps.Keys(m.versions)) {
			v := m.versions[vn]
			gone := 0
			for _, slice := range slices.Sorted(maps.Keys(v.keys)) {
				k := v.keys[slice]
				if !t.cfg.Slices.has(slice) {
					k.endAll(fmt.Sprintf("switched off: slices.columns has not the column of %s any more; whether the error is gone is not known", slice))
					delete(v.keys, slice)
					gone++
				}
				slices.SortStableFunc(k.ended, func(a, b ended) int { return strings.Compare(ruleOf(&a.state), ruleOf(&b.state)) })
				for i := range k.ended {
					t.end(v, k, &k.ended[i].state, k.ended[i].why, m.next*t.cfg.Pane)
				}
				k.ended = nil
			}
			if gone > 0 {
				t.counts.AddReason(CountEndedSlices, EndedColumn, int64(gone))
				t.log.Warn("slice columns: slices.columns has changed since the checkpoint: slices of columns that it has not any more end, those of new ones begin without rows; the whole goes on",
					"model", v.Model, "version", v.Name, "ended", gone, "slices.columns", t.cfg.Slices.Columns)
			}
		}
	}
}

// has reports whether the configuration has a slice's column.
func (s *SliceSpec) has(slice string) bool {
	column, _, named := strings.Cut(slice, "=")
	return s.Columns == nil || !named || slices.Contains(s.Columns, column)
}

func (k *keyState) endAll(why string) {
	for i := range k.rules {
		k.ended = append(k.ended, ended{k.rules[i], why})
	}
	for _, a := range k.alarms {
		k.ended = append(k.ended, ended{a.alert, why})
	}
}

// ruleOf is the name of a rule by its latest alert.
func ruleOf(s *stage.AlertState) string {
	var last record.Alert
	if json.Unmarshal(s.Last, &last) != nil {
		return ""
	}
	return last.Rule
}

// end publishes that a pending or firing alert is over though nothing says that the error is. Bytes that are no alert are passed over:
// nobody was told.
func (t *ModelTask) end(v *version, k *keyState, s *stage.AlertState, why string, at int64) {
	var last record.Alert
	if s.State == stage.Inactive || json.Unmarshal(s.Last, &last) != nil {
		return
	}
	a := &record.Alert{Schema: 1, Model: v.Model, Version: v.Name, Slice: k.Slice, Rule: last.Rule, Kind: last.Kind, Measure: last.Measure, Severity: last.Severity,
		State: stage.Resolved, Since: last.Since, At: pipeline.Format(at), Threshold: last.Threshold, ECE: last.ECE, ECENull: last.ECENull, ECELo: last.ECELo, ECEHi: last.ECEHi, Rows: last.Rows,
		Signal: last.Signal, Window: last.Window, Diagram: last.Diagram, InhibitedBy: s.InhibitedBy, Message: why}
	if s.Notified { // whoever was told that it fires is told that it is over
		a.InhibitedBy = ""
	}
	t.send(v, &standing{k: k, r: &stage.AlertState{}, name: last.Rule}, a, at)
	t.dirty = true
}
