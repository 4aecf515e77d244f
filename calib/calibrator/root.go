package calibrator

import "math"

// valued is an argument and the value there.
type valued struct{ u, f float64 }

// root narrows the bracket of a root of f between two ends, whose values have opposite signs or are 0, to the given
// width, and returns the end where |f| is least and the evaluations. Chandrupatla's method: inverse
// quadratic interpolation where the three last points allow it, bisection elsewhere.
// Reference: Chandrupatla, A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
// without using derivatives, Advances in Engineering Software 28, 1997.
func root(f func(u float64) float64, from, to valued, width float64) (u float64, evaluations int) {
	a, b, fa, fb := from.u, to.u, from.f, to.f
	c, fc := a, fa
	share := 0.5
	for n := 0; n < maxIterations; n++ {
		x, fx := a, fa
		if math.Abs(fb) < math.Abs(fa) {
			x, fx = b, fb
		}
		gap := math.Abs(b - a)
		if fx == 0 || gap <= width {
			return x, n
		}
		// A step shorter than half the width would end next to an end, on its own side of the root.
		least := min(0.5, width/2/gap)
		t := a + min(1-least, max(least, share))*(b-a)
		ft := f(t)
		if (ft > 0) == (fa > 0) {
			c, fc = a, fa
		} else {
			c, b, fc, fb = b, a, fb, fa
		}
		a, fa = t, ft
		evaluations = n + 1
		share = 0.5
		xi, phi := (a-b)/(c-b), (fa-fb)/(fc-fb)
		if phi*phi < xi && (1-phi)*(1-phi) < 1-xi {
			share = fa/(fb-fa)*fc/(fb-fc) + (c-a)/(b-a)*fa/(fc-fa)*fb/(fc-fb)
		}
	}
	if math.Abs(fb) < math.Abs(fa) {
		return b, evaluations
	}
	return a, evaluations
}
