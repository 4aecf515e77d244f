package stage

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
)

// Scorer is the scratch memory of scoring rows of K scores.
type Scorer struct {
	z, p []float64
	e    []float32
	one  [1]kernel.Row
}

// NewScorer returns one for rows of k scores.
func NewScorer(k int) *Scorer {
	return &Scorer{z: make([]float64, k), p: make([]float64, k), e: make([]float32, k)}
}

// Add adds a row to labelled sums as calibrator f (nil = identity) makes it. The identity gives the numbers of Stats:
// both use the block kernel.
func (s *Scorer) Add(set *acc.Set, f *InForce, row *acc.SampleRow) error {
	y, w, lag := int(row.Y), float64(row.W), row.LabelTS-row.TS
	if f == nil {
		kernel.LogitRows(s.one[:], s.e, row.Z, len(row.Z), 1)
		r := s.one[0]
		if !r.OK {
			return fmt.Errorf("sampled logits are not finite")
		}
		return set.LabelScaled(r, s.e, row.Z, y, kernel.NLL(r, row.Z, y, false), w, lag, math.NaN())
	}
	for i, x := range row.Z {
		s.z[i] = float64(x)
	}
	r, nll, err := Evaluate(f.Cal, s.z, s.p, y)
	if err != nil {
		return err
	}
	return set.Label(r, s.p, y, nll, w, lag, math.NaN())
}

// RowScore is what one calibrator makes of one labelled row.
type RowScore struct {
	NLL, Confidence float64 // nll at most the bound
	Hit             bool
}

// Row scores a row by a calibrator (nil = identity), the NLL bounded as tests need it.
func (s *Scorer) Row(cal calibrator.Calibrator, row *acc.SampleRow, bound float64) (RowScore, error) {
	for i, x := range row.Z {
		s.z[i] = float64(x)
	}
	r, nll, err := Evaluate(cal, s.z, s.p, int(row.Y))
	return RowScore{min(nll, bound), r.Conf, r.Arg == int(row.Y)}, err
}

// Evaluate applies cal (nil = identity) to logits z: p gets the probabilities.
func Evaluate(cal calibrator.Calibrator, z, p []float64, y int) (kernel.Row, float64, error) {
	if cal == nil {
		r, ok := kernel.Logits(z, p)
		if !ok {
			return r, 0, fmt.Errorf("sampled logits are not finite")
		}
		return r, kernel.NLL(r, z, y, false), nil
	}
	q := make([]float64, len(z))
	cal.Apply(q, z)
	r, ok := kernel.Probs(q, p)
	if !ok {
		return r, 0, fmt.Errorf("calibrator %s gives no probabilities", cal.Method())
	}
	return r, kernel.NLL(r, q, y, true), nil
}

// AddRow adds a row to sums as calibrator f makes it, and returns its NLL and whether the top class is right, 1 or 0.
func (s *Scorer) AddRow(set *acc.Set, f *InForce, row *acc.SampleRow) (nll, hit float64, err error) {
	if err := s.Add(set, f, row); err != nil {
		return 0, 0, err
	}
	for i, x := range row.Z {
		s.z[i] = float64(x)
	}
	var cal calibrator.Calibrator
	if f != nil {
		cal = f.Cal
	}
	r, nll, err := Evaluate(cal, s.z, s.p, int(row.Y))
	if err == nil && r.Arg == int(row.Y) {
		hit = 1
	}
	return max(nll, 0), hit, err
}
