package calibrator

import (
	"errors"

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
		return errors.New("w, b: allowed are lists of one length from 2")
	}
	if err := within("w", c.p.W, -maxParam, maxParam); err != nil {
		return err
	}
	return within("b", c.p.B, -maxParam, maxParam)
}

// FitVector fits w and b by mean NLL in nats, from the identity,
//
//	∂L/∂w_k = 1/W Σ_i w_i (p_ik - 1[y_i = k]) z_ik,  ∂L/∂b_k likewise without z_ik
//
// with a ridge of 1e-9 towards the identity, for a finite optimum on separable rows. L-BFGS on a convex objective.
// Arguments and errors are those of FitTemperature, and logits beyond ±1e6 are an error.
func FitVector[T kernel.Float](z []T, k int, y []int32, w []float64, opts Options) (*Vector, Report, error) {
	s, err := newSample("vector", z, k, y, w, opts)
	if err != nil {
		return nil, Report{}, err
	}
	if err := s.moderate(); err != nil {
		return nil, Report{}, err
	}
	x := make([]float64, 2*k)
	for j := range k {
		x[j] = 1
	}
	x, s.report.Iterations, s.report.Converged = minimise(s.vectorLoss(), x)
	var mean float64
	for _, b := range x[k:] {
		mean += b / float64(k)
	}
	c := &Vector{p: vectorParams{W: x[:k:k], B: x[k:]}}
	for j := range c.p.B {
		c.p.B[j] -= mean
	}
	r, err := s.finish(c, 2*k-1)
	if err != nil {
		return nil, Report{}, err
	}
	return c, r, nil
}

// vectorLoss is the objective in (w, b).
func (s *sample) vectorLoss() objective {
	k := s.k
	u := make([]float64, k)
	return func(grad, x []float64) float64 {
		clear(grad)
		var sum float64
		for i, y := range s.y {
			row := s.row(i)
			for j, v := range row {
				u[j] = x[j]*v + x[k+j]
			}
			sum += s.w[i] * nllGrad(u, y)
			for j, v := range row {
				g := s.w[i] / s.total * u[j]
				grad[j] += g * v
				grad[k+j] += g
			}
		}
		var size float64
		for j, v := range x {
			if j < k {
				v--
			}
			size += v * v
			grad[j] += 2 * ridge * v
		}
		return sum/s.total + ridge*size
	}
}
