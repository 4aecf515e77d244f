package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/operators/model/slice"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/slicing"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// OtherSlice is the slice that builds before pooling by column put all of them into.
const OtherSlice = "~other"

// SliceSpec bounds the slices of a model version.
type SliceSpec struct{ slice.Config }

// countersOf is how many pooled values of a column are counted.
func countersOf(limit int) int { return 4 * limit }

// CountPooledRows counts predictions of values without statistics of their own, once for each slice column.
const CountPooledRows = "pooled_rows"

// CountEndedSlices counts slices whose statistics have ended, by reason.
const (
	CountEndedSlices = "slices_ended"
	EndedPooled      = "pooled" // another value of the column has more rows: their sums join those of ~other
	// the configuration has their column no more: their sums are dropped, the whole has the rows
	EndedColumn = "column"
)

// inbox are cells that wait for their label pane to be processed.
type inbox struct {
	pending map[int64]map[int64]*acc.Set // label pane → prediction pane
	late    map[int64]int64              // label pane → late rows in pending
}

func newInbox() inbox { return inbox{map[int64]map[int64]*acc.Set{}, map[int64]int64{}} }

// put merges a cell with what other shards sent for the same one.
func (b *inbox) put(labelPane, predictionPane int64, set *acc.Set, late int64) error {
	cells := b.pending[labelPane]
	if cells == nil {
		cells = map[int64]*acc.Set{}
		b.pending[labelPane] = cells
	}
	if late != 0 {
		b.late[labelPane] += late
	}
	if have := cells[predictionPane]; have != nil {
		return have.Merge(set)
	}
	cells[predictionPane] = set
	return nil
}

// move gives a label pane's cells to another inbox.
func (b *inbox) move(labelPane int64, to *inbox) error {
	late := b.late[labelPane]
	for _, p := range slices.Sorted(maps.Keys(b.pending[labelPane])) {
		if err := to.put(labelPane, p, b.pending[labelPane][p], late); err != nil {
			return err
		}
		late = 0
	}
	delete(b.pending, labelPane)
	delete(b.late, labelPane)
	return nil
}

// predictions is how many predictions of a label pane wait.
func (b *inbox) predictions(labelPane int64) (n int64) {
	for _, set := range b.pending[labelPane] {
		seen, _ := set.SeenRows()
		n += seen
	}
	return n
}

// splitSlice takes the name of a slice apart; ok is false for the whole and for ~other of any kind.
func splitSlice(name string) (column, value string, ok bool) {
	column, value, ok = strings.Cut(name, "=")
	return column, value, ok && value != slicing.Other
}

// inbox is where a slice's cells wait: with its statistics, or where it has none and may not get any, beside them.
func (v *version) inbox(slice string, cfg *ModelConfig) *inbox {
	if k := v.keys[slice]; k != nil {
		return &k.inbox
	}
	if _, _, ok := splitSlice(slice); !ok || cfg.Slices.MaxKeys == 0 {
		return &v.key(slice, cfg).inbox
	}
	b := v.pendingSlices[slice]
	if b == nil {
		fresh := newInbox()
		b = &fresh
		v.pendingSlices[slice] = b
	}
	return b
}

// heavyOf returns the counts of a column.
func (v *version) heavyOf(column string) *slice.Counts {
	h := v.heavy[column]
	if h == nil {
		h = slice.NewCounts()
		v.heavy[column] = h
	}
	return h
}

// route decides, before a label pane is processed, which values have statistics of their own, and puts the cells of the
// others into their column's ~other. It is a function of the panes up to this one, of all shards together and in the
// order of names, so no trace is left of how the rows were split.
func (s *stepper) route(pane int64) error {
	if s.cfg.Slices.MaxKeys == 0 {
		return nil
	}
	values, boxes := map[string][]string{}, s.boxes() // by column
	for _, name := range slices.Sorted(maps.Keys(boxes)) {
		if column, value, ok := splitSlice(name); ok {
			values[column] = append(values[column], value)
		}
	}
	for _, column := range slices.Sorted(maps.Keys(values)) {
		if err := s.routeColumn(column, values[column], boxes, pane); err != nil {
			return fmt.Errorf("slices of %s: %w", column, err)
		}
	}
	return nil
}

// boxes are the inboxes of all slicev.
func (v *version) boxes() map[string]*inbox {
	all := maps.Clone(v.pendingSlices)
	for name, k := range v.keys {
		all[name] = &k.inbox
	}
	return all
}

func (s *stepper) routeColumn(column string, values []string, boxes map[string]*inbox, pane int64) error {
	h := s.heavyOf(column)
	here := slices.DeleteFunc(slices.Clone(values),
		func(x string) bool { return len(boxes[column+"="+x].pending[pane]) == 0 })
	over := slice.LeastHashes(here, slicing.Slots(s.cfg.Slices.MaxKeys))
	rows := map[string]int64{}
	for _, x := range here {
		if n := boxes[column+"="+x].predictions(pane); n > 0 && !over[x] {
			rows[x] = n
		}
	}
	// Where shards had no slot for a value its rows are in ~other already: with fewer shards that is so where with more
	// it is not.
	other := boxes[column+"="+slicing.Other]
	if len(over) > 0 || other != nil && len(other.pending[pane]) > 0 {
		h.More = max(h.More, pipeline.PaneIndex(pane*s.cfg.Pane, int64(s.cfg.Slices.HalfLife))+1)
	}
	h.Observe(pipeline.PaneIndex(pane*s.cfg.Pane, int64(s.cfg.Slices.HalfLife)), rows, countersOf(s.cfg.Slices.MaxKeys))
	in, out := h.Settle(s.cfg.Slices.MaxKeys)
	for _, x := range out {
		if err := s.retire(column, x, (pane+1)*s.cfg.Pane); err != nil {
			return err
		}
	}
	for _, x := range in {
		s.admitKey(column + "=" + x)
	}
	for _, x := range here {
		if _, kept := h.Kept[x]; kept && !over[x] {
			continue
		}
		if err := s.pool(column, x, pane); err != nil {
			return err
		}
	}
	return nil
}

// admitKey gives a value statistics of its own, from its waiting cells on.
func (s *stepper) admitKey(name string) {
	k := s.key(name, &s.cfg)
	if b := s.pendingSlices[name]; b != nil {
		k.inbox = *b
		delete(s.pendingSlices, name)
	}
}

// pool puts a value's cells of a label pane into ~other.
func (s *stepper) pool(column, value string, pane int64) error {
	name := column + "=" + value
	b := s.inbox(name, &s.cfg)
	s.counts.Add(CountPooledRows, b.predictions(pane))
	if err := b.move(pane, &s.key(column+"="+slicing.Other, &s.cfg).inbox); err != nil {
		return err
	}
	if len(b.pending) == 0 {
		delete(s.pendingSlices, name)
	}
	return nil
}

// showPooled adds what is pooled in ~other of a column to a snapshot.
func (v *version) showPooled(column string, s *record.Snapshot) {
	if h := v.heavy[column]; h != nil {
		s.PooledValues, s.PooledMore = int64(len(h.Pooled)), h.Full()
	}
}
