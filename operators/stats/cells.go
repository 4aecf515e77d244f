package stats

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/sumconfig"
	"github.com/plumbline/plumbline/pipeline"
)

// cell returns the set of a cell, making it if needed; late says that its label pane has been emitted.
func (s *Operator) cell(k cellKey, classes int) (set *acc.Set, late bool, err error) {
	if s.last.set != nil && s.last.key == k {
		return s.last.set, s.last.late, nil
	}
	late = k.labelPane < closedOf(s, s.keys.keys[k.key].model.Model)
	m := s.cells
	if late {
		m = s.late
	}
	set = m[k]
	if set == nil {
		if free := s.pool[classes]; len(free) > 0 {
			set = free[len(free)-1]
			s.pool[classes] = free[:len(free)-1]
			n := set.Memory()
			s.pooledBytes -= n
			s.room -= n
		} else {
			cfg := s.cfg.Acc
			cfg.K = classes
			if set, err = acc.New(cfg); err != nil {
				return nil, false, err
			}
		}
		m[k] = set
		s.room -= newCell(classes)
		if c := s.keys.columns[k.key]; c != nil && c.panes[k.labelPane] != nil {
			p := c.panes[k.labelPane]
			p.has[k.key] = append(p.has[k.key], k.predictionPane)
		}
	}
	set.CountClasses(s.countsClasses(k.key))
	s.last = cachedCell{k, set, late}
	return set, late, nil
}

// maxPooled bounds the emptied sets that are kept for reuse, by K, and maxPooledBytes their memory. An emptied set
// keeps its memory, so without the bounds the pool would stay as large as the largest burst.
const (
	maxPooled      = 256
	maxPooledBytes = 32 << 20
)

// Advance implements pipeline.Operator: it emits the cells of label panes that end at or before wm, and the late cells
// gathered since the last call.
func (s *Operator) Advance(_ context.Context, wm pipeline.Time, _ pipeline.Emit) error {
	closed := pipeline.PaneIndex(wm, s.cfg.Pane)
	if closed <= s.closed && s.clocks == nil {
		return nil
	}
	s.last = cachedCell{}
	if err := s.emit(s.late, readyLate); err != nil {
		return err
	}
	s.closed = max(s.closed, closed)
	if err := s.emit(s.cells, readyClosed); err != nil {
		return err
	}
	s.compact()
	return nil
}

// ready says which cells emit takes.
type ready int

const (
	readyClosed ready = iota // those of closed label panes
	readyLate                // all: they are late
	readyEarly               // all, though their label panes are open
)

// emit moves cells from m to the outbox, in canonical order.
func (s *Operator) emit(m map[cellKey]*acc.Set, which ready) error {
	var ready []cellKey
	for k := range m {
		if which != readyClosed || k.labelPane < closedOf(s, s.keys.keys[k.key].model.Model) {
			ready = append(ready, k)
		}
	}
	slices.SortFunc(ready, s.compare)
	var cells []pipeline.Cell
	var err error
	for len(ready) > 0 {
		n := 0
		first := s.keys.keys[ready[0].key]
		cells, s.buf = cells[:0], s.buf[:0] // the outbox encodes them at once
		for n < len(ready) && ready[n].labelPane == ready[0].labelPane &&
			s.keys.keys[ready[n].key].model.Model == first.model.Model {
			k := s.keys.keys[ready[n].key]
			set := m[ready[n]]
			at := len(s.buf)
			if s.buf, err = set.AppendBinary(s.buf); err != nil {
				return err
			}
			cells = append(cells, pipeline.Cell{
				Version:        k.model.Version,
				Slice:          s.keys.names[ready[n].key],
				K:              k.classes,
				PredictionPane: ready[n].predictionPane,
				Set:            s.buf[at:len(s.buf):len(s.buf)],
			})
			s.recycle(k.classes, set)
			delete(m, ready[n])
			n++
		}
		s.outbox.Increment(first.model.Model, ready[0].labelPane, which == readyLate, cells)
		ready = ready[n:]
	}
	if cap(s.buf) > maxPooledBytes { // of a burst
		s.buf = nil
	}
	return nil
}

