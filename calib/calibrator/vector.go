package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Vector is vector scaling, p = softmax(u) with u_k = w_k z_k + b_k and mean b = 0 (softmax does not see the mean).
// It may change the argmax. Apply panics on a row of another K. Make it with FitVector.
// Reference: Guo et al., On Calibration of Modern Neural Networks, ICML 2017, Section 4.2.
type Vector struct{ p vectorParams }

type vectorParams struct {
	W []float64 `json:"w"` // K
	B []float64 `json:"b"` // K
}

// Classes is K.
func (c *Vector) Classes() int { return len(c.p.W) }

// Apply implements Calibrator.
func (c *Vector) Apply(p, z []float64) {
	mustHave(c.Method(), len(c.p.W), len(z))
	p = p[:len(z)]
	for k, v := range z {
		p[k] = c.p.W[k]*bounded(v) + c.p.B[k]
	}
	softmax(p, p, 1)
}

// Method implements Calibrator; it is "vector".
func (*Vector) Method() string { return "vector" }

func (c *Vector) params() any { return &c.p }

func (c *Vector) check() error {
	if len(c.p.W) < 2 || len(c.p.W) != len(c.p.B) {
		return fmt.Errorf("w, b: %d and %d values, allowed are as many of both, from 2", len(c.p.W), len(c.p.B))
	}
	if err := within("w", c.p.W, -maxParam, maxParam); err != nil {
		return err
	}
	return within("b", c.p.B, -maxParam, maxParam)
}

// FitVector fits w and b by mean NLL in nats, from temperature scaling, w = 1/T,
//
//	∂L/∂w_k = 1/W Σ_i w_i (p_ik - 1[y_i = k]) z_ik,  ∂L/∂b_k likewise without z_ik
//
// with a ridge of 1e-9 towards the identity, for a finite optimum on separable rows. The objective is convex;
// quasi-Newton steps, from the 2×2 blocks of the Hessian by class.
// Errors are those of FitTemperature, and logits beyond ±1e6 are an error.
func FitVector[T kernel.Float](d Data[T], opts Options) (*Vector, Report, error) {
	s, err := newSample("vector", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	ts, _, err := s.temperatureStart()
	if err != nil {
		return nil, Report{}, err
	}
	f := classAffine{sample: s, ridge: ridge, low: math.Inf(-1), high: math.Inf(1), shift: true}
	x := f.fit(1 / ts.T())
	c := &Vector{p: vectorParams{W: x[:s.k:s.k], B: x[s.k:]}}
	return finish(s, c, 2*s.k-1)
}
