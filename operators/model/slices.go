package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/operators/model/slice"
	"github.com/plumbline/plumbline/operators/slicing"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// SliceSpec is the configuration of a version's slices.
type SliceSpec struct{ slice.Config }

// countersOf returns how many pooled values of a column have a counter.
func countersOf(limit int) int { return 4 * limit }

// CountPooledRows counts predictions of values without statistics of their own, once for each slice column.
const CountPooledRows = "pooled_rows"

// CountEndedSlices counts slices whose statistics ended, by reason.
const (
	CountEndedSlices = "slices_ended"
	EndedPooled      = "pooled" // other values of the column have more rows; its sums join those of ~other
	// EndedColumn means that the column is no longer configured. The sums are dropped; the whole version still has the
	// rows.
	EndedColumn = "column"
)

// splitSlice splits the name of a slice. ok is false for the whole version and for ~other.
func splitSlice(name string) (column, value string, ok bool) {
	column, value, ok = strings.Cut(name, "=")
	return column, value, ok && value != slicing.Other
}

// inboxOf returns the inbox of a slice. If the slice has no statistics and may not get any, the inbox is in
// pendingSlices.
func (v *version) inboxOf(slice string, cfg *Config) *inbox {
	if k := v.keys[slice]; k != nil {
		return &k.inbox
	}
	if _, _, ok := splitSlice(slice); !ok || cfg.Slices.MaxKeys == 0 {
		return &v.key(slice, cfg).inbox
	}
	return inboxIn(v.pendingSlices, slice)
}

// heavyOf returns the counts of a column, and creates them if needed.
func (v *version) heavyOf(column string) *slice.Counts {
	h := v.heavy[column]
	if h == nil {
		h = slice.NewCounts()
		v.heavy[column] = h
	}
	return h
}

// route decides, before a label pane is processed, which slice values have statistics of their own. The cells of all
// other values join ~other of their column; while places are free there are none. The decision depends only on the
// panes of all shards so far, and values are taken in order, so it does not depend on how rows were split over shards.
func (t *stepper) route(pane int64) error {
	if t.cfg.Slices.MaxKeys == 0 {
		return nil
	}
	values, inboxes := map[string][]string{}, t.inboxes() // by column
	for name := range sorted(inboxes) {
		if column, value, ok := splitSlice(name); ok {
			values[column] = append(values[column], value)
		}
	}
	for column, of := range sorted(values) {
		if err := t.routeColumn(column, of, inboxes, pane); err != nil {
			return fmt.Errorf("slices of %s: %w", column, err)
		}
	}
	return nil
}

// inboxes returns the inboxes of all slices.
func (v *version) inboxes() map[string]*inbox {
	all := maps.Clone(v.pendingSlices)
	for name, k := range v.keys {
		all[name] = &k.inbox
	}
	return all
}

func (t *stepper) routeColumn(column string, values []string, inboxes map[string]*inbox, pane int64) error {
	h := t.heavyOf(column)
	here := slices.DeleteFunc(slices.Clone(values),
		func(x string) bool { return len(inboxes[column+"="+x].pending[pane]) == 0 })
	over := slice.LeastHashes(here, slicing.Slots(t.cfg.Slices.MaxKeys))
	rows := map[string]int64{}
	for _, x := range here {
		if n := inboxes[column+"="+x].predictions(pane); n > 0 && !over[x] {
			rows[x] = n
		}
	}
	// Rows of values that a shard had no slot for are already in ~other. With more shards they might not be.
	other := inboxes[column+"="+slicing.Other]
	if len(over) > 0 || other != nil && len(other.pending[pane]) > 0 {
		h.More = max(h.More, pipeline.PaneIndex(pane*t.cfg.Pane, int64(t.cfg.Slices.HalfLife))+1)
	}
	h.Observe(pipeline.PaneIndex(pane*t.cfg.Pane, int64(t.cfg.Slices.HalfLife)), rows, countersOf(t.cfg.Slices.MaxKeys))
	in, out := h.Settle(t.cfg.Slices.MaxKeys)
	for _, x := range out {
		if err := t.retire(column, x, (pane+1)*t.cfg.Pane); err != nil {
			return err
		}
	}
	slots := slices.DeleteFunc(slices.Clone(here), func(x string) bool { return over[x] })
	for _, x := range append(in, h.Admit(slots, t.cfg.Slices.MaxKeys)...) {
		t.admitKey(column + "=" + x)
	}
	for _, x := range here {
		if _, kept := h.Kept[x]; kept && !over[x] {
			continue
		}
		if err := t.pool(column, x, pane); err != nil {
			return err
		}
	}
	return nil
}

// admitKey gives a value statistics of its own. They start with its pending cells.
func (t *stepper) admitKey(name string) {
	k := t.key(name, &t.cfg)
	if b := t.pendingSlices[name]; b != nil {
		k.inbox = *b
		delete(t.pendingSlices, name)
	}
}

// pool moves a value's cells of a label pane to ~other.
func (t *stepper) pool(column, value string, pane int64) error {
	name := column + "=" + value
	b := t.inboxOf(name, &t.cfg)
	t.counts.Add(CountPooledRows, b.predictions(pane))
	if err := b.move(pane, &t.key(column+"="+slicing.Other, &t.cfg).inbox); err != nil {
		return err
	}
	if len(b.pending) == 0 {
		delete(t.pendingSlices, name)
	}
	return nil
}

// showPooled adds to a snapshot of ~other how many values are pooled in it.
func (v *version) showPooled(column string, s *record.Snapshot) {
	if h := v.heavy[column]; h != nil {
		s.PooledValues, s.PooledMore = int64(len(h.Pooled)), h.Full()
	}
}
