package stats

import (
	"slices"
	"sync/atomic"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
)

// stateCopy is the state at one moment. Sets of cells are in it as they are, frozen: until it is encoded, the operator
// changes clones of them in their place.
type stateCopy struct {
	closed  int64
	keys    []byte
	lists   [2][]copiedCell
	size    int // about that of the encoding, in bytes
	sets    map[*acc.Set]struct{}
	bytes   int // that of the encoding, once encoded
	encoded atomic.Bool
}

type copiedCell struct {
	cellKey
	set *acc.Set
}

// held reports whether a set is in a copy that is not encoded yet, so that it must not be changed.
func held(s *Operator, set *acc.Set) bool {
	c := s.copied
	if c == nil {
		return false
	}
	if c.encoded.Load() {
		s.stateBytes, s.copied = c.bytes, nil
		return false
	}
	_, ok := c.sets[set]
	return ok
}

// CopyState implements pipeline.Copier.
func (s *Operator) CopyState() func(dst []byte) ([]byte, error) {
	c := momentOf(s)
	c.sets = make(map[*acc.Set]struct{}, len(s.cells)+len(s.late))
	for _, cells := range c.lists {
		for i := range cells {
			acc.Freeze(cells[i].set)
			c.sets[cells[i].set] = struct{}{}
		}
	}
	s.copied, s.last = c, cachedCell{}
	return func(dst []byte) ([]byte, error) {
		defer c.encoded.Store(true)
		return c.append(dst)
	}
}

// AppendState appends varint first label pane not emitted; uvarint keys, each 3 string model, version, slice,
// uvarint K; open cells, then late cells: uvarint n, each uvarint key, varint label pane, varint prediction pane,
// block(Set), ascending by (label pane, model, version, slice, prediction pane).
func (s *Operator) AppendState(dst []byte) ([]byte, error) { return momentOf(s).append(dst) }

func momentOf(s *Operator) *stateCopy {
	c := &stateCopy{closed: s.closed, keys: s.keys.append(nil), size: s.stateBytes + s.stateBytes/8}
	for i, m := range []map[cellKey]*acc.Set{s.cells, s.late} {
		cells := make([]copiedCell, 0, len(m))
		for k, set := range m {
			cells = append(cells, copiedCell{k, set})
		}
		slices.SortFunc(cells, func(a, b copiedCell) int { return s.compare(a.cellKey, b.cellKey) })
		c.lists[i] = cells
	}
	return c
}

func (c *stateCopy) append(dst []byte) ([]byte, error) {
	dst = slices.Grow(dst, c.size)
	start := len(dst)
	dst = append(binenc.AppendVarint(dst, c.closed), c.keys...)
	for _, cells := range c.lists {
		dst = binenc.AppendUvarint(dst, uint64(len(cells)))
		for i := range cells {
			k := &cells[i]
			dst = binenc.AppendUvarint(dst, uint64(k.key))
			dst = binenc.AppendVarint(dst, k.labelPane)
			dst = binenc.AppendVarint(dst, k.predictionPane)
			var err error
			if dst, err = binenc.AppendBlock(dst, k.set.AppendBinary); err != nil {
				return dst, err
			}
		}
	}
	c.bytes = len(dst) - start
	return dst, nil
}
