package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// inbox holds cells until their label pane is processed, encoded: that is a tenth of the memory.
type inbox struct {
	pending map[int64]map[int64]waiting // label pane → prediction pane
	late    map[int64]int64             // label pane → late rows in pending
}

// waiting is an encoded acc.Set and the number of its predictions.
type waiting struct {
	set         []byte
	predictions int64
}

func newInbox() inbox { return inbox{map[int64]map[int64]waiting{}, map[int64]int64{}} }

// put merges a cell with those that other shards sent for the same panes. set is the cell decoded, nil where the caller
// has not decoded it.
func (b *inbox) put(labelPane, predictionPane int64, c waiting, set *acc.Set, late int64) error {
	cells := b.pending[labelPane]
	if cells == nil {
		cells = map[int64]waiting{}
		b.pending[labelPane] = cells
	}
	if late != 0 {
		b.late[labelPane] += late
	}
	if have, ok := cells[predictionPane]; ok {
		var err error
		if c, err = have.plus(c, set); err != nil {
			return err
		}
	}
	cells[predictionPane] = c
	return nil
}

// plus returns the merged cells; set is o decoded, or nil.
func (c waiting) plus(o waiting, set *acc.Set) (waiting, error) {
	var sum acc.Set
	if err := sum.UnmarshalBinary(c.set); err != nil {
		return c, err
	}
	if set == nil {
		set = new(acc.Set)
		if err := set.UnmarshalBinary(o.set); err != nil {
			return c, err
		}
	}
	if err := sum.Merge(set); err != nil {
		return c, err
	}
	data, err := sum.AppendBinary(make([]byte, 0, len(c.set)+len(o.set)))
	return waiting{slices.Clone(data), c.predictions + o.predictions}, err
}

// move moves a label pane's cells to another inbox.
func (b *inbox) move(labelPane int64, to *inbox) error {
	late := b.late[labelPane]
	for _, p := range slices.Sorted(maps.Keys(b.pending[labelPane])) {
		if err := to.put(labelPane, p, b.pending[labelPane][p], nil, late); err != nil {
			return err
		}
		late = 0
	}
	delete(b.pending, labelPane)
	delete(b.late, labelPane)
	return nil
}

// predictions returns how many predictions of a label pane are pending.
func (b *inbox) predictions(labelPane int64) (n int64) {
	for _, c := range b.pending[labelPane] {
		n += c.predictions
	}
	return n
}

// take removes a label pane and returns it.
func (b *inbox) take(pane, length int64) (stage.Pane, error) {
	in := stage.Pane{Index: pane, End: (pane + 1) * length, Late: b.late[pane]}
	cells := b.pending[pane]
	for _, p := range slices.Sorted(maps.Keys(cells)) {
		set := new(acc.Set)
		if err := set.UnmarshalBinary(cells[p].set); err != nil {
			return in, err
		}
		in.Cells = append(in.Cells, stage.Cell{PredictionPane: p, Set: set})
		in.Labelled += set.LabelledRows()
		in.Rows = append(in.Rows, set.TakeSample()...)
	}
	slices.SortFunc(in.Rows, stage.CompareRows)
	delete(b.pending, pane)
	delete(b.late, pane)
	return in, nil
}

func (b *inbox) appendPending(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(b.pending)))
	for _, l := range slices.Sorted(maps.Keys(b.pending)) {
		cells := b.pending[l]
		dst = binenc.AppendVarint(binenc.AppendVarint(dst, l), b.late[l])
		dst = binenc.AppendUvarint(dst, uint64(len(cells)))
		for _, p := range slices.Sorted(maps.Keys(cells)) {
			dst = binenc.AppendBytes(binenc.AppendVarint(dst, p), cells[p].set)
		}
	}
	return dst
}

// restorePending reads what appendPending wrote. It refuses cells of another shape.
func (b *inbox) restorePending(r *binenc.Reader, shape acc.Config) error {
	for range r.Count(3, binenc.MaxItems) {
		l, late := r.Varint(), r.Varint()
		cells := map[int64]waiting{}
		for range r.Count(2, binenc.MaxItems) {
			p, set := r.Varint(), new(acc.Set)
			data := slices.Clone(r.Bytes(binenc.MaxBytes))
			if r.Err() != nil {
				break
			}
			if err := set.UnmarshalBinary(data); err != nil {
				return fmt.Errorf("a waiting cell: %w", err)
			}
			if err := stage.CheckShape(set, shape); err != nil {
				return err
			}
			cells[p] = newWaiting(data, set)
		}
		b.pending[l] = cells
		if late != 0 {
			b.late[l] = late
		}
	}
	return r.Err()
}

// newWaiting is a cell whose encoding has been decoded as set.
func newWaiting(data []byte, set *acc.Set) waiting {
	seen, _ := set.SeenRows()
	return waiting{data, seen}
}
