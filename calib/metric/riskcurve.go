package metric

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// RiskPoint is a point of the risk-coverage curve: of the rows with a score of Threshold or more, W their weight,
// Coverage their share of all weight, and Risk the share of wrong ones among them.
type RiskPoint struct {
	Threshold float64 `json:"threshold"`
	Coverage  float64 `json:"coverage"`
	Risk      float64 `json:"risk"`
	W         float64 `json:"w"`
}

// RiskCoverage returns the risk-coverage curve of the 0/1 loss: one point for each distinct score, from the highest
// score and least coverage down to coverage 1. Rows of equal score are accepted together. Empty without rows.
// Reference: El-Yaniv and Wiener, On the Foundations of Noise-free Selective Classification, JMLR 11 (2010).
func RiskCoverage(s Sorted) []RiskPoint {
	var curve riskCurve
	for j := len(s.C); j > 0; {
		i := j - 1
		for i > 0 && s.C[i-1] == s.C[j-1] {
			i--
		}
		right, wrong := s.weigh(i, j)
		curve.add(s.C[i], right, wrong)
		j = i
	}
	return curve.done()
}

type riskCurve struct {
	points   []RiskPoint
	w, wrong float64
}

func (r *riskCurve) add(score, right, wrong float64) {
	if !(right+wrong > 0) {
		return
	}
	r.w += right + wrong
	r.wrong += wrong
	r.points = append(r.points, RiskPoint{Threshold: score, Risk: r.wrong / r.w, W: r.w})
}

func (r *riskCurve) done() []RiskPoint {
	for i := range r.points {
		r.points[i].Coverage = r.points[i].W / r.w
	}
	return r.points
}

// RiskArea returns the AURC of a risk-coverage curve, the mean over the accepted weight u = 1..W of the risk at u,
// where the g rows of a point enter one by one with the point's own share of wrong ones:
//
//	1/W Σ_points Σ_{i=1..g} (e + i·r)/(u + i) = 1/W Σ_points [g·r + (e - u·r)·(H_{u+g} - H_u)]
//
// with u, e the weight and the wrong weight accepted before, r the share of wrong ones in the point. NaN where the
// curve is empty.
func RiskArea(curve []RiskPoint) float64 {
	var area, u, e float64
	for _, p := range curve {
		g, wrong := p.W-u, p.Risk*p.W-e
		if !(g > 0) {
			continue
		}
		r := wrong / g
		area += wrong
		if d := e - u*r; d != 0 {
			area += d * harmonic(u, g)
		}
		u, e = p.W, p.Risk*p.W
	}
	return area / u
}

// harmonic returns H_{u+g} - H_u = Σ_{i=1..g} 1/(u + i) for u, g ≥ 0, continued to any real g by the digamma function.
func harmonic(u, g float64) float64 {
	const direct = 64 // up to which the terms themselves are summed: two digammas of large u cancel
	if g <= direct && g == math.Floor(g) {
		var sum float64
		for i := g; i >= 1; i-- {
			sum += 1 / (u + i)
		}
		return sum
	}
	return mathext.Digamma(u+g+1) - mathext.Digamma(u+1)
}
