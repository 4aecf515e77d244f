package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Ensemble is ensemble temperature scaling, a mixture of probabilities with weights on the simplex,
//
//	p = w_1 softmax(z/T) + w_2 softmax(z) + w_3/K,  w ≥ 0, Σw = 1
//
// which keeps the argmax (where w_3 = 1 all classes tie). Make it with FitEnsemble.
// Reference: Zhang, Kailkhura, Han, Mix-n-Match, ICML 2020.
type Ensemble struct{ p ensembleParams }

type ensembleParams struct {
	T       float64   `json:"temperature"`
	Weights []float64 `json:"weights"` // 3
}

// sumTolerance is how far from 1 the weights may sum: rounding of three.
const sumTolerance = 1e-12

// T returns the temperature of the first part.
func (c *Ensemble) T() float64 { return c.p.T }

// Weights returns w_1, w_2, w_3.
func (c *Ensemble) Weights() [3]float64 { return [3]float64(c.p.Weights) }

// Apply implements Calibrator.
func (c *Ensemble) Apply(p, z []float64) { c.applyScratch(p, z, make([]float64, len(z))) }

func (*Ensemble) scratch(k int) int { return k }

func (c *Ensemble) applyScratch(p, z, q []float64) {
	p = p[:len(z)]
	softmax(q, z, c.p.T)
	softmax(p, z, 1)
	w := c.p.Weights
	for k := range p {
		p[k] = w[0]*q[k] + w[1]*p[k] + w[2]/float64(len(z))
	}
}

// Method implements Calibrator; it is "ensemble_temperature".
func (*Ensemble) Method() string { return "ensemble_temperature" }

func (c *Ensemble) params() any { return &c.p }

func (c *Ensemble) check() error {
	if _, err := NewTemperature(c.p.T); err != nil {
		return err
	}
	w := c.p.Weights
	if len(w) != 3 || math.Abs(w[0]+w[1]+w[2]-1) > sumTolerance {
		return fmt.Errorf("weights: %v, allowed are 3 that sum to 1", w)
	}
	return within("weights", w, 0, 1)
}

// FitEnsemble takes T from FitTemperature and fits the weights by mean NLL of the mixture, which is convex in them:
// L-BFGS on w = softmax(v), then steps of expectation–maximisation. With g_j = Σ_i ω_i q_ij/(q_i·w) / Σω for the parts'
// probabilities q_i of the label, max_j g_j - 1 bounds how far the NLL is above the minimum; converged means a bound ≤
// 1e-6. Errors are those of FitTemperature.
func FitEnsemble[T kernel.Float](d Data[T], opts Options) (*Ensemble, Report, error) {
	s, err := newSample("ensemble_temperature", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	ts, tr, err := FitTemperature(s.data(), Options{})
	if err != nil {
		return nil, Report{}, err
	}
	if tr.OnBound {
		s.warn("temperature %g, a bound", ts.T())
	}
	s.report.OnBound, s.report.Flat = tr.OnBound, tr.Flat
	q := s.parts(ts)
	v, n, _ := minimise(s.mixtureLoss(q), []float64{0, 0, 0})
	mix := make([]float64, 3)
	softmax(mix, v, 1)
	s.report.Iterations = n + s.polish(q, mix)
	s.report.Converged = s.mixtureGap(q, mix, make([]float64, 3)) <= gapEnds
	total := mix[0] + mix[1] + mix[2]
	for j := range mix {
		mix[j] /= total
	}
	c := &Ensemble{p: ensembleParams{T: ts.T(), Weights: mix}}
	return finish(s, c, 3)
}

const (
	gapEnds    = 1e-6 // nats
	maxEMSteps = 500
)

// parts returns, per row, the label's probability in each part (n×3).
func (s *sample) parts(ts Temperature) []float64 {
	q := make([]float64, 0, 3*s.n)
	p := make([]float64, s.k)
	for i, y := range s.y {
		ts.Apply(p, s.row(i))
		a := p[y]
		softmax(p, s.row(i), 1)
		q = append(q, a, p[y], 1/float64(s.k))
	}
	return q
}

// mixtureLoss is the mean NLL in v with w = softmax(v).
func (s *sample) mixtureLoss(q []float64) objective {
	w, g := make([]float64, 3), make([]float64, 3)
	return func(grad, v []float64) float64 {
		softmax(w, v, 1)
		s.mixtureGap(q, w, g)
		var sum float64
		for i := range s.y {
			sum -= s.w[i] * math.Log(mixed(q[3*i:], w))
		}
		for j := range grad { // ∂L/∂w_j = -g_j and Σ w_j g_j = 1
			grad[j] = w[j] * (1 - g[j])
		}
		return sum / s.total
	}
}

// mixed is q·w, never 0.
func mixed(q, w []float64) float64 {
	return max(q[0]*w[0]+q[1]*w[1]+q[2]*w[2], math.SmallestNonzeroFloat64)
}

// mixtureGap writes g and returns max g - 1, the bound of the distance to the minimum.
func (s *sample) mixtureGap(q, w, g []float64) float64 {
	clear(g)
	for i := range s.y {
		d := s.w[i] / (s.total * mixed(q[3*i:], w))
		for j := range g {
			g[j] += d * q[3*i+j]
		}
	}
	return max(g[0], g[1], g[2]) - 1
}

// polish runs w_j ← w_j g_j until the gap is small, and returns the steps.
func (s *sample) polish(q, w []float64) int {
	g := make([]float64, 3)
	for n := range maxEMSteps {
		if s.mixtureGap(q, w, g) <= gapEnds {
			return n
		}
		for j := range w {
			w[j] *= g[j]
		}
	}
	return maxEMSteps
}
