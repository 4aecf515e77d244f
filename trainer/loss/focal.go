package loss

import "math"

// focal is (1 − p_y)^γ·(−ln p_y), with the gradient through the weight.
// Reference: Lin et al., Focal Loss for Dense Object Detection, ICCV 2017.
type focal struct{ gamma float64 }

func (f focal) row(r *rows, i int, w float64, g []float64) float64 {
	return power{f.gamma, r.not(i, int(r.y[i])), -1}.row(r, i, w, g)
}

// flsd53 is focal loss whose γ depends on the row: 5 where p_y < 0.2, else 3; γ is a constant for the gradient.
// Reference: Mukhoti et al., Calibrating Deep Neural Networks using Focal Loss, NeurIPS 2020.
type flsd53 struct{}

func (flsd53) row(r *rows, i int, w float64, g []float64) float64 {
	gamma := 3.0
	if r.prob(i)[r.y[i]] < 0.2 {
		gamma = 5
	}
	return power{gamma, r.not(i, int(r.y[i])), -1}.row(r, i, w, g)
}

// inverseFocal is (1 + p_y)^γ·(−ln p_y).
// Reference: Zhou et al., Revisiting Reweighted Risk for Calibration (whose C.2 has a sign error).
type inverseFocal struct{ gamma float64 }

// inverseGamma is the largest γ for which inverse focal loss falls in p_y everywhere: min (1+p)/(−p ln p), at the
// root of ln p + 1 + p = 0, which is 1/p there.
const inverseGamma = 3.5911214766686225

func (f inverseFocal) row(r *rows, i int, w float64, g []float64) float64 {
	return power{f.gamma, 1 + r.prob(i)[r.y[i]], 1}.row(r, i, w, g)
}

// power is base^γ·(−ln p_y) for a base whose gradient is sign·∂p_y/∂z.
type power struct{ gamma, base, sign float64 }

func (p power) row(r *rows, i int, w float64, g []float64) float64 {
	nll, weight := r.nll(i), math.Pow(p.base, p.gamma)
	if g != nil {
		r.addNLL(g, i, w*weight)
		r.addProb(g, i, int(r.y[i]), w*p.sign*nll*powerSlope(p.base, p.gamma))
	}
	return weight * nll
}

// powerSlope is γ·base^(γ−1), 0 at base 0, where −ln p_y is 0 too.
func powerSlope(base, gamma float64) float64 {
	if base == 0 || gamma == 0 {
		return 0
	}
	return gamma * math.Pow(base, gamma-1)
}

// Variants of the dual focal loss: which p_j it adds.
const (
	dualEq24     = "eq24"     // the largest of the other classes
	dualReleased = "released" // the largest p strictly below p_y, 0 where there is none
	dualEq2526   = "eq25_26"  // the largest of the other classes, but 0 where p_y < max p
)

// dualFocal is (1 − p_y + p_j)^γ·(−ln p_y), the gradient through p_y and p_j.
// Reference: Tao et al., Dual Focal Loss for Calibration, ICML 2023; Zhou et al., Eq. 24 (eq24) and 25-26 (eq25_26).
type dualFocal struct {
	gamma   float64
	variant string
}

func (f dualFocal) row(r *rows, i int, w float64, g []float64) float64 {
	p, y := r.prob(i), int(r.y[i])
	j, pj := f.rival(r, i, y), 0.0
	if j >= 0 {
		pj = p[j]
	}
	base := r.not(i, y) + pj
	nll, weight := r.nll(i), math.Pow(base, f.gamma)
	if g != nil {
		s := w * nll * powerSlope(base, f.gamma)
		r.addNLL(g, i, w*weight)
		r.addProb(g, i, y, -s)
		if j >= 0 {
			r.addProb(g, i, j, s)
		}
	}
	return weight * nll
}

// rival is j, or -1 where p_j is 0.
func (f dualFocal) rival(r *rows, i, y int) int {
	d := r.diff(i)
	switch f.variant {
	case dualReleased:
		best := -1
		for k, v := range d {
			if v < d[y] && (best < 0 || v > d[best]) {
				best = k
			}
		}
		return best
	case dualEq2526:
		if d[y] < 0 {
			return -1
		}
	}
	return r.other(i, y)
}
