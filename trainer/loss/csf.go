package loss

import "math"

// Confidence score functions, all on [0, 1], higher = surer.
const (
	csfMSP    = "msp"    // max p
	csfMargin = "margin" // p₍₁₎ − p₍₂₎
	csfNegEnt = "negent" // 1 − H(p)/ln K
)

// score is the CSF of row i.
func (r *rows) score(csf string, i int) float64 {
	switch csf {
	case csfMargin:
		top := int(r.top[i])
		return r.prob(i)[top] - r.prob(i)[r.other(i, top)]
	case csfNegEnt:
		return min(1, max(0, 1-r.entropy(i)/math.Log(float64(r.k))))
	}
	return r.conf(i)
}

// rank orders rows as their CSF does, without the ties of sure rows, whose 1 − H/ln K rounds to 1.
func (r *rows) rank(csf string, i int) float64 {
	if csf == csfNegEnt {
		return -r.entropy(i)
	}
	return r.score(csf, i)
}

// addScore adds s times the gradient of the CSF of row i to g.
func (r *rows) addScore(csf string, g []float64, i int, s float64) {
	top := int(r.top[i])
	switch csf {
	case csfMargin:
		r.addProb(g, i, top, s)
		r.addProb(g, i, r.other(i, top), -s)
	case csfNegEnt:
		r.addEntropy(g, i, -s/math.Log(float64(r.k)))
	default:
		r.addProb(g, i, top, s)
	}
}
