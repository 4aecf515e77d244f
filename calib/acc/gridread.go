package acc

import (
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/plumbline/plumbline/calib/metric"
)

// Cell is one cell of a grid: the sums of its wrong (or unlabelled) and of its correct rows, SumC = Σ w·c,
// SumC2 = Σ w·c². Confidences are in [Lo, Hi].
type Cell struct {
	Lo, Hi         float64
	Wrong, Correct CellSums
}

// CellSums has the sums of the rows of a cell with one outcome.
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

// binSums has the sums of bins, for wrong (or unlabelled) and for correct rows. They are integers, so results depend
// on the rows only.
type binSums [2][]entry

// sums pools unused binSums.
var sums = sync.Pool{New: func() any { return new(binSums) }}

// sumsOf adds up the entries in each of m bins. The caller returns the result to the pool.
func (g *Grid) sumsOf(m int, bin func(cell, m int) int) *binSums {
	s := sums.Get().(*binSums)
	for outcome := range s {
		s[outcome] = slices.Grow(s[outcome][:0], m)[:m]
		clear(s[outcome])
	}
	for i, k := range g.t.keys {
		e := g.t.ents[i]
		d := &s[k&1][bin(int(k/2), m)]
		for j := range d {
			d[j] += e[j]
		}
	}
	return s
}

// bin returns a bin of one outcome.
func (s *binSums) bin(outcome, i int) metric.Bin {
	e := &s[outcome][i]
	b := metric.Bin{N: e[gN], W: unfix(e[gW]), SumC: unfix(e[gWC])}
	if outcome == 1 {
		b.SumA = b.W
	}
	return b
}

// Bins returns the m equal-width bins (i/m, (i+1)/m], exactly as from the rows, with SumC and SumA off by at most
// n·2^-33. Confidence 0 is put into the first bin. m must divide 3600, else ErrShape.
func (g *Grid) Bins(m int) ([]metric.Bin, error) {
	if err := checkDivides(m); err != nil {
		return nil, err
	}
	s := g.sumsOf(m, binOf)
	defer sums.Put(s)
	bins := make([]metric.Bin, m)
	for i := range bins {
		b, c := s.bin(0, i), s.bin(1, i)
		bins[i] = metric.Bin{N: b.N + c.N, W: b.W + c.W, SumC: b.SumC + c.SumC, SumA: b.SumA + c.SumA}
	}
	return bins, nil
}

// BinsByOutcome returns the bins of Bins apart for the wrong (or unlabelled) and the correct rows: the sums
// n₀, C₀ and n₁, C₁ of the sequential detector.
func (g *Grid) BinsByOutcome(m int) (wrong, correct []metric.Bin, err error) {
	if err := checkDivides(m); err != nil {
		return nil, nil, err
	}
	s := g.sumsOf(m, binOf)
	defer sums.Put(s)
	wrong, correct = make([]metric.Bin, m), make([]metric.Bin, m)
	for i := range m {
		wrong[i], correct[i] = s.bin(0, i), s.bin(1, i)
	}
	return wrong, correct, nil
}

// RowsByOutcome adds the rows of each of the bins of BinsByOutcome to wrong and right, which are of one length.
func (g *Grid) RowsByOutcome(wrong, right []float64) error {
	m := len(wrong)
	if err := checkDivides(m); err != nil {
		return err
	}
	s := g.sumsOf(m, binOf)
	defer sums.Put(s)
	for i := range m {
		wrong[i] += float64(s[0][i][gN])
		right[i] += float64(s[1][i][gN])
	}
	return nil
}

// AddRows adds the rows of each of the bins of Bins to n, which has whole numbers.
func (g *Grid) AddRows(n []float64) error { return g.RowsByOutcome(n, n) }

// CDFCounts returns h, the Σw of the k bins [i/k, (i+1)/k), the last one closed, of the binned CDF
// Ĝ_ν (Zhou et al.); k must divide 3600, else ErrShape. Outcomes are put together.
func (g *Grid) CDFCounts(k int) ([]float64, error) {
	if err := checkDivides(k); err != nil {
		return nil, err
	}
	s := g.sumsOf(k, cdfBinOf)
	defer sums.Put(s)
	h := make([]float64, k)
	for i := range h {
		h[i] = unfix(s[0][i][gW] + s[1][i][gW])
	}
	return h, nil
}

// Total returns the number of rows and Σw.
func (g *Grid) Total() (n int64, w float64) { return g.n, unfix(g.w) }

// Accuracy returns Σ w·a / Σw; NaN without weight.
func (g *Grid) Accuracy() float64 {
	s := g.sumsOf(1, binOf)
	defer sums.Put(s)
	return ratio(s[1][0][gW], g.w)
}

// MeanConfidence returns Σ w·c / Σw; NaN without weight.
func (g *Grid) MeanConfidence() float64 {
	s := g.sumsOf(1, binOf)
	defer sums.Put(s)
	return ratio(s[0][0][gWC]+s[1][0][gWC], g.w)
}

// ratio returns a/b for sums in the same unit; NaN where b = 0.
func ratio(a, b int64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}
