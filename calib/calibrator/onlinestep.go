package calibrator

import "math"

// step is the online Newton step on a row of log-odds l, r = p - y and weight w. With w = 1 every product by it is
// exact, so the step is that without weights bit for bit.
func (o *OnlinePlatt) step(l, r, w float64) {
	g0, g1 := r*l, r
	if m := o.set.Memory; m > 0 {
		f := min(w, m)
		o.a[0] += f * (o.set.Rho - o.a[0]) / m
		o.a[1] -= f * o.a[1] / m
		o.a[2] += f * (o.set.Rho - o.a[2]) / m
	}
	w0, w1 := w*g0, w*g1
	o.a[0] += w0 * g0
	o.a[1] += w0 * g1
	o.a[2] += w1 * g1
	d0, d1 := solve2(o.a, 0, w0, w1)
	o.theta[0] -= d0 / o.set.Gamma
	o.theta[1] -= d1 / o.set.Gamma
	if math.Hypot(o.theta[0], o.theta[1]) > o.set.Radius {
		o.project()
	}
}

// solve2 solves (A + λI) x = v for a symmetric positive definite A.
func solve2(a [3]float64, lambda, v0, v1 float64) (x0, x1 float64) {
	p, q, s := a[0]+lambda, a[1], a[2]+lambda
	// Cholesky's decomposition keeps its precision where the determinant would not.
	l10 := q / p
	rest := s - l10*q
	x1 = (v1 - l10*v0) / rest
	return (v0 - q*x1) / p, x1
}

// projectionSteps halve the interval of λ down to rounding.
const projectionSteps = 100

// project moves θ to the point of the ball with the least distance in the norm of A: (A + λI)⁻¹ A θ with the λ > 0
// that puts it on the sphere, whose distance from the centre falls with λ.
func (o *OnlinePlatt) project() {
	v0 := o.a[0]*o.theta[0] + o.a[1]*o.theta[1]
	v1 := o.a[1]*o.theta[0] + o.a[2]*o.theta[1]
	at := func(lambda float64) (x0, x1, size float64) {
		x0, x1 = solve2(o.a, lambda, v0, v1)
		return x0, x1, math.Hypot(x0, x1)
	}
	lo, hi := 0.0, math.Hypot(v0, v1)/o.set.Radius // (A + λI)⁻¹ is below 1/λ
	for range projectionSteps {
		mid := lo + (hi-lo)/2
		if _, _, size := at(mid); size > o.set.Radius {
			lo = mid
		} else {
			hi = mid
		}
	}
	o.theta[0], o.theta[1], _ = at(hi)
}

// hedged is the bin that Foster's forecaster chooses in bin j of Platt's forecast p: the nearest to p of the bins whose
// mean outcome lies inside. If there is none, it draws one of two neighbours, the lower with a mean outcome above
// itself and the upper with one below, and favours the one that is less off.
func (o *OnlinePlatt) hedged(j int, p float64) int {
	m := o.set.Bins
	width := 1 / float64(m)
	row := o.hedge[j*m : (j+1)*m]
	best, least := -1, math.Inf(1)
	for b, t := range row {
		lo := float64(b) * width
		mean := t.mean(o.middle(b))
		if mean >= lo && mean <= lo+width {
			if d := math.Abs(o.middle(b) - p); d < least {
				best, least = b, d
			}
		}
	}
	if best >= 0 {
		return best
	}
	for b := range m - 1 {
		above := row[b].mean(o.middle(b)) - float64(b+1)*width     // > 0 in bin 0, whose mean cannot be below it
		below := float64(b+1)*width - row[b+1].mean(o.middle(b+1)) // > 0 in the last bin
		if above > 0 && below > 0 {
			if o.uniform()*(above+below) < below {
				return b
			}
			return b + 1
		}
	}
	return m - 1 // not reached: the sign changes between the first bin and the last
}

// uniform is a number in [0, 1) for this row: a hash of the seed and the rows so far (splitmix64).
func (o *OnlinePlatt) uniform() float64 {
	x := o.set.Seed + (o.rows+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) * 0x1p-53
}
