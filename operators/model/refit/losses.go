package refit

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// In tests the NLL of a row is at most B, and claims are about that bounded loss:
//
//	e^-B = 1/(100 K)·4^-j
//
// the floor of probabilities, is a hundredth of the uniform one. A score that is floored above what is true of a class
// would be proper no more: where one row in 500 is positive, to call it impossible would cost no more than to be right,
// and gain on every other row. So j counts the quarters by which the rarest class is rarer than the uniform share,
//
//	j = ⌊log4(1/(K·share))⌋,  of classes with leastOfClass rows or more in the sample, where the sample tells shares
//
// It never falls, as all that a test adds up must be of one bound.

// capped is a number of classes, and the bound of the NLL of a row.
type capped struct {
	k     int
	bound float64
}

// nllBound returns B for K classes, with j quarters below the uniform share.
func nllBound(k, quarters int) float64 {
	return math.Log(100*float64(k)) + float64(quarters)*2*math.Ln2
}

// mostQuarters keeps the floor far above what float32 scores can tell from 0.
const mostQuarters = 12

func (p *publisher) bound() float64  { return nllBound(p.version.K, p.quarters) }
func (p *publisher) bounded() capped { return capped{p.version.K, p.bound()} }

// watchRare raises the bound where a class turns out to be rarer, and begins all sums and tests anew: they are of the
// bound before.
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
	s.account.lost, s.account.rest, s.topAccount.lost, s.topAccount.rest = 0, 0, 0, 0
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

// rareClass returns the rarest class of a sample, if it is rarer than by so many quarters, and by how many it is.
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
