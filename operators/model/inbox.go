package model

import (
	"fmt"
	"slices"
	"sync"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/sumconfig"
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

// inboxIn returns the inbox of a slice, and creates it if needed.
func inboxIn(inboxes map[string]*inbox, slice string) *inbox {
	b := inboxes[slice]
	if b == nil {
		fresh := newInbox(nil)
		b = &fresh
		inboxes[slice] = b
	}
	return b
}

// waiting is a cell: encoded, decoded or both.
type waiting struct {
	data        []byte
	more        [][]byte // encoded cells that are to be merged with data
	set         *acc.Set
	predictions int64
	labelled    int64
	alone       bool // there may be no room for its sums, so it is merged with others at once
	bytes       int  // of set, as openCells counts them
}

// Encoded cells wait side by side and are merged once, when the pane is taken or copied to a checkpoint: most of slices
// up to smallCell bytes, those that stay decoded no more, as shards are far apart, up to closedCell. There is room for
// the sums of mostBeside (acc.Modest).
const (
	smallCell  = 4 << 10
	closedCell = 256 << 10
	mostBeside = 1000
)

// receive decodes a cell and returns the configuration of its statistics too. It shares the memory of data.
func receive(data []byte) (c *waiting, of acc.Config, err error) {
	c = &waiting{data: data}
	tell := func(set *acc.Set) error {
		c.predictions, _ = set.SeenRows()
		c.labelled, c.alone, of = set.LabelledRows(), !acc.Modest(set), set.Settings()
		return nil
	}
	if len(data) <= smallCell {
		return c, of, pass(data, tell)
	}
	set := new(acc.Set)
	if err := set.UnmarshalBinary(data); err != nil {
		return c, of, err
	}
	c.set = set
	return c, of, tell(set)
}

// rows is about how many rows a cell has: predictions, or labels that came after them.
func (c *waiting) rows() int64 { return max(c.predictions, c.labelled) }

// late is how many rows came late, if the cell did.
func (c *waiting) late(is bool) int64 {
	if is {
		return c.labelled
	}
	return 0
}

// passing are decoders of sets that are left behind at once.
var passing = sync.Pool{New: func() any { return acc.NewDecoder() }}

// pass decodes a set for the time of a call.
func pass(data []byte, use func(*acc.Set) error) error {
	d := passing.Get().(*acc.Decoder)
	defer passing.Put(d)
	d.Reset()
	set, err := d.DecodeSet(data)
	if err != nil {
		return err
	}
	return use(set)
}

func (c *waiting) decoded() (*acc.Set, error) {
	if c.set != nil {
		return c.set, nil
	}
	set := new(acc.Set)
	if err := set.UnmarshalBinary(c.data); err != nil {
		return nil, err
	}
	for _, data := range c.more {
		if err := pass(data, set.Merge); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// encoded returns the encoding of all that waits.
func (c *waiting) encoded() []byte {
	if c.data == nil || c.more != nil {
		set, err := c.decoded()
		var data []byte
		if err == nil {
			data, err = set.AppendBinary(nil)
		}
		if err != nil {
			panic("cells that were decoded and fit together cannot be encoded: " + err.Error())
		}
		c.data, c.more, c.alone = slices.Clone(data), nil, !acc.Modest(set)
	}
	return c.data
}

// plus merges another cell into c.
func (c *waiting) plus(o *waiting) error {
	if !c.beside(o) {
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
		c.data, c.more, c.set, c.alone = nil, nil, sum, !acc.Modest(sum)
	}
	c.predictions, c.labelled = c.predictions+o.predictions, c.labelled+o.labelled
	return nil
}

// beside lets another cell wait beside c, if both are small or c is encoded for good.
func (c *waiting) beside(o *waiting) bool {
	n := len(c.data) + len(o.data)
	for _, data := range c.more {
		n += len(data)
	}
	most := smallCell
	if len(c.data) > smallCell {
		most = closedCell
	}
	if c.set != nil || o.data == nil || o.more != nil || c.alone || o.alone || n > most || len(c.more)+2 > mostBeside {
		return false
	}
	c.more = append(c.more, slices.Clone(o.data))
	return true
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
	for p, cell := range sorted(b.pending[labelPane]) {
		if err := to.put(labelPane, p, cell, late); err != nil {
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

// firstFrom is the first label pane with cells, from one on and before until, or that.
func (b *inbox) firstFrom(from, until int64) int64 {
	for pane := range b.pending {
		if pane >= from {
			until = min(until, pane)
		}
	}
	return until
}

// take removes a label pane and returns it.
func (b *inbox) take(pane, length int64) (stage.Pane, error) {
	in := stage.Pane{Index: pane, End: (pane + 1) * length, Late: b.late[pane]}
	for p, cell := range sorted(b.pending[pane]) {
		set, err := cell.decoded()
		if err != nil {
			return in, err
		}
		b.open.release(cell)
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
	for l, cells := range sorted(b.pending) {
		dst = binenc.AppendVarint(binenc.AppendVarint(dst, l), b.late[l])
		dst = binenc.AppendUvarint(dst, uint64(len(cells)))
		for p, cell := range sorted(cells) {
			dst = binenc.AppendBytes(binenc.AppendVarint(dst, p), cell.encoded())
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
			p, data := r.Varint(), slices.Clone(r.Bytes(binenc.MaxBytes))
			if r.Err() != nil {
				break
			}
			c, of, err := receive(data)
			if err != nil {
				return fmt.Errorf("a waiting cell: %w", err)
			}
			if err := sumconfig.Check(of, shape); err != nil {
				return err
			}
			c.set = nil
			cells[p] = c
		}
		b.pending[l] = cells
		if late != 0 {
			b.late[l] = late
		}
	}
	return r.Err()
}
