package refit

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// In tests the NLL of a row, in nats, is at most B, and claims are about that bounded loss. Probabilities are floored
// at
//
//	e^-B = 4^-j/(100 K)
//
// for K classes: a hundredth of the uniform probability, and a quarter of that for each quarter of the uniform share
// that the rarest class has (docs/math.md, The gate of a refit):
//
//	j = ⌊log4(1/(K·share))⌋,  share = rows of the rarest class/rows of the sample
//
// With a floor above what is true of a class the loss would not be proper: where one row in 500 is positive, to call it
// impossible would cost no more than to be right, and gain on every other row. Classes with fewer than leastOfClass
// rows do not count, nor does a sample that does not tell the shares of later rows (unmixed). j never falls, for all
// that a test adds up must be of one bound.

// capped is a number of classes, and the bound B of the NLL of a row.
type capped struct {
	k     int
	bound float64
}

// nllBound returns B for K classes and j quarters.
func nllBound(k, quarters int) float64 {
	return math.Log(100*float64(k)) + float64(quarters)*2*math.Ln2
}

// mostQuarters is enough for one row in 8,000 of two classes; the account bounds what each quarter can cost.
const mostQuarters = 6

func (p *publisher) bound() float64  { return nllBound(p.version.K, p.quarters) }
func (p *publisher) bounded() capped { return capped{p.version.K, p.bound()} }

// watchRare raises the bound where a class turns out to be rarer than was known. What tests and accounts have added up
// is of the bound before, so they begin anew.
func watchRare(s *State, in *stage.Pane) error {
	class, n := rareClass(s.sampled(), s.quarters)
	if n <= s.quarters {
		return nil
	}
	if s.run != nil {
		if err := s.end(fmt.Sprintf("class %d is so rare that its losses are counted anew, up to %.1f nats a row",
			class, nllBound(s.version.K, n)), in.End); err != nil {
			return err
		}
		s.period = -1 // the next one need not wait
	}
	s.quarters, s.losses = n, nil
	s.account.lost, s.corrections.cost.lost = 0, 0
	if s.quick != nil {
		s.quick.restart()
	}
	if s.monitor != nil {
		for _, b := range s.monitor.baselines {
			b.nll.none()
			b.known = sampleLosses{}
		}
	}
	return nil
}

// rareClass returns the rarest class of a sample and its quarters j, if they are more than those known; else 0, 0.
func rareClass(k *stage.Key, known int) (class, quarters int) {
	n, total := make([]int, k.K), len(k.Sample)
	for i := range k.Sample {
		n[k.Sample[i].Y]++
	}
	least := total
	for y, rows := range n {
		if rows >= leastOfClass && rows < least {
			class, least = y, rows
		}
	}
	if least == 0 || known >= mostQuarters {
		return 0, 0
	}
	quarters = min(mostQuarters, int(math.Log2(float64(total)/float64(k.K*least))/2))
	if quarters <= known || unmixed(k.K, k.Sample) != "" {
		return 0, 0
	}
	return class, quarters
}

// pair is two calibrators, nil = the identity: the one that is served, and the one that may follow it.
type pair struct {
	capped
	was, now calibrator.Calibrator
}

// pairOf is the calibrator in force and another.
func (p *publisher) pairOf(cal calibrator.Calibrator) pair {
	return pair{p.bounded(), inForce(p.version), cal}
}

// each gives each row to f with its scores by both calibrators, with the bound of the tests.
func (p pair) each(rows []acc.SampleRow, f func(row *acc.SampleRow, was, now stage.RowScore)) error {
	sc, bound := stage.NewScorer(p.k), p.bound
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

// appendNLLs appends the NLLs of rows by a calibrator.
func (b capped) appendNLLs(dst []float64, cal calibrator.Calibrator, rows []acc.SampleRow) ([]float64, error) {
	sc := stage.NewScorer(b.k)
	dst = slices.Grow(dst, len(rows))
	for i := range rows {
		s, err := sc.Row(cal, &rows[i], b.bound)
		if err != nil {
			return nil, err
		}
		dst = append(dst, s.NLL)
	}
	return dst, nil
}
