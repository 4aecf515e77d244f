package acc

import "math"

// Bounds of the temperatures that Fit returns, those of calibrator.FitTemperature.
const minFitT, maxFitT = 0.05, 20.0

// fitHalvings ends Fit's bisection: a bracket of ln 1.4 shrinks below 1e-15.
const fitHalvings = 50

// Fit returns the temperature T in [0.05, 20] that minimises the mean NLL, and that NLL in nats. L is convex in
// β = 1/T, so the sign of the summed slopes brackets the minimum between two neighbouring points; inside, L is
// the polynomial in ln β that agrees with value and slope of the six nearest points (Hermite, degree 11), and the
// minimum is the root of its derivative.
//
// onBound says that the NLL still falls where T leaves the range, as of rows that are all right (T = 0.05) or no
// better than chance (T = 20). Slopes that are 0 at all points, after rounding to 2^-32, give T = 1 where the NLL is
// not 0 (rows of equal scores), else T = 0.05 on the bound. Without weight T and nll are NaN.
//
// On the logits of 21 CIFAR networks T is within 1e-5 and the NLL within 1e-6 of the fit on the rows, the error of
// interpolation; rounding to 2^-32 adds 1.2e-10 to the NLL.
func (c *TemperatureCurve) Fit() (t, nll float64, onBound bool) {
	if c.w == 0 {
		return math.NaN(), math.NaN(), false
	}
	const last = CurvePoints - 1
	if c.flat() {
		return 1, c.NLL(1), false
	}
	if c.slope(last) <= 0 {
		return minFitT, c.NLL(minFitT), true
	}
	if c.slope(0) >= 0 {
		return maxFitT, c.NLL(maxFitT), true
	}
	i := 0
	for c.slope(i+1) < 0 {
		i++
	}
	p := c.piece(i)
	lo, hi := math.Log(curveBetas[i]), math.Log(curveBetas[i+1])
	for range fitHalvings {
		mid := lo + (hi-lo)/2
		if _, d := p.at(mid); d < 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	t = math.Exp(-lo)
	onBound = t < minFitT || t > maxFitT
	t = min(max(t, minFitT), maxFitT)
	return t, c.NLL(t), onBound
}

// NLL returns the mean NLL in nats at temperature t, interpolated as by Fit and kept between what convexity allows:
// the tangents of the two points next to it, and their chord. NaN without weight or outside [0.05, 20].
func (c *TemperatureCurve) NLL(t float64) float64 {
	if c.w == 0 || !(t >= minFitT && t <= maxFitT) {
		return math.NaN()
	}
	beta, i := 1/t, 0
	for i < CurvePoints-2 && curveBetas[i+1] <= beta {
		i++
	}
	v, _ := c.piece(i).at(math.Log(beta))
	b0, b1, l0, l1 := curveBetas[i], curveBetas[i+1], c.nll(i), c.nll(i+1)
	floor := max(l0+(beta-b0)*c.slope(i), l1+(beta-b1)*c.slope(i+1), 0)
	chord := l0 + (l1-l0)*(beta-b0)/(b1-b0)
	return min(max(v, floor), max(chord, floor))
}

// flat reports that no temperature changes an NLL that is not 0.
func (c *TemperatureCurve) flat() bool {
	for j := range c.sums {
		if c.sums[j].slope != (i128{}) {
			return false
		}
	}
	return c.sums[0].nll != i128{}
}

func (c *TemperatureCurve) nll(j int) float64   { return c.sums[j].nll.value() / unfix(c.w) }
func (c *TemperatureCurve) slope(j int) float64 { return c.sums[j].slope.value() / unfix(c.w) }

// hermiteNodes is the number of points that an interpolating piece agrees with.
const hermiteNodes = 6

// hermite is a polynomial in Newton's form with every node twice, c_0 + (u-x_0)(c_1 + (u-x_0)(c_2 + (u-x_1)(…))).
type hermite struct{ x, c [2 * hermiteNodes]float64 }

// piece returns the interpolant in u = ln β between points i and i+1, from confluent divided differences with
// dL/du = β dL/dβ.
func (c *TemperatureCurve) piece(i int) hermite {
	first := min(max(i+1-hermiteNodes/2, 0), CurvePoints-hermiteNodes)
	var h hermite
	var slopes [2 * hermiteNodes]float64
	for k := range h.x {
		j := first + k/2
		h.x[k], h.c[k], slopes[k] = math.Log(curveBetas[j]), c.nll(j), curveBetas[j]*c.slope(j)
	}
	for order := 1; order < len(h.c); order++ {
		for k := len(h.c) - 1; k >= order; k-- {
			if order == 1 && k%2 == 1 {
				h.c[k] = slopes[k]
				continue
			}
			h.c[k] = (h.c[k] - h.c[k-1]) / (h.x[k] - h.x[k-order])
		}
	}
	return h
}

// at returns the value and the derivative at u.
func (h hermite) at(u float64) (v, d float64) {
	for k := len(h.c) - 1; k >= 0; k-- {
		d = d*(u-h.x[k]) + v
		v = v*(u-h.x[k]) + h.c[k]
	}
	return v, d
}
