package metric

import (
	"math"
)

// ReliabilityBin is one bin (Lo, Hi] of a reliability diagram: the mean confidence, the accuracy and the 95 %
// interval of the accuracy. Conf and Acc are NaN, and the interval is [0,1], in an empty bin.
type ReliabilityBin struct {
	Lo, Hi       float64
	N            int64
	W            float64
	Conf, Acc    float64
	AccLo, AccHi float64
}

// ProportionInterval is a 95 % interval of a proportion of hits out of n rows, such as Wilson.
type ProportionInterval func(hits, n float64) (lo, hi float64)

// Reliability returns the reliability diagram of the M equal-width bins, those of EqualWidth, of one class of
// ClassWise, or of a stream's grid. Weighted bins have the interval of Kish's effective number of rows.
func Reliability(bins []Bin, interval ProportionInterval) []ReliabilityBin {
	out := make([]ReliabilityBin, len(bins))
	for i, b := range bins {
		r := ReliabilityBin{
			Lo: float64(i) / float64(len(bins)), Hi: float64(i+1) / float64(len(bins)),
			N: b.N, W: b.W, Conf: b.Conf(), Acc: b.Acc(), AccHi: 1,
		}
		if b.W > 0 {
			n := b.EffectiveN()
			r.AccLo, r.AccHi = interval(b.SumA*(n/b.W), n)
		}
		out[i] = r
	}
	return out
}

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
