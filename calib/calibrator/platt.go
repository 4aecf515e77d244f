package calibrator

import (
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Platt is logistic calibration of the top confidence c in its log-odds,
//
//	c' = σ(A ln(c/(1-c)) + B)
//
// with the K-class vector of Scalar. A < 0, which reverses the order of the rows, is possible where the rows say
// so. Make it with FitPlatt.
// Reference: Platt, Probabilistic Outputs for Support Vector Machines, 1999 (there A and B have the other sign).
type Platt struct{ p plattParams }

type plattParams struct {
	Slope     float64 `json:"slope"`
	Intercept float64 `json:"intercept"`
}

// Map implements Scalar.
func (c *Platt) Map(conf float64) float64 { return sigmoid(c.p.Slope*logOdds(conf) + c.p.Intercept) }

// Apply implements Calibrator.
func (c *Platt) Apply(p, z []float64) { applyTop(c, p, z) }

// Method implements Calibrator; it is "platt".
func (*Platt) Method() string { return "platt" }

func (c *Platt) params() any { return &c.p }

func (c *Platt) check() error {
	return within("slope, intercept", []float64{c.p.Slope, c.p.Intercept}, -maxParam, maxParam)
}

// FitPlatt fits A and B by log loss on Platt's targets, which keep them finite when all rows are right or wrong:
//
//	t = (N₊+1)/(N₊+2) where the top class is right, 1/(N₋+2) where it is wrong
//
// with N the summed weights, times n/Σw where Σw is less than the number n of rows with a weight: Platt's N are counts.
// Errors are those of FitTemperature. Newton's method on a convex objective.
func FitPlatt[T kernel.Float](d Data[T], opts Options) (*Platt, Report, error) {
	s, err := newSample("platt", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	c := &Platt{}
	c.p, s.report.Iterations, s.report.Converged = platt(s.countOutcomes())
	return finish(s, c, 2)
}

// FitPlattConfidence fits as FitPlatt does, with the arguments, report and errors of FitIsotonicConfidence.
func FitPlattConfidence(c []float64, right []bool, w []float64) (*Platt, Report, error) {
	o, r, err := newOutcomes("platt", c, right, w)
	if err != nil {
		return nil, Report{}, err
	}
	out := &Platt{}
	out.p, r.Iterations, r.Converged = platt(o)
	if r, err = o.done(out, r, 2, nil); err != nil {
		return nil, Report{}, err
	}
	return out, r, nil
}

func platt(o outcomes) (plattParams, int, bool) {
	var pos, neg, rows float64
	for i, a := range o.right {
		w := o.weight(i)
		if a {
			pos += w
		} else {
			neg += w
		}
		if w > 0 {
			rows++
		}
	}
	// Weights that are shares of something are less than the rows that they are of.
	if w := pos + neg; w > 0 && w < rows {
		pos, neg = pos*rows/w, neg*rows/w
	}
	x, t := make([]float64, len(o.c)), make([]float64, len(o.c))
	for i, a := range o.right {
		x[i], t[i] = logOdds(o.c[i]), 1/(neg+2)
		if a {
			t[i] = (pos + 1) / (pos + 2)
		}
	}
	f := logistic{x: x, t: t, w: o.w, keep: [2]bool{true}}
	th, n, ok := f.fit([3]float64{2: math.Log((pos + 1) / (neg + 1))}) // Platt's start
	return plattParams{Slope: th[0], Intercept: th[2]}, n, ok
}
