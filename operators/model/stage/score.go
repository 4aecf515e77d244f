package stage

import (
	"errors"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/calib/kernel"
)

// Scorer holds the scratch memory for scoring rows of K classes.
type Scorer struct {
	z, p []float64
	e    []float32
	one  [1]kernel.Row
	last kernel.Row
	unit float64 // what p is multiplied by
}

// NewScorer returns a scorer for rows of k scores.
func NewScorer(k int) *Scorer {
	return &Scorer{z: make([]float64, k), p: make([]float64, k), e: make([]float32, k)}
}

// Add adds a row to labelled sums, calibrated by f (nil = identity). For the identity it uses the block kernel, as the
// shards do, so both give the same numbers.
func (s *Scorer) Add(set *acc.Set, f *InForce, row *acc.SampleRow) error {
	truth := acc.Truth{Class: int(row.Y), Weight: float64(row.W), Lag: row.LabelTS - row.TS, Served: math.NaN()}
	if f == nil {
		kernel.LogitRows(s.one[:], s.e, row.Z, len(row.Z), 1)
		r := s.one[0]
		if !r.OK {
			return errNotFinite
		}
		truth.NLL = kernel.NLL(r, row.Z, truth.Class, false)
		s.last = r
		return set.LabelScaled(r, s.e, row.Z, truth)
	}
	f.Cal.Apply(s.p, s.logits(row))
	q := s.p[truth.Class] // before p is normalised
	r, ok := kernel.Probs(s.p, s.p)
	if !ok {
		return noProbabilities(f.Cal)
	}
	truth.NLL = r.LSE - kernel.LogProb(q)
	s.last = r
	return set.Label(r, s.p, truth)
}

// AddClass adds the row that Add took last to the sums by predicted class.
func (s *Scorer) AddClass(sums detect.Pane, row *acc.SampleRow) {
	b, w := &sums[detect.ClassCell(s.last.Arg, s.last.Conf)], float64(row.W)
	if s.last.Arg == int(row.Y) {
		b.N1, b.C1 = b.N1+w, b.C1+w*s.last.Conf
	} else {
		b.N0, b.C0 = b.N0+w, b.C0+w*s.last.Conf
	}
}

// logits returns the logits of a row in float64, until the next row.
func (s *Scorer) logits(row *acc.SampleRow) []float64 {
	for i, x := range row.Z {
		s.z[i] = float64(x)
	}
	return s.z[:len(row.Z)]
}

// RowScore is the score of one labelled row under one calibrator.
type RowScore struct {
	NLL, Confidence float64 // NLL is capped at the bound
	Hit             bool
	Class           int // predicted
}

// Row scores a row by a calibrator (nil = identity). The NLL is capped at bound, as the tests require.
func (s *Scorer) Row(cal calibrator.Calibrator, row *acc.SampleRow, bound float64) (RowScore, error) {
	z, y := s.logits(row), int(row.Y)
	if cal == nil {
		r, ok := kernel.LogitTop(z, s.p)
		if !ok {
			return RowScore{}, errNotFinite
		}
		s.p[r.Arg], s.unit = 1, r.Conf
		return RowScore{min(r.LogitNLL(z[y]), bound), r.Conf, r.Arg == y, r.Arg}, nil
	}
	cal.Apply(s.p, z)
	r, ok := kernel.ProbTop(s.p)
	if !ok {
		return RowScore{}, noProbabilities(cal)
	}
	s.unit = r.Conf / s.p[r.Arg]
	return RowScore{min(r.LSE-kernel.LogProb(s.p[y]), bound), r.Conf, r.Arg == y, r.Arg}, nil
}

// Probs writes the probabilities of the row that Row has scored last to q.
func (s *Scorer) Probs(q []float64) {
	for k, v := range s.p {
		q[k] = v * s.unit
	}
}

var errNotFinite = errors.New("sampled logits are not finite")

func noProbabilities(cal calibrator.Calibrator) error {
	return fmt.Errorf("calibrator %s gives no probabilities", cal.Method())
}

// AddRow adds a row to sums, calibrated by f. It returns the NLL of the row, and 1 if the top class is correct, else 0.
func (s *Scorer) AddRow(set *acc.Set, f *InForce, row *acc.SampleRow) (nll, hit float64, err error) {
	if err := s.Add(set, f, row); err != nil {
		return 0, 0, err
	}
	var cal calibrator.Calibrator
	if f != nil {
		cal = f.Cal
	}
	one, err := s.Row(cal, row, math.Inf(1))
	if one.Hit {
		hit = 1
	}
	return max(one.NLL, 0), hit, err
}
