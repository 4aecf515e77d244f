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
// with a ridge of 1e-9 towards the identity, for a finite optimum on separable rows. L-BFGS on a convex objective, in
// coordinates in which each class's own 2×2 block of the Hessian at the start is the identity.
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
	x := s.fitVector(1 / ts.T())
	c := &Vector{p: vectorParams{W: x[:s.k:s.k], B: x[s.k:]}}
	return finish(s, c, 2*s.k-1)
}

// fitVector returns w and then b, from w = beta and b = 0.
func (s *sample) fitVector(beta float64) []float64 {
	k := s.k
	roots := s.vectorBlocks(beta)
	loss := s.vectorLoss()
	x, g := make([]float64, 2*k), make([]float64, 2*k)
	parameters := func(v []float64) { // x = start + L⁻ᵀ v, with mean b = 0, which softmax does not see
		var mean float64
		for j, l := range roots {
			x[k+j] = v[k+j] / l[2]
			x[j] = beta + (v[j]-l[1]*x[k+j])/l[0]
			mean += x[k+j] / float64(k)
		}
		for j := range k {
			x[k+j] -= mean
		}
	}
	v, n, ok := minimise(func(grad, v []float64) float64 {
		parameters(v)
		value := loss(g, x)
		var mean float64
		for _, d := range g[k:] {
			mean += d / float64(k)
		}
		for j, l := range roots {
			grad[j] = g[j] / l[0]
			grad[k+j] = (g[k+j] - mean - l[1]*grad[j]) / l[2]
		}
		return value
	}, make([]float64, 2*k))
	s.report.Iterations, s.report.Converged = n, ok
	parameters(v)
	return x
}

// vectorBlocks returns, by class, the factor L = (l_0, 0; l_1, l_2) of the block of the Hessian by w_k and b_k.
func (s *sample) vectorBlocks(beta float64) [][3]float64 {
	const floor = 1e-6 // for classes that have hardly any rows
	out := make([][3]float64, s.k)
	for j := range out {
		out[j] = [3]float64{floor, 0, floor}
	}
	p := make([]float64, s.k)
	for i := range s.n {
		row := s.row(i)
		softmax(p, row, 1/beta)
		for j, z := range row {
			h := s.w[i] / s.total * p[j] * (1 - p[j])
			out[j][0] += h * z * z
			out[j][1] += h * z
			out[j][2] += h
		}
	}
	for j, h := range out {
		root := math.Sqrt(h[0])
		out[j] = [3]float64{root, h[1] / root, math.Sqrt(max(floor/2, h[2]-h[1]/h[0]*h[1]))}
	}
	return out
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
