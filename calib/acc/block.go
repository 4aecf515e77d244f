package acc

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
)

// Block is rows of K scores on their way into sets: what the row kernel makes of them, and whatever all sets need of
// a row, worked out once, although a row may count in many sets (its model's, its slices', as a prediction and as a
// labelled row). Its loops run over the rows of one accumulator at a time, without branches on the data.
//
//	b := acc.NewBlock(k)
//	b.Score(scores, probs)                          // n×K float32
//	err := b.SetRow(i, y, w, lag, served)           // every row that counts
//	err = set.PredictRows(b, all)                   // row numbers
//	err = set.LabelRows(b, labelled)
//
// Sets get the same bytes as from Predict and LabelScaled, row by row. A Block is scratch memory: reuse it. Of a few
// hundred KiB of scores it stays in the second cache (BlockRows).
type Block struct {
	k     int
	lnK   float64
	probs bool

	scores, v []float32 // n×K: the scores, and values that kernel.Row.Scale turns into probabilities
	slab      []float32 // the memory of v, for logits
	rows      []kernel.Row

	// By row, with room for whole vectors: the arguments of SetRow, and what finish derives from them.
	w      []float64
	wf     []int64 // the same in units
	y      []int32 // -1 without a label
	lag    []int64
	cell   []uint16 // of the lag
	served []bool
	of     *kernel.Outcomes
	csf    [blockCSFs]celled
	stale  bool // SetRow came after finish
	// weighted says that SetRow got a weight other than 1, and heavy that it got one of fixFast or more. Until weighted
	// is set all of w is 1, also of rows that were not set, so no loop needs to check.
	weighted, heavy bool

	// Of the rows at hand: those of weight 1, their class probabilities that do not belong to the first bin, and the
	// rows that are added one by one.
	unit  fixedpoint.ScaledRows
	large fixedpoint.Large
	slow  []int32
	key   []uint32 // of the labels' classes
	soft  blockSoft

	exact    kernel.Exact // result for exactRow, the last row with a probability beside an edge
	exactRow int32

	symbols   []uint32 // cells of ClassCounts, by row
	symbolled bool     // symbols are valid
	wrong     []int32  // scratch of ClassCounts: rows, their pairs, and these pairs' places
	pairs     []uint64
	places    []uint32
	ones      []uint32 // all 1
}

// Score functions of a row: its confidences, and the served confidence.
const (
	csfMSP = iota
	csfMargin
	csfNegEnt
	csfServed
	blockCSFs
)

// celled is what a grid adds for each row of confidence c; W and Hit are shared by all grids.
type celled struct {
	c []float64
	fixedpoint.CellRows
	near []uint8 // scratch
	used bool    // some row has this one
}

func newCelled(c []float64, w []int64, hit []uint16) celled {
	n := len(c)
	rows := fixedpoint.CellRows{Key: make([]uint16, n), Hit: hit, W: w, WC: make([]int64, n), WC2: make([]int64, n)}
	return celled{c: c, CellRows: rows, near: make([]uint8, n/8)}
}

// blockSoft has what the soft bins need of rows of weight 1: ρ, the confidence, and 0xFF for a correct row.
type blockSoft struct {
	rho, conf []float64
	hit       []uint8
}

// blockBytes is about the size of a block's scores, and blockRows bounds the rows if each has few scores: with some
// 300 bytes for each row, all stays in the second-level cache.
const (
	blockBytes = 256 << 10
	blockRows  = 512
)

// BlockRows returns how many rows of k scores a Block handles best.
func BlockRows(k int) int { return max(1, min(blockRows, blockBytes/(4*k))) }

// NewBlock returns a block for rows of k scores, k ≥ 2.
func NewBlock(k int) *Block {
	if k < 2 || k > MaxClasses {
		panic("acc: block of fewer than two or too many classes")
	}
	return &Block{k: k, lnK: log(float64(k))}
}

// Score runs the row kernel over n×K logits or probabilities. The block keeps the slice until the next call.
func (b *Block) Score(scores []float32, probs bool) {
	n := len(scores) / b.k
	b.probs, b.scores, b.v = probs, scores[:n*b.k], scores[:n*b.k]
	b.forget()
	if cap(b.rows) < n {
		b.grow(n)
	}
	b.exact = kernel.Exact{}
	b.rows = b.rows[:n]
	if probs {
		kernel.ProbRows(b.rows, scores, b.k)
		return
	}
	if len(b.slab) < n*b.k {
		b.slab = make([]float32, n*b.k)
	}
	b.v = b.slab[:n*b.k]
	kernel.LogitRows(b.rows, b.v, scores, b.k, 1)
}

// forget resets rows for which SetRow got unusual arguments.
func (b *Block) forget() {
	if b.csf[csfServed].used {
		clear(b.served)
		b.csf[csfServed].used = false
	}
	if b.weighted {
		b.fillOnes()
		b.weighted, b.heavy = false, false
	}
}

func (b *Block) fillOnes() {
	for i := range b.w {
		b.w[i], b.wf[i] = 1, fixOne
	}
}

// grow makes room for n rows. The old contents are lost.
func (b *Block) grow(n int) {
	padded := fixedpoint.Padded(n)
	b.rows, b.w, b.wf = make([]kernel.Row, n), make([]float64, padded), make([]int64, padded)
	b.y, b.lag, b.served = make([]int32, padded), make([]int64, padded), make([]bool, padded)
	b.cell, b.of = make([]uint16, padded), kernel.NewOutcomes(padded)
	for f, c := range [blockCSFs][]float64{b.of.Conf, b.of.Margin, b.of.NegEnt, make([]float64, padded)} {
		b.csf[f] = newCelled(c, b.wf, b.of.Hit)
	}
	b.fillOnes()
}

