package acc

import (
	"iter"
	"math"

	"github.com/plumbline/plumbline/calib/metric"
)

// Cell is one cell of a grid: the sums of its wrong (or unlabelled) and of its correct rows, SumC = Σ w·c,
// SumC2 = Σ w·c². Confidences are in [Lo, Hi].
type Cell struct {
	Lo, Hi         float64
	Wrong, Correct CellSums
}

// CellSums are the sums of the rows of a cell with one outcome.
type CellSums struct {
	N              int64
	W, SumC, SumC2 float64
}

func cellSums(e entry) CellSums {
	return CellSums{e[gN], unfix(e[gW]), unfix(e[gWC]), unfix(e[gWC2])}
}

// Cells yields the cells that have rows, or groups of them, in ascending order of confidence.
func (g *Grid) Cells() iter.Seq[Cell] {
	return func(yield func(Cell) bool) {
		o := g.t.sorted()
		keys := o.keys
		for i := 0; i < len(keys); i++ {
			cell := int(keys[i] / 2)
			var sums [2]CellSums // by outcome
			sums[keys[i]&1] = cellSums(*o.nth(i))
			if i+1 < len(keys) && int(keys[i+1]/2) == cell {
				i++
				sums[1] = cellSums(*o.nth(i))
			}
			lo, hi := g.bounds(cell)
			if !yield(Cell{lo, hi, sums[0], sums[1]}) {
				return
			}
		}
	}
}

// bounds returns the interval that a cell of the grid stands for.
func (g *Grid) bounds(cell int) (lo, hi float64) {
	if g.groups == nil {
		return cellBounds(cell)
	}
	lo, _ = cellBounds(int(g.groups.first[cell]))
	_, hi = cellBounds(int(g.groups.last[cell]))
	return lo, hi
}

// binSums adds the entries of each bin in integers, so that the result depends on the rows only.
func (g *Grid) binSums(m int, bin func(cell, m int) int) (wrong, correct []entry) {
	sums := [2][]entry{make([]entry, m), make([]entry, m)}
	for i, k := range g.t.keys {
		e := g.t.ents[i]
		d := &sums[k&1][bin(int(k/2), m)]
		for j := range d {
			d[j] += e[j]
		}
	}
	return sums[0], sums[1]
}

// Bins returns the m equal-width bins (i/m, (i+1)/m], exactly as from the rows, with SumC and SumA off by at most
// n·2^-33. Confidence 0 is put into the first bin. m must divide 3600, else ErrShape.
func (g *Grid) Bins(m int) ([]metric.Bin, error) {
	wrong, correct, err := g.BinsByOutcome(m)
	if err != nil {
		return nil, err
	}
	for i, c := range correct {
		b := &wrong[i]
		b.N += c.N
		b.W += c.W
		b.SumC += c.SumC
		b.SumA += c.SumA
	}
	return wrong, nil
}

// BinsByOutcome returns the bins of Bins apart for the wrong (or unlabelled) and the correct rows: the sums
// n₀, C₀ and n₁, C₁ of the sequential detector.
func (g *Grid) BinsByOutcome(m int) (wrong, correct []metric.Bin, err error) {
	if err := checkDivides(m); err != nil {
		return nil, nil, err
	}
	w, c := g.binSums(m, binOf)
	wrong, correct = make([]metric.Bin, m), make([]metric.Bin, m)
	for i := range m {
		wrong[i] = metric.Bin{N: w[i][gN], W: unfix(w[i][gW]), SumC: unfix(w[i][gWC])}
		correct[i] = metric.Bin{N: c[i][gN], W: unfix(c[i][gW]), SumC: unfix(c[i][gWC]), SumA: unfix(c[i][gW])}
	}
	return wrong, correct, nil
}

// CDFCounts returns h, the Σw of the k bins [i/k, (i+1)/k), the last one closed, of the binned CDF
// Ĝ_ν (Zhou et al.); k must divide 3600, else ErrShape. Outcomes are put together.
func (g *Grid) CDFCounts(k int) ([]float64, error) {
	if err := checkDivides(k); err != nil {
		return nil, err
	}
	wrong, correct := g.binSums(k, cdfBinOf)
	h := make([]float64, k)
	for i := range h {
		h[i] = unfix(wrong[i][gW] + correct[i][gW])
	}
	return h, nil
}

// Total returns the number of rows and Σw.
func (g *Grid) Total() (n int64, w float64) { return g.n, unfix(g.w) }

// Accuracy returns Σ w·a / Σw; NaN without weight.
func (g *Grid) Accuracy() float64 {
	_, correct := g.binSums(1, binOf)
	return ratio(correct[0][gW], g.w)
}

// MeanConfidence returns Σ w·c / Σw; NaN without weight.
func (g *Grid) MeanConfidence() float64 {
	wrong, correct := g.binSums(1, binOf)
	return ratio(wrong[0][gWC]+correct[0][gWC], g.w)
}

// ratio returns a/b for sums in the same unit; NaN where b = 0.
func ratio(a, b int64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}
