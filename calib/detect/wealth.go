package detect

import "math"

// wealth is R of an expert: R itself where it is not negative, and -log R where R is above e^wealthTop, which float64
// may not hold.
type wealth float64

// wealthTop leaves room for the product with the e-value of a pane and for the sum over experts.
const wealthTop = 300

// bet returns (R + inject)·e^l; product is e^l, which may be 0 or infinite where l is far from 0.
func (w wealth) bet(inject, product, l float64) wealth {
	if w >= 0 && l < wealthTop {
		if r := (float64(w) + inject) * product; r < 1e130 { // e^300 = 1.9e130
			return wealth(r)
		}
	}
	x := w.log()
	if w >= 0 {
		x = math.Log(float64(w) + inject)
	} // else inject is less than e^-300 of R
	if x += l; x > wealthTop {
		return wealth(-x)
	}
	return wealth(math.Exp(x))
}

// log returns log R, -Inf for 0.
func (w wealth) log() float64 {
	if w < 0 {
		return -float64(w)
	}
	return math.Log(float64(w))
}

// valid reports whether bet can have returned w.
func (w wealth) valid() bool {
	return w >= 0 && w < 1e131 && !math.Signbit(float64(w)) || w < -wealthTop && w > -largest
}
