package metric

import "github.com/plumbline/plumbline/calib/kernel"

// scanned is what one pass over the rows leaves: the sums and, if that is asked for, the top-label view of each row.
type scanned struct {
	sums
	top     []Bin // equal width, top label
	classes *ClassWise

	rows   bool      // whether c, csf, a and w are kept
	c, csf []float64 // csf is nil where it is c
	a      []bool
	w      []float64 // nil where all weights are 1
}

// sums are by weight, but for n.
type sums struct {
	n                        int64
	total, right, nll, brier float64
}

// scan makes one pass; rows says whether to keep the confidence and the outcome of each row.
func (r Rows) scan(o Options, rows bool) (*scanned, error) {
	if err := r.checkBins(o.Bins); err != nil {
		return nil, err
	}
	r.W = unlessUnit(r.W)
	if r.F64 != nil {
		return scanExact(r, r.F64, o, rows)
	}
	return scanBlocks(r, o, rows)
}

func newScanned(r Rows, o Options, rows bool) *scanned {
	s := &scanned{top: make([]Bin, o.Bins), classes: NewClassWise(r.K, o.Bins), rows: rows}
	if n := len(r.Labels); rows {
		s.c, s.a = make([]float64, 0, n), make([]bool, 0, n)
		if r.W != nil {
			s.w = make([]float64, 0, n)
		}
		if o.CSF != MSP {
			s.csf = make([]float64, 0, n)
		}
	}
	return s
}

func scanExact[T kernel.Float](r Rows, scores []T, o Options, rows bool) (*scanned, error) {
	s := newScanned(r, o, rows)
	err := eachRow(r, scores, func(sum kernel.Row, p []float64, row []T, y int, w float64) {
		right := isRight(sum.Arg, y)
		s.n++
		s.total += w
		s.right += w * right
		s.nll += w * kernel.NLL(sum, row, y, r.Probs)
		s.brier += w * kernel.Brier(sum, p[y])
		addTop(s.top, sum.Conf, right, w)
		s.classes.AddWeighted(p, y, w)
		if rows {
			s.keep(&sum, right == 1, w, o.CSF, r.K)
		}
	})
	return s, err
}

// keep appends a row to the top-label view.
func (s *scanned) keep(r *kernel.Row, right bool, w float64, csf string, k int) {
	s.c = append(s.c, r.Conf)
	s.a = append(s.a, right)
	if s.w != nil {
		s.w = append(s.w, w)
	}
	switch csf {
	case Margin:
		s.csf = append(s.csf, r.Margin())
	case NegEnt:
		s.csf = append(s.csf, kernel.NegEnt(*r, k))
	}
}
