package detect

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/acc"
)

// margin widens every bin and every tolerance, so that bets stay fair although confidences are summed as multiples of
// 2^-32: Σ w·c and w of a row with weight w are each off by at most 2^-33, hence their quotient by at most 2^-32/w,
// which is at most margin for w >= 2^-10.
const margin = 0x1p-22

// BinSums are the sums of the rows of one bin: N1 = Σw and C1 = Σ w·c of the correct ones, N0 and C0 of the wrong ones.
type BinSums struct{ N1, C1, N0, C0 float64 }

// N returns Σw of the bin.
func (b BinSums) N() float64 { return b.N1 + b.N0 }

// Pane holds the sums of M equal-width bins (j/M, (j+1)/M]; confidence 0 is in the first. For NullClass it holds
// those of the cells of ClassCell.
type Pane []BinSums

// classEdges are the bands of confidence that the rows of a predicted class are summed in: the narrower, the less of a
// bet's growth is lost to the chord. The stake is one for all bands, as the null speaks of classes only.
var classEdges = [...]float64{0, .4, .55, .7, .8, .9, 1}

// ClassBands is the number of cells of a class in a pane for NullClass.
const ClassBands = len(classEdges) - 1

// ClassCell returns the cell of a row of confidence c, in (0, 1], that is predicted as class.
func ClassCell(class int, c float64) int {
	band := 0
	for band < ClassBands-1 && c > classEdges[band+1] {
		band++
	}
	return class*ClassBands + band
}

// ByClass returns the sums of the classes of a pane for NullClass.
func (p Pane) ByClass() Pane {
	out := make(Pane, len(p)/ClassBands)
	for j, b := range p {
		d := &out[j/ClassBands]
		d.N1, d.C1, d.N0, d.C0 = d.N1+b.N1, d.C1+b.C1, d.N0+b.N0, d.C0+b.C0
	}
	return out
}

// cells returns how many cells of a pane Bins counts as one.
func (s Spec) cells() int {
	if s.Null == NullClass {
		return ClassBands
	}
	return 1
}

// edges returns the confidences between which rows of cell j are.
func (s Spec) edges(j int) (lo, hi float64) {
	if s.Null == NullClass {
		return classEdges[j%ClassBands], classEdges[j%ClassBands+1]
	}
	m := float64(s.Bins)
	return float64(j) / m, float64(j+1) / m
}

// FromGrid returns the pane of the labelled rows of g with m bins, m a divisor of 3600, else acc.ErrShape. Exact
// but for Σ w·c, off by at most 2^-33 a row; the detectors allow for that where weights are at least 2^-10. The grid
// must hold no unlabelled rows: they would count as wrong ones.
func FromGrid(g *acc.Grid, m int) (Pane, error) {
	wrong, correct, err := g.BinsByOutcome(m)
	if err != nil {
		return nil, fmt.Errorf("pane of a grid: %w", err)
	}
	p := make(Pane, m)
	for j := range p {
		w1, w0 := correct[j].W, wrong[j].W
		p[j] = BinSums{N1: w1, C1: intoBin(correct[j].SumC, w1, j, m), N0: w0, C0: intoBin(wrong[j].SumC, w0, j, m)}
	}
	return p, nil
}

// intoBin moves Σ w·c by the rounding of rows of tiny weight, back to where its bin allows it to be.
func intoBin(sum, w float64, j, m int) float64 {
	return min(max(sum, w*float64(j)/float64(m)), w*float64(j+1)/float64(m))
}

// Scale multiplies all sums by f: 1/(largest weight) makes sampling weights fit for a detector.
func (p Pane) Scale(f float64) {
	for j := range p {
		b := &p[j]
		b.N1, b.C1, b.N0, b.C0 = b.N1*f, b.C1*f, b.N0*f, b.C0*f
	}
}

// N returns Σw.
func (p Pane) N() float64 {
	var n float64
	for _, b := range p {
		n += b.N()
	}
	return n
}

// flat returns the sums of all rows as if every confidence had been c.
func (p Pane) flat(c float64) BinSums {
	var n1, n0 float64
	for _, b := range p {
		n1 += b.N1
		n0 += b.N0
	}
	return BinSums{N1: n1, C1: n1 * c, N0: n0, C0: n0 * c}
}

// maxWeight is the largest Σw of a pane: four times what a grid can hold. It keeps every number of a detector finite.
const maxWeight = 1 << 34

// check returns ErrPane unless p has the bins of s and every mean confidence lies in its bin.
func (p Pane) check(s Spec) error {
	m := s.Bins * s.cells()
	if len(p) != m {
		return fmt.Errorf("pane of %d bins, detector of %d: %w", len(p), m, ErrPane)
	}
	for j, b := range p {
		lo, hi := s.edges(j)
		if !within(b.N1, b.C1, lo-margin, hi+margin) || !within(b.N0, b.C0, lo-margin, hi+margin) {
			return fmt.Errorf("bin %d: sums n1=%g c1=%g n0=%g c0=%g: mean confidence allowed in (%g, %g]: %w", j,
				b.N1, b.C1, b.N0, b.C0, lo, hi, ErrPane)
		}
	}
	return nil
}

// within reports whether n rows can have Σc in [n·lo, n·hi]; NaN is nowhere.
func within(n, c, lo, hi float64) bool {
	return n >= 0 && n <= maxWeight && c >= n*lo && c <= n*hi
}
