package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/operators/model/alert"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// endSwitchedOff publishes, once a checkpoint is read, the end of what it has firing and the configuration has no more,
// and forgets the slices of columns that it has no more. It is of the end of the last label pane that was processed, so
// that a process that restarts from the same checkpoint again says the same.
func (s taskState) endSwitchedOff() {
	t := s.t
	for _, name := range slices.Sorted(maps.Keys(t.models)) {
		m := t.models[name]
		for _, vn := range slices.Sorted(maps.Keys(m.versions)) {
			v := m.versions[vn]
			gone := 0
			for _, slice := range slices.Sorted(maps.Keys(v.keys)) {
				k := v.keys[slice]
				if !t.cfg.Slices.has(slice) {
					why := fmt.Sprintf("switched off: slices.columns has not the column of %s any more; whether the error is gone is not known", slice)
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

// end publishes that alerts are over though nothing says that the error is.
func (t *ModelTask) end(k *stage.Key, ended []stage.Ended, at int64) {
	if t.alert.End(k, ended, at) {
		t.dirty = true
	}
}
