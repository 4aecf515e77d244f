package stats

import (
	"slices"
	"sync"

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
func (s *Operator) AppendState(dst []byte) ([]byte, error) { return s.Freeze()(dst) }

// Freeze implements pipeline.Freezer. Nothing is copied: sets are lent.
func (s *Operator) Freeze() func(dst []byte) ([]byte, error) {
	f := &frozen{head: s.keys.append(binenc.AppendVarint(binenc.AppendVarint(nil, s.cfg.Pane), s.closed)),
		tail: sumconfig.Append(nil, s.acc)}
	lent := s.lent
	s.last, s.lent = cachedCell{}, make(map[*acc.Set]*loan, len(s.cells)+len(s.late))
	for i, m := range []map[cellKey]*acc.Set{s.cells, s.late} {
		cells := make([]lentCell, 0, len(m))
		for k, set := range m {
			lent.back(set)
			l := &loan{set: set}
			s.lent[set] = l
			cells = append(cells, lentCell{k, l})
		}
		slices.SortFunc(cells, func(a, b lentCell) int { return s.compare(a.cellKey, b.cellKey) })
		f.cells[i] = cells
	}
	return f.append
}

// loans are the sets that a frozen state is still to be encoded from. Encoding changes a set, and the state is of its
// moment: who wants one, to change or to read it, takes it back.
type loans map[*acc.Set]*loan

// loan is a set that a frozen state encodes, or has encoded.
type loan struct {
	mu   sync.Mutex
	set  *acc.Set // nil: encoded
	body []byte   // of a set that was taken back
	err  error
}

// back takes a set back. If the frozen state has not come to it, it is encoded now: the row that wants it waits for
// one set, which is about a millisecond, instead of a copy of all.
func (l loans) back(set *acc.Set) {
	of := l[set]
	if of == nil {
		return
	}
	delete(l, set)
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.set != nil {
		of.body, of.err = of.set.AppendBinary(nil)
		of.set = nil
	}
}

// append appends the set as it was when it was lent.
func (l *loan) append(dst []byte) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set == nil {
		dst, l.body = append(dst, l.body...), nil
		return dst, l.err
	}
	dst, err := l.set.AppendBinary(dst)
	l.set = nil
	return dst, err
}

// frozen is the operator's state at one moment.
type frozen struct {
	head  []byte
	cells [2][]lentCell // open and late ones, in canonical order
	tail  []byte
}

type lentCell struct {
	cellKey
	*loan
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
			if dst, err = binenc.AppendBlock(dst, c.loan.append); err != nil {
				return dst, err
			}
		}
	}
	return append(dst, f.tail...), nil
}