// Row returns the kernel's result for row i. A row that is not OK must not be counted. Rows prepared by SetRow are
// settled (kernel.Row.Settle) when the first rows are added to a set.
func (b *Block) Row(i int) *kernel.Row { return &b.rows[i] }

// SetRow prepares row i: y is its label or -1, w its weight, lagNanos the label's time minus the prediction's, served
// the confidence that was served (NaN = absent). Values out of range, or a row that is not OK, give ErrValue; the row
// must not be counted then.
func (b *Block) SetRow(i, y int, w float64, lagNanos int64, served float64) error {
	// All that follows from these is worked out for many rows at once, by finish.
	if !b.rows[i].OK || y >= b.k || !(w > 0 && w < maxWeight) {
		return b.refuse(i, y, w)
	}
	b.stale = true
	b.lag[i], b.y[i] = lagNanos, int32(max(y, -1))
	if w != 1 || b.weighted {
		b.weigh(i, w)
	}
	if served == served && y >= 0 {
		return b.serve(i, served)
	}
	if b.csf[csfServed].used {
		b.served[i] = false
	}
	return nil
}

// weigh stores the weight of row i.
func (b *Block) weigh(i int, w float64) {
	b.weighted, b.heavy = b.weighted || w != 1, b.heavy || w >= fixFast
	b.w[i], b.wf[i] = w, fix(w)
}

// refuse returns the error for arguments of SetRow that are out of range.
func (b *Block) refuse(i, y int, w float64) error {
	if err := checkWeight(w); err != nil {
		return err
	}
	if y >= b.k {
		return fmt.Errorf("label is %d, allowed 0 to %d: %w", y, b.k-1, ErrValue)
	}
	return fmt.Errorf("row %d of the block is not finite or no distribution: %w", i, ErrValue)
}

// serve stores the served confidence of row i.
func (b *Block) serve(i int, served float64) error {
	if err := checkUnit("served", served); err != nil {
		return err
	}
	b.served[i] = true
	b.csf[csfServed].c[i], b.csf[csfServed].used = served, true
	return nil
}

// finish computes everything that follows from the rows set since the last call, and finds their cells.
func (b *Block) finish() {
	if !b.stale {
		return
	}
	b.stale, b.symbolled = false, false
	b.of.Fill(&kernel.LabelledRows{Rows: b.rows, V: b.v, Z: b.scores, K: b.k, Y: b.y, W: b.w, LnK: b.lnK})
	for i := range b.rows {
		if !b.probs {
			break
		}
		if y := b.y[i]; y >= 0 && b.rows[i].OK {
			b.of.NLL[i] = b.w[i] * kernel.NLL(b.rows[i], b.scores[i*b.k:(i+1)*b.k], int(y), true)
		}
	}
	lagCellsOf(b.cell, b.lag[:len(b.rows)])
	b.csf[csfMSP].find(b.w, b.heavy, len(b.rows))
	b.settle()
	for f := csfMargin; f < blockCSFs; f++ {
		if x := &b.csf[f]; f != csfServed || x.used {
			x.find(b.w, b.heavy, len(b.rows))
		}
	}
}

// settle settles the rows whose confidence lies beside an edge, as find has noted.
func (b *Block) settle() {
	x := &b.csf[csfMSP]
	for v, mask := range x.near[:fixedpoint.Padded(len(b.rows))/8] {
		for ; mask != 0; mask &= mask - 1 {
			i := 8*v + bits.TrailingZeros8(mask)
			if i >= len(b.rows) {
				return
			}
			r := &b.rows[i]
			before := r.Conf
			if r.Settle(b.scores[i*b.k:(i+1)*b.k], b.probs); r.Conf == before {
				continue
			}
			x.c[i] = clamp(r.Conf)
			x.set(i, x.c[i], b.w[i])
			b.csf[csfMargin].c[i] = clamp(r.Margin())
		}
	}
}

// find finds the cells of n rows of weights w, and notes the rows near an edge, or all rows. heavy says that some
// weight may be fixFast or more.
func (x *celled) find(w []float64, heavy bool, n int) {
	padded := fixedpoint.Padded(n)
	if !x.Find(x.near, x.c[:padded], w) {
		for i, c := range x.c[:n] {
			x.set(i, c, w[i])
			x.near[i/8] = math.MaxUint8
		}
		return
	}
	for v, mask := range x.near[:padded/8] {
		for ; mask != 0; mask &= mask - 1 {
			i := 8*v + bits.TrailingZeros8(mask)
			x.set(i, x.c[i], w[i])
		}
	}
	if !heavy {
		return
	}
	for i, v := range w[:n] {
		if v >= fixFast {
			x.set(i, x.c[i], v)
		}
	}
}

func (x *celled) set(i int, c, w float64) {
	wc := w * c
	x.WC[i], x.WC2[i], x.Key[i] = fix(wc), fix(wc*c), uint16(2*cellOf(c))
}

func (b *Block) row(i int32) []float32 { return b.v[int(i)*b.k : (int(i)+1)*b.k] }

// logits returns the logits of row i, nil for probabilities.
func (b *Block) logits(i int32) []float32 {
	if b.probs {
		return nil
	}
	return b.scores[int(i)*b.k : (int(i)+1)*b.k]
}
