package stats

import (
	"slices"
	"sync/atomic"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/sumconfig"
	"github.com/plumbline/plumbline/pipeline"
)

// State implements pipeline.Operator.
func (s *Operator) State() pipeline.State { return s }

// AppendState appends varint pane length, ns; varint first label pane not emitted; uvarint keys, each 3 string model,
// version, slice, uvarint K; open cells, then late cells: uvarint n, each uvarint key, varint label pane, varint
// prediction pane, block(Set), ascending by (label pane, model, version, slice, prediction pane); sumconfig.Append,
// which states of old lack.
func (s *Operator) AppendState(dst []byte) ([]byte, error) {
	return s.moment(s.cfg.Pane, func(set *acc.Set) *acc.Set { return set }).append(dst)
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
	f := s.moment(s.cfg.Pane, (*acc.Set).Clone)
	return func(dst []byte) ([]byte, error) {
		defer frozenBytes.Add(-n)
		return f.append(dst)
	}
}

// frozen is the operator's state at one moment.
type frozen struct {
	head  []byte
	cells [2][]heldCell // open and late ones, in canonical order
	tail  []byte
}

type heldCell struct {
	cellKey
	set *acc.Set
}

// moment returns the present state, with what held returns for each set.
func (s *cellTable) moment(pane int64, held func(*acc.Set) *acc.Set) *frozen {
	out := &frozen{head: s.keys.append(binenc.AppendVarint(binenc.AppendVarint(nil, pane), s.closed)),
		tail: sumconfig.Append(nil, s.acc)}
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

func (f *frozen) append(dst []byte) ([]byte, error) {
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
