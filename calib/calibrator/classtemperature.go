package calibrator

import (
	"fmt"

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
// from the single T of FitTemperature, by quasi-Newton steps, cut off at the bounds. The report says when a T_k ends
// on a bound.
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
	f := classAffine{sample: s, low: 1 / MaxTemperature, high: 1 / MinTemperature}
	x := f.fit(1 / ts.T())
	c := &ClassTemperature{p: classTemperatureParams{T: make([]float64, s.k)}}
	for j, v := range x[:s.k] {
		c.p.T[j] = clampTemperature(1 / v)
		if v == f.low || v == f.high {
			s.report.OnBound = true
			s.warn("temperature of class %d: %.4g, a bound", j, c.p.T[j])
		}
	}
	return finish(s, c, s.k)
}
