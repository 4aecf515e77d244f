package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// inbox holds cells until their label pane is processed. Most are encoded: that is a tenth of the memory.
type inbox struct {
	pending map[int64]map[int64]*waiting // label pane → prediction pane
	late    map[int64]int64              // label pane → late rows in pending
	open    *openCells                   // nil: all are encoded
}

func newInbox(open *openCells) inbox {
	return inbox{map[int64]map[int64]*waiting{}, map[int64]int64{}, open}
}

// waiting is a cell: encoded, decoded or both.
type waiting struct {
	data        []byte
	set         *acc.Set
	predictions int64
	bytes       int // of set, as openCells counts them
}

// newWaiting is a cell whose encoding has been decoded as set. It shares the memory of both.
func newWaiting(data []byte, set *acc.Set) *waiting {
	seen, _ := set.SeenRows()
	return &waiting{data: data, set: set, predictions: seen}
}

func (c *waiting) decoded() (*acc.Set, error) {
	if c.set != nil {
		return c.set, nil
	}
	set := new(acc.Set)
	return set, set.UnmarshalBinary(c.data)
}

func (c *waiting) encoded() []byte {
	if c.data == nil {
		data, err := c.set.AppendBinary(nil)
		if err != nil {
			panic("a set that was decoded cannot be encoded: " + err.Error())
		}
		c.data = slices.Clone(data)
	}
	return c.data
}

// plus merges another cell into c.
func (c *waiting) plus(o *waiting) error {
	sum, err := c.decoded()
	if err != nil {
		return err
	}
	set, err := o.decoded()
	if err != nil {
		return err
	}
	if err := sum.Merge(set); err != nil {
		return err
	}
	c.data, c.set, c.predictions = nil, sum, c.predictions+o.predictions
	return nil
}

// openCells are the cells of a task that stay decoded, since the next shard's will be merged with them: the latest of
// whole model versions, of so many bytes. In which form a cell waits reaches no result.
type openCells struct {
	cells []*waiting // in the order in which they came
	bytes int
}

const (
	maxOpenBytes = 16 << 20
	maxOpenCells = 1 << 10
)

// keep lets a cell stay decoded, and encodes those that came first where they are too many.
func (o *openCells) keep(c *waiting) {
	if o == nil {
		c.encoded()
		c.set = nil
		return
	}
	if c.bytes == 0 {
		o.cells = append(o.cells, c)
	}
	o.count(c, c.set.Memory())
	for len(o.cells) > 0 {
		first := o.cells[0]
		if first.bytes > 0 && o.bytes <= maxOpenBytes && len(o.cells) <= maxOpenCells {
			return
		}
		if first.bytes > 0 {
			first.encoded()
			o.release(first)
		}
		o.cells = slices.Delete(o.cells, 0, 1)
	}
}

// release ends the stay of a cell's decoded form.
func (o *openCells) release(c *waiting) {
	if c.bytes > 0 {
		o.count(c, 0)
	}
	c.set = nil
}

func (o *openCells) count(c *waiting, bytes int) {
	o.bytes += bytes - c.bytes
	c.bytes = bytes
}

// put merges a cell with those that other shards sent for the same panes. It keeps no part of the encoding.
func (b *inbox) put(labelPane, predictionPane int64, c *waiting, late int64) error {
	cells := b.pending[labelPane]
	if cells == nil {
		cells = map[int64]*waiting{}
		b.pending[labelPane] = cells
	}
	if late != 0 {
		b.late[labelPane] += late
	}
	have := cells[predictionPane]
	if have == nil {
		c.data = slices.Clone(c.data)
		cells[predictionPane] = c
		have = c
	} else {
		if err := have.plus(c); err != nil {
			return err
		}
		b.open.release(c)
	}
	if have.set != nil { // as it is but where it has come encoded from another inbox
		b.open.keep(have)
	}
	return nil
}

// move moves a label pane's cells to another inbox.
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
		set, err := cells[p].decoded()
		if err != nil {
			return in, err
		}
		b.open.release(cells[p])
		in.Cells = append(in.Cells, stage.Cell{PredictionPane: p, Set: set})
		in.Labelled += set.LabelledRows()
		if rows := set.TakeSample(); in.Rows == nil {
			in.Rows = rows
		} else {
			in.Rows = append(in.Rows, rows...)
		}
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
			dst = binenc.AppendBytes(binenc.AppendVarint(dst, p), cells[p].encoded())
		}
	}
	return dst
}

// restorePending reads what appendPending wrote. It refuses cells of another shape.
func (b *inbox) restorePending(r *binenc.Reader, shape acc.Config) error {
	for range r.Count(3, binenc.MaxItems) {
		l, late := r.Varint(), r.Varint()
		cells := map[int64]*waiting{}
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
			cells[p].set = nil
		}
		b.pending[l] = cells
		if late != 0 {
			b.late[l] = late
		}
	}
	return r.Err()
}
