package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Beta is beta calibration (abm) of the top confidence,
//
//	c' = σ(a ln c - b ln(1-c) + m),  a, b ≥ 0
//
// with the K-class vector of Scalar. It does not reverse the order of the rows. Make it with FitBeta.
// Reference: Kull, Silva Filho, Flach, Beta calibration, AISTATS 2017.
type Beta struct{ p betaParams }

type betaParams struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
	M float64 `json:"m"`
}

// Map implements Scalar.
func (c *Beta) Map(conf float64) float64 {
	if math.IsNaN(conf) {
		return conf
	}
	return sigmoid(c.p.A*lnC(conf) - c.p.B*lnC(1-conf) + c.p.M)
}

// Apply implements Calibrator.
func (c *Beta) Apply(p, z []float64) { applyTop(c, p, z) }

// Method implements Calibrator; it is "beta".
func (*Beta) Method() string { return "beta" }

func (c *Beta) params() any { return &c.p }

func (c *Beta) check() error {
	if err := within("a, b", []float64{c.p.A, c.p.B}, 0, maxParam); err != nil {
		return err
	}
	return within("m", []float64{c.p.M}, -maxParam, maxParam)
}

// FitBeta fits a, b and m by log loss; a negative coefficient is dropped and the rest fitted again, and so is
// the other where it turns negative by that. A ridge of 1e-9 keeps m finite when all rows are right or wrong.
// Errors are those of FitTemperature. Newton's method on a convex objective.
func FitBeta[T kernel.Float](d Data[T], opts Options) (*Beta, Report, error) {
	s, err := newSample("beta", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	c := &Beta{}
	c.p = beta(s.countOutcomes(), &s.report)
	return finish(s, c, 3)
}

func beta(o outcomes, r *Report) betaParams {
	n := len(o.c)
	f := logistic{x: make([]float64, n), x2: make([]float64, n), t: make([]float64, n), w: o.w,
		keep: [2]bool{true, true}}
	for i, v := range o.c {
		f.x[i], f.x2[i] = lnC(v), -lnC(1-v)
		if o.right[i] {
			f.t[i] = 1
		}
	}
	for {
		th, steps, ok := f.fit([3]float64{})
		r.Iterations, r.Converged = r.Iterations+steps, ok
		j := 0
		if th[1] < th[0] {
			j = 1
		}
		if th[j] >= 0 {
			return betaParams{A: th[0], B: th[1], M: th[2]}
		}
		f.keep[j] = false
		r.Warnings = append(r.Warnings, fmt.Sprintf("coefficient %s: %.3g, dropped", []string{"a", "b"}[j], th[j]))
	}
}
