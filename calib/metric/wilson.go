package metric

import "math"

// z975 is the 97.5 % quantile of the standard normal distribution.
const z975 = 1.959963984540054

// Wilson returns the 95 % Wilson score interval of a proportion of hits out of n rows:
//
//	(p̂ + z²/2n ± z sqrt(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n)
//
// cut to [0,1]; (0, 1) where n ≤ 0. hits and n may be sums of weights.
// Reference: Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
func Wilson(hits, n float64) (lo, hi float64) {
	if !(n > 0) {
		return 0, 1
	}
	p := hits / n
	z2n := z975 * z975 / n
	mid := p + z2n/2
	half := z975 * math.Sqrt(max(0, p*(1-p)/n+z2n/(4*n)))
	lo, hi = max(0, (mid-half)/(1+z2n)), min(1, (mid+half)/(1+z2n))
	// At p̂ = 0 and 1 the bound is p̂ itself, up to rounding.
	return min(lo, p), max(hi, p)
}
