package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/operators/model/alert"
)

// endSwitchedOff runs after a checkpoint was read. It resolves the alerts of rules and alarms that are no longer
// configured, and drops the slices of columns that are no longer configured. It uses the end of the last processed
// label pane as the time, so that a second restart from the same checkpoint publishes the same.
func (f *fleet) endSwitchedOff() {
	for m, v := range f.versions() {
		gone := 0
		for slice, k := range sorted(v.keys) {
			if !f.cfg.Slices.has(slice) {
				why := fmt.Sprintf("switched off: slices.columns has not the column of %s any more; %s", slice,
					errorUnknown)
				k.Ended = append(k.Ended, k.EndAlerts(why)...)
				delete(v.keys, slice)
				gone++
			}
			alert.SortByRule(k.Ended)
			f.alert.End(&k.Key, k.Ended, m.next*f.cfg.Pane)
			k.Ended = nil
		}
		if gone > 0 {
			f.counts.AddReason(CountEndedSlices, EndedColumn, int64(gone))
			f.log.Warn("slice columns: slices.columns has changed since the checkpoint: slices of removed columns "+
				"end, those of new columns begin without rows",
				"model", v.Model, "version", v.Name, "ended", gone, "slices.columns", f.cfg.Slices.Columns)
		}
	}
}

// has reports whether the column of a slice is configured.
func (s *SliceSpec) has(slice string) bool {
	column, _, named := strings.Cut(slice, "=")
	return s.Columns == nil || !named || slices.Contains(s.Columns, column)
}
