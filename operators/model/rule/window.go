package rule

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
)

// window is the rule window of one key: the latest rows in blocks of whole label panes, and the reference if the rule
// has one. Each row is either in the window or in the reference.
type window struct {
	ref    block // for a pinned reference
	blocks []block
}

// block holds the sums of a number of rows. The kind of the rule defines the sums.
type block struct {
	rows    int64
	sums    []float64
	classes *acc.ClassWise // measure cwece only. Invariant: there if rows > 0.
}

// blocksOf is the smallest number of blocks in a full window. The window moves on by one block at a time.
const blocksOf = 16

func (b *block) add(rows int64, sums []float64) {
	if b.sums == nil {
		b.sums = make([]float64, len(sums))
	}
	b.rows += rows
	for i, x := range sums {
		b.sums[i] += x
	}
}

// add adds the sums of a label pane.
func (l *window) add(s *Config, rows int64, sums []float64) {
	if rows == 0 {
		return
	}
	if s.reference() == Pinned && l.ref.rows < s.ReferenceRows {
		l.ref.add(rows, sums)
		return
	}
	if n := len(l.blocks); n == 0 || l.blocks[n-1].rows >= (s.Rows+blocksOf-1)/blocksOf {
		l.blocks = append(l.blocks, block{})
	}
	l.blocks[len(l.blocks)-1].add(rows, sums)
	keep := s.Rows
	if s.reference() == Rolling {
		// The window can be larger than Rows by up to one block. The reference must be complete even then.
		keep += s.ReferenceRows + (s.Rows+blocksOf-1)/blocksOf
	}
	var have int64
	for _, b := range l.blocks {
		have += b.rows
	}
	for len(l.blocks) > 1 && have-l.blocks[0].rows >= keep {
		have -= l.blocks[0].rows
		l.blocks = l.blocks[1:]
	}
}

// windows returns the latest blocks with at least Rows rows, or all blocks if there are fewer rows, and the reference.
// ok reports whether the reference is complete.
func (l *window) windows(s *Config) (ref, cur block, ok bool) {
	i := len(l.blocks) - 1
	for ; i >= 0 && cur.rows < s.Rows; i-- {
		cur.add(l.blocks[i].rows, l.blocks[i].sums)
	}
	if s.reference() != Rolling {
		return l.ref, cur, s.reference() == "" || l.ref.rows >= s.ReferenceRows
	}
	for ; i >= 0 && ref.rows < s.ReferenceRows; i-- {
		ref.add(l.blocks[i].rows, l.blocks[i].sums)
	}
	return ref, cur, ref.rows >= s.ReferenceRows
}

// addClasses adds the classes of the pane that add has just added to the newest block.
func (l *window) addClasses(pane *acc.ClassWise) error {
	b := &l.blocks[len(l.blocks)-1]
	if b.classes == nil {
		b.classes = pane
		return nil
	}
	return b.classes.Merge(pane)
}

// latestClasses returns those of the rows that windows returns, nil if there are none.
func (l *window) latestClasses(s *Config) (*acc.ClassWise, error) {
	var out *acc.ClassWise
	var rows int64
	for i := len(l.blocks) - 1; i >= 0 && rows < s.Rows; i-- {
		b := &l.blocks[i]
		rows += b.rows
		if out == nil {
			out = b.classes.Clone()
		} else if err := out.Merge(b.classes); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *window) append(dst []byte) []byte {
	dst = l.ref.append(binenc.AppendUvarint(dst, uint64(len(l.blocks))))
	for i := range l.blocks {
		dst = l.blocks[i].append(dst)
	}
	return dst
}

func (b *block) append(dst []byte) []byte {
	dst = binenc.AppendUvarint(binenc.AppendUvarint(dst, uint64(b.rows)), uint64(len(b.sums)))
	return binenc.AppendFloat64s(dst, b.sums...)
}

// restore reads what append wrote. Each block has sums of size numbers.
func (l *window) restore(r *binenc.Reader, size int) {
	n := r.Count(2, binenc.MaxItems)
	l.ref.restore(r, size)
	for range n {
		var b block
		if b.restore(r, size); r.Err() != nil {
			return
		}
		l.blocks = append(l.blocks, b)
	}
}

func (b *block) restore(r *binenc.Reader, size int) {
	b.rows = r.Int("rows", 0, 1<<53)
	if k := r.Count(8, size); k == size {
		b.sums = make([]float64, size)
		for j := range b.sums {
			b.sums[j] = r.Float64()
		}
	} else if k != 0 || b.rows != 0 {
		r.Failf("sums of %d numbers, allowed %d", k, size)
	}
}

// appendClasses appends the classes of blocks, after these.
func appendClasses(dst []byte, blocks []block) []byte {
	for _, b := range blocks {
		enc, err := b.classes.AppendBinary(nil)
		if err != nil {
			panic(fmt.Sprintf("rule: %v", err)) // it returns none
		}
		dst = binenc.AppendBytes(dst, enc)
	}
	return dst
}

// restoreClasses reads what appendClasses wrote: of k classes and m bins.
func restoreClasses(r *binenc.Reader, blocks []block, k, m int) {
	for i := range blocks {
		c := new(acc.ClassWise)
		if err := c.UnmarshalBinary(r.Bytes(binenc.MaxBytes)); r.Err() != nil {
			return
		} else if err != nil {
			r.Failf("classes of a block: %v", err)
			return
		}
		if gotK, gotM := c.Shape(); gotK != k || gotM != m {
			r.Failf("block of %d classes and %d bins, allowed %d and %d", gotK, gotM, k, m)
			return
		}
		blocks[i].classes = c
	}
}
