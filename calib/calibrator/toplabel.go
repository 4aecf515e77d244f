package calibrator

import (
	"math"

	"github.com/plumbline/plumbline/internal/vexp"
)

// Scalar maps the top confidence of a row to a recalibrated one. FitMethod.TopLabel says which methods are Scalars.
//
// Their Apply makes a K-class vector of it, with ŷ = argmax z (ties: lowest index), c = softmax(z)_ŷ:
//
//	p_ŷ = c' = Map(c),  p_k = (1 - c') softmax(z)_k / (1 - c) for k ≠ ŷ
//
// so the other classes keep their ranking and their ratios, and are computed from logits, as exact for c = 1 as
// elsewhere. A class with p_k > c', possible where c' < 1/2, becomes the argmax: c' remains the estimate that ŷ
// is right, and a caller who must keep the decision reads ŷ from z. With K = 1, p = 1.
type Scalar interface {
	Calibrator
	// Map returns the recalibrated confidence in [0, 1] of c in [0, 1]; NaN gives NaN.
	Map(c float64) float64
}

// applyTop is Apply of a Scalar.
func applyTop(s Scalar, p, z []float64) {
	p = p[:len(z)]
	if len(z) < 2 {
		softmax(p, z, 1)
		return
	}
	a, top, second := 0, z[0], math.Inf(-1)
	bad := math.IsNaN(top)
	for k, v := range z[1:] {
		switch {
		case v > top:
			a, top, second = k+1, v, top
		case v > second:
			second = v
		case math.IsNaN(v):
			bad = true
		}
	}
	if bad || math.IsInf(top, 0) {
		fill(p, math.NaN())
		return
	}
	// The others relative to the largest of them, so that they keep their ratios where c is 1 to the last bit.
	rest, gap := 0.0, [1]float64{second}
	if vexp.Shifted(gap[:], gap[:], top); math.IsInf(second, -1) {
		fill(p, 1) // no ranking to keep: equal shares
	} else {
		vexp.Shifted(p, z, second)
	}
	p[a] = 0
	for _, x := range p {
		rest += x
	}
	c := s.Map(1 / (1 + float64(rest*gap[0])))
	for k := range p {
		p[k] *= (1 - c) / rest
	}
	p[a] = c
}

// Bounded returns the calibrator with probabilities of the top class in [eps, 1 - eps], 0 ≤ eps ≤ 1/2. The values of
// Isotonic, Histogram and Spline are rates of few rows: where all of these were right or all wrong they are 1 or 0, and
// one row that is not costs more than the others gain. Other methods are returned as they are.
func Bounded(c Calibrator, eps float64) Calibrator {
	bounded := func(v []float64) []float64 {
		out := make([]float64, len(v))
		for i, x := range v {
			out[i] = max(eps, min(1-eps, x))
		}
		return out
	}
	switch c := c.(type) {
	case *Isotonic:
		return &Isotonic{isotonicParams{c.p.X, bounded(c.p.V)}}
	case *Histogram:
		return &Histogram{binParams{c.p.Edges, bounded(c.p.Values)}}
	case *Spline:
		return &Spline{splineParams{c.p.C, bounded(c.p.V)}}
	}
	return c
}

func fill(p []float64, v float64) {
	for k := range p {
		p[k] = v
	}
}

// logOdds is ln c/(1-c), with c kept an ulp off 0 and 1.
func logOdds(c float64) float64 { return lnC(c) - lnC(1-c) }

// lnC is ln c with c kept at 2⁻⁵³ at least, the distance of 1 from the float64 below it.
func lnC(c float64) float64 { return math.Log(max(c, 0x1p-53)) }

func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}
