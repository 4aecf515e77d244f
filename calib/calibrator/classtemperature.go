package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// ClassTemperature is class-based temperature scaling, p = softmax(u) with u_k = z_k/T_k and T_k in
// [MinTemperature, MaxTemperature]. Different T_k may change the argmax, and adding a constant to a row's logits
// changes p. Apply panics on a row of another K. Make it with FitClassTemperature.
//
// T_k belongs to column k of the logits, not to the rows that are predicted k: that is the form of "CTS" in the
// released code of Jung et al., which divides the logits by a vector of K temperatures. Frenkel and Goldberger, who
// named the method, search T_k class after class on a grid for the least ECE on held-out rows; here, as in the
// comparisons of Jung et al., all T_k are fitted at once by NLL, which is convex in 1/T_k and has one optimum.
// Reference: Frenkel and Goldberger, Network Calibration by Class-based Temperature Scaling, EUSIPCO 2021; Jung, Seo,
// Jeong, Choi, Scaling of Class-wise Training Losses for Post-hoc Calibration, ICML 2023.
type ClassTemperature struct{ p classTemperatureParams }

type classTemperatureParams struct {
	T []float64 `json:"temperatures"` // K
}

// Classes is K.
func (c *ClassTemperature) Classes() int { return len(c.p.T) }

// Temperatures returns a copy of the K temperatures.
func (c *ClassTemperature) Temperatures() []float64 { return append([]float64(nil), c.p.T...) }

// Apply implements Calibrator.
func (c *ClassTemperature) Apply(p, z []float64) {
	mustHave(c.Method(), len(c.p.T), len(z))
	p = p[:len(z)]
	for k, v := range z {
		p[k] = bounded(v) / c.p.T[k]
	}
	softmax(p, p, 1)
}

// Method implements Calibrator; it is "class_temperature".
func (*ClassTemperature) Method() string { return "class_temperature" }

func (c *ClassTemperature) params() any { return &c.p }

func (c *ClassTemperature) check() error {
	if len(c.p.T) < 2 {
		return fmt.Errorf("temperatures: %d, allowed are 2 and more", len(c.p.T))
	}
	return within("temperatures", c.p.T, MinTemperature, MaxTemperature)
}

// FitClassTemperature fits the T_k by mean NLL in nats, which is convex in v_k = 1/T_k,
//
//	∂L/∂v_k = 1/W Σ_i w_i (p_ik - 1[y_i = k]) z_ik
//
// from the single T of FitTemperature, by L-BFGS on x with ln v_k = lo + (hi - lo) σ(x_k), which holds the bounds;
// x is one-to-one with v, so a stationary point is the minimum. The report says when a T_k ends on a bound.
// Errors are those of FitTemperature, and logits beyond ±1e6 are an error.
func FitClassTemperature[T kernel.Float](d Data[T], opts Options) (*ClassTemperature, Report, error) {
	s, err := newSample("class_temperature", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	ts, _, err := s.temperatureStart()
	if err != nil {
		return nil, Report{}, err
	}
	x := make([]float64, s.k)
	// A start on a bound would have no slope in x.
	share := (math.Log(MaxTemperature) - math.Log(ts.T())) / (math.Log(MaxTemperature) - math.Log(MinTemperature))
	share = min(0.99, max(0.01, share))
	for j := range x {
		x[j] = math.Log(share / (1 - share))
	}
	x, s.report.Iterations, s.report.Converged = minimise(s.classTemperatureLoss(), x)
	c := &ClassTemperature{p: classTemperatureParams{T: make([]float64, s.k)}}
	const near = 1e-3 // of the bound, where the slope in x has vanished
	for j, v := range x {
		b, _ := betaOf(v)
		t := clampTemperature(1 / b)
		c.p.T[j] = t
		if t < MinTemperature*(1+near) || t > MaxTemperature*(1-near) {
			s.report.OnBound = true
			s.warn("temperature of class %d: %.4g, a bound", j, t)
		}
	}
	return finish(s, c, s.k)
}

// betaOf is 1/T at x and its derivative.
func betaOf(x float64) (b, slope float64) {
	lo, hi := -math.Log(MaxTemperature), -math.Log(MinTemperature)
	g := sigmoid(x)
	b = math.Exp(lo + (hi-lo)*g)
	return b, b * (hi - lo) * g * (1 - g)
}

// classTemperatureLoss is the objective in x.
func (s *sample) classTemperatureLoss() objective {
	k := s.k
	u, b, slope := make([]float64, k), make([]float64, k), make([]float64, k)
	return func(grad, x []float64) float64 {
		clear(grad)
		for j, v := range x {
			b[j], slope[j] = betaOf(v)
		}
		var sum float64
		for i, y := range s.y {
			row := s.row(i)
			for j, v := range row {
				u[j] = v * b[j]
			}
			sum += s.w[i] * nllGrad(u, y)
			for j, v := range row {
				grad[j] += s.w[i] / s.total * u[j] * v
			}
		}
		for j := range grad {
			grad[j] *= slope[j]
		}
		return sum / s.total
	}
}