func (s *Operator) recycle(classes int, set *acc.Set) {
	if set.Pieced() { // it would keep others' memory
		return
	}
	if n := set.Memory(); len(s.pool[classes]) < maxPooled && s.pooledBytes+n <= maxPooledBytes {
		set.Reset()
		s.pool[classes] = append(s.pool[classes], set)
		s.pooledBytes += n
	}
}

func (s *Operator) compare(a, b cellKey) int {
	ka, kb := &s.keys.keys[a.key], &s.keys.keys[b.key]
	return cmp.Or(cmp.Compare(a.labelPane, b.labelPane), ka.model.Compare(kb.model),
		strings.Compare(s.keys.names[a.key], s.keys.names[b.key]), cmp.Compare(a.predictionPane, b.predictionPane),
		cmp.Compare(ka.classes, kb.classes))
}

// State implements pipeline.Operator.
func (s *Operator) State() pipeline.State { return s }

// AppendState appends varint pane length, ns; varint first label pane not emitted; uvarint keys, each 3 string model,
// version, slice, uvarint K; open cells, then late cells: uvarint n, each uvarint key, varint label pane, varint
// prediction pane, block(Set), ascending by (label pane, model, version, slice, prediction pane); sumconfig.Append,
// which states of old lack.
func (s *Operator) AppendState(dst []byte) ([]byte, error) {
	return momentOf(s, func(set *acc.Set) *acc.Set { return set }).append(dst)
}

// maxFrozenBytes bounds the memory of copied sets in a process; frozenBytes is in use. Each shard copies its own sets,
// and there may be many shards.
const maxFrozenBytes = 64 << 20

var frozenBytes atomic.Int64

// Freeze implements pipeline.Freezer. Encoding takes twice as long as copying for full sets, several times as long for
// small ones, and no row passes meanwhile.
func (s *Operator) Freeze() func(dst []byte) ([]byte, error) {
	n := int64(0)
	for _, m := range []map[cellKey]*acc.Set{s.cells, s.late} {
		for _, set := range m {
			n += int64(set.Memory())
		}
	}
	if frozenBytes.Add(n) > maxFrozenBytes {
		frozenBytes.Add(-n)
		return nil
	}
	f := momentOf(s, (*acc.Set).Clone)
	return func(dst []byte) ([]byte, error) {
		defer frozenBytes.Add(-n)
		return f.append(dst)
	}
}

// moment is the operator's state at one moment.
type moment struct {
	head  []byte
	cells [2][]heldCell // open and late ones, in canonical order
	tail  []byte
}

type heldCell struct {
	cellKey
	set *acc.Set
}

// momentOf returns the present state, with what held returns for each set.
func momentOf(s *Operator, held func(*acc.Set) *acc.Set) *moment {
	out := &moment{head: s.keys.append(binenc.AppendVarint(binenc.AppendVarint(nil, s.cfg.Pane), s.closed)),
		tail: sumconfig.Append(nil, s.cfg.Acc)}
	for i, m := range []map[cellKey]*acc.Set{s.cells, s.late} {
		cells := make([]heldCell, 0, len(m))
		for k, set := range m {
			cells = append(cells, heldCell{k, held(set)})
		}
		slices.SortFunc(cells, func(a, b heldCell) int { return s.compare(a.cellKey, b.cellKey) })
		out.cells[i] = cells
	}
	return out
}

func (f *moment) append(dst []byte) ([]byte, error) {
	dst = append(dst, f.head...)
	for _, cells := range f.cells {
		dst = binenc.AppendUvarint(dst, uint64(len(cells)))
		for _, c := range cells {
			dst = binenc.AppendUvarint(dst, uint64(c.key))
			dst = binenc.AppendVarint(dst, c.labelPane)
			dst = binenc.AppendVarint(dst, c.predictionPane)
			var err error
			if dst, err = binenc.AppendBlock(dst, c.set.AppendBinary); err != nil {
				return dst, err
			}
		}
	}
	return append(dst, f.tail...), nil
}
