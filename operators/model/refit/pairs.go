package refit

import (
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// pair is two calibrators of k classes, nil = the identity: the one that is served, and the one that may follow it.
type pair struct {
	k        int
	was, now calibrator.Calibrator
}

// pairOf is the calibrator in force and another.
func pairOf(v *stage.Version, cal calibrator.Calibrator) pair { return pair{v.K, inForce(v), cal} }

// each gives each row to f with its scores by both calibrators, with the bound of the tests.
func (p pair) each(rows []acc.SampleRow, f func(row *acc.SampleRow, was, now stage.RowScore)) error {
	sc, bound := stage.NewScorer(p.k), nllBound(p.k)
	for i := range rows {
		was, err := sc.Row(p.was, &rows[i], bound)
		if err != nil {
			return err
		}
		now, err := sc.Row(p.now, &rows[i], bound)
		if err != nil {
			return err
		}
		f(&rows[i], was, now)
	}
	return nil
}

// appendNLLs appends the NLLs of rows by a calibrator of k classes, with the bound of the tests.
func appendNLLs(dst []float64, cal calibrator.Calibrator, rows []acc.SampleRow, k int) ([]float64, error) {
	sc, bound := stage.NewScorer(k), nllBound(k)
	dst = slices.Grow(dst, len(rows))
	for i := range rows {
		s, err := sc.Row(cal, &rows[i], bound)
		if err != nil {
			return nil, err
		}
		dst = append(dst, s.NLL)
	}
	return dst, nil
}
