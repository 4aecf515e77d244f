package operators

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/output"
)

// switchedOff reads the state of an alarm that the configuration has no more. Where it fires its last alert would stay on the topic for
// ever: the change that ends it is noted, and published by endSwitchedOff. Bytes that are no alert are passed over: nobody was told.
func (k *keyState) switchedOff(body []byte) error {
	r := binenc.NewReader(body)
	_ = r.String(maxName) // the specification
	var s ruleState
	s.restore(&r)
	if err := r.Err(); err != nil {
		return err
	}
	var last output.Alert
	if s.state == ruleOK || json.Unmarshal(s.last, &last) != nil {
		return nil
	}
	a := &output.Alert{Schema: 1, Model: last.Model, Version: last.Version, Slice: k.slice, Rule: last.Rule, Kind: last.Kind, Measure: last.Measure, Severity: last.Severity,
		State: resolved, Since: last.Since, Threshold: last.Threshold, ECE: last.ECE, ECENull: last.ECENull, ECELo: last.ECELo, ECEHi: last.ECEHi, Rows: last.Rows,
		Signal: last.Signal, Window: last.Window, Diagram: last.Diagram, InhibitedBy: s.inhibitedBy,
		Message: fmt.Sprintf("switched off: the configuration has no alarm %s here any more; whether the error is gone is not known", last.Rule)}
	if s.told { // whoever was told that it fires is told that it is over
		a.InhibitedBy = ""
	}
	if k.changes == nil {
		k.changes = map[*ruleState]*output.Alert{}
	}
	k.changes[&s] = a
	return nil
}

// endSwitchedOff publishes, once a checkpoint is read, the end of what it has firing and the configuration has no more. It is of the end
// of the last label pane that was processed, so that a process that restarts from the same checkpoint again says the same.
func (t *ModelTask) endSwitchedOff() {
	for _, name := range slices.Sorted(maps.Keys(t.models)) {
		m := t.models[name]
		for _, vn := range slices.Sorted(maps.Keys(m.versions)) {
			for _, slice := range slices.Sorted(maps.Keys(m.versions[vn].keys)) {
				t.endOf(m.versions[vn], m.versions[vn].keys[slice], m.next*t.cfg.Pane)
			}
		}
	}
}

func (t *ModelTask) endOf(v *version, k *keyState, end int64) {
	byRule := map[string]*output.Alert{}
	for _, a := range k.changes {
		byRule[a.Rule] = a
	}
	k.changes = nil
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		a := byRule[rule]
		a.At = pipeline.Format(end)
		t.send(v, &standing{k: k, r: &ruleState{}, name: rule}, a, end)
		t.dirty = true
	}
}
