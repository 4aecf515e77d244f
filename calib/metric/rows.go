package metric

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Rows are n labelled rows of K scores, row-major n×K: F32 or F64, the other nil. float64 scores are computed
// in float64 throughout; float32 scores by the block kernel, as in a stream, so that both have the same numbers. Its
// probabilities have a relative error below 1e-6, but for those beside an edge of a bin: they are in float64.
type Rows struct {
	K      int
	F32    []float32
	F64    []float64
	Probs  bool    // the scores are probabilities, not logits
	Labels []int32 // n; classes in [0, K), or -1 where the label is not known: such a row takes no part
	// W are n weights, 0 or 1e-100..1e100, or nil where every row counts 1. A row of weight w stands for w rows (a
	// sampling weight); one of weight 0 takes no part.
	W []float64
}

// ZeroRows is how many rows that take part are of probabilities of which that of the label is 0, such as one that was
// rounded. Each adds ZeroNLL to the sum of the NLL, so that a few of them decide it.
func (r Rows) ZeroRows() (n int64) {
	if !r.Probs {
		return 0
	}
	for i, y := range r.Labels {
		if y < 0 || weight(r.W, i) == 0 {
			continue
		}
		if at := i*r.K + int(y); r.F64 != nil && r.F64[at] <= 0 || r.F32 != nil && r.F32[at] <= 0 {
			n++
		}
	}
	return n
}

// ZeroNLL is -ln of what a probability of 0 counts as in rows of float64, or of float32.
func ZeroNLL(double bool) float64 {
	if double {
		return -kernel.LogProb(float64(0))
	}
	return -kernel.LogProb(float32(0))
}

func (r Rows) check() error {
	n, have := len(r.Labels), len(r.F32)
	if r.F64 != nil {
		have = len(r.F64)
	}
	switch {
	case r.F32 != nil && r.F64 != nil:
		return fmt.Errorf("rows: both float32 and float64 scores, allowed is one of them")
	case r.K < 1:
		return fmt.Errorf("rows: %d classes, allowed are 1 and more", r.K)
	case have%r.K != 0 || have/r.K != n:
		return fmt.Errorf("rows: %d scores for %d labels, want %d labels × %d classes", have, n, n, r.K)
	case r.W != nil && len(r.W) != n:
		return fmt.Errorf("rows: %d weights for %d labels, want one a row", len(r.W), n)
	}
	for i, w := range r.W {
		if !(w == 0 || w >= minWeight && w <= maxWeight) {
			return fmt.Errorf("row %d: weight %g, allowed are 0 and %g..%g", i, w, minWeight, maxWeight)
		}
	}
	return nil
}

// checkBins is check for class-wise bins.
func (r Rows) checkBins(bins int) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.K > maxClassBins/bins {
		return fmt.Errorf("bins: %d for each of %d classes, allowed are %d in all", bins, r.K, maxClassBins)
	}
	return nil
}

// Bounds of weights, so that neither Σw² nor the products of two sums overflow or vanish. float32 weights lie within.
const minWeight, maxWeight = 1e-100, 1e100

// takes says whether row i takes part, and with which weight.
func (r Rows) takes(i int) (y int, w float64, ok bool, err error) {
	y, w = int(r.Labels[i]), weight(r.W, i)
	if y < -1 || y >= r.K {
		return 0, 0, false, fmt.Errorf("row %d: label %d, allowed 0..%d, or -1 for none", i, y, r.K-1)
	}
	return y, w, y != -1 && w > 0, nil
}

// each calls f with every row that takes part, its probabilities in float64, until a row is not allowed.
func (r Rows) each(f func(sum kernel.Row, p []float64, y int, w float64)) error {
	if r.F64 != nil {
		return eachRow(r, r.F64, func(sum kernel.Row, p, _ []float64, y int, w float64) { f(sum, p, y, w) })
	}
	return eachRow(r, r.F32, func(sum kernel.Row, p []float64, _ []float32, y int, w float64) { f(sum, p, y, w) })
}

func eachRow[T kernel.Float](r Rows, scores []T, f func(sum kernel.Row, p []float64, row []T, y int, w float64)) error {
	p := make([]float64, r.K)
	summarise := kernel.Logits[T]
	if r.Probs {
		summarise = kernel.Probs[T]
	}
	for i := range r.Labels {
		y, w, ok, err := r.takes(i)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		row := scores[i*r.K : (i+1)*r.K]
		sum, ok := summarise(row, p)
		if !ok {
			return rowError(i, row, r.Probs)
		}
		f(sum, p, row, y, w)
	}
	return nil
}

func rowError[T kernel.Float](i int, row []T, probs bool) error {
	return fmt.Errorf("row %d: %w", i, kernel.RowError(row, probs))
}
