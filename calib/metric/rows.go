package metric

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Rows are n labelled rows of K scores, row-major n×K: F32 or F64, the other nil. float64 scores are computed
// in float64 throughout.
type Rows struct {
	K      int
	F32    []float32
	F64    []float64
	Probs  bool    // the scores are probabilities, not logits
	Labels []int32 // n; classes in [0, K), or -1 where the label is not known: such a row takes no part
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
	}
	return nil
}

// scanned is what one pass over the rows leaves: the top-label view, and the sums of the rest.
type scanned struct {
	c, csf     []float64 // csf is nil where it is c
	a          []bool
	nll, brier float64 // sums
	right      int
	classes    *ClassWise
}

func (r Rows) scan(o Options) (*scanned, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.F64 != nil {
		return scanRows(r, r.F64, o)
	}
	return scanRows(r, r.F32, o)
}

func scanRows[T kernel.Float](r Rows, scores []T, o Options) (*scanned, error) {
	s := &scanned{classes: NewClassWise(r.K, o.Bins)}
	p := make([]float64, r.K)
	summarise := kernel.Logits[T]
	if r.Probs {
		summarise = kernel.Probs[T]
	}
	for i, label := range r.Labels {
		y := int(label)
		if y == -1 {
			continue
		}
		if y < -1 || y >= r.K {
			return nil, fmt.Errorf("row %d: label %d, allowed 0..%d, or -1 for none", i, y, r.K-1)
		}
		row := scores[i*r.K : (i+1)*r.K]
		sum, ok := summarise(row, p)
		if !ok {
			return nil, rowError(i, r.Probs)
		}
		s.nll += kernel.NLL(sum, row, y, r.Probs)
		s.brier += kernel.Brier(sum, p[y])
		s.classes.Add(p, y)
		s.add(sum, sum.Arg == y, o.CSF, r.K)
	}
	return s, nil
}

func rowError(i int, probs bool) error {
	if probs {
		return fmt.Errorf("row %d: not a probability distribution, allowed are values in [0, 1] whose sum is within 0.05 of 1", i)
	}
	return fmt.Errorf("row %d: a score is NaN or infinite, allowed are finite ones", i)
}

func (s *scanned) add(r kernel.Row, right bool, csf string, k int) {
	s.c = append(s.c, r.Conf)
	s.a = append(s.a, right)
	if right {
		s.right++
	}
	switch csf {
	case Margin:
		s.csf = append(s.csf, r.Margin())
	case NegEnt:
		s.csf = append(s.csf, kernel.NegEnt(r, k))
	}
}
