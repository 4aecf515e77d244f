package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/operators/model/alert"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// endSwitchedOff runs after a checkpoint was read. It resolves the alerts of rules and alarms that are no longer
// configured, and drops the slices of columns that are no longer configured. It uses the end of the last processed
// label pane as the time, so that a second restart from the same checkpoint publishes the same.
func (s taskState) endSwitchedOff() {
	t := s.t
	for m, v := range versionsOf(t) {
		gone := 0
		for slice, k := range sorted(v.keys) {
			if !t.cfg.Slices.has(slice) {
				why := fmt.Sprintf("switched off: slices.columns has not the column of %s any more; %s", slice,
					errorUnknown)
				k.Ended = append(k.Ended, k.EndAlerts(why)...)
				delete(v.keys, slice)
				gone++
			}
			alert.SortByRule(k.Ended)
			t.end(&k.Key, k.Ended, m.next*t.cfg.Pane)
			k.Ended = nil
		}
		if gone > 0 {
			t.counts.AddReason(CountEndedSlices, EndedColumn, int64(gone))
			t.log.Warn("slice columns: slices.columns has changed since the checkpoint: slices of removed columns "+
				"end, those of new columns begin without rows",
				"model", v.Model, "version", v.Name, "ended", gone, "slices.columns", t.cfg.Slices.Columns)
		}
	}
}

// has reports whether the column of a slice is configured.
func (s *SliceSpec) has(slice string) bool {
	column, _, named := strings.Cut(slice, "=")
	return s.Columns == nil || !named || slices.Contains(s.Columns, column)
}

// end resolves alerts whose rule, alarm or key is gone, although nothing shows that the error is.
func (t *Task) end(k *stage.Key, ended []stage.Ended, at int64) {
	if t.alert.End(k, ended, at) {
		t.dirty = true
	}
}
