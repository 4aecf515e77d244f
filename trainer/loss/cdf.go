package loss

import "math"

// binnedCDF is Ĝ_ν, the smoothed CDF of scores on [0, 1] from their counts in equal bins:
//
//	Ĝ_ν(g) = 1/n Σ_k h_k σ((g − c_k)/ν),  c_k = (k + ½)/K_bins,  n = Σ_k h_k
//
// clamped to [1/(n+1), n/(n+1)], so that ln(1 − Ĝ) is finite; the paper has no clamp. The counts are constants for the
// gradient. Reference: Zhou et al., Revisiting Reweighted Risk for Calibration.
type binnedCDF struct {
	nu     float64
	bins   int
	n      float64
	counts []float64 // of the bins that are not empty
	shift  []float64 // c_k/ν of those
}

// ofScores counts the scores in [e_k, e_{k+1}), the last bin closed, e_k = float64(k)/float64(bins).
func (c *binnedCDF) ofScores(scores, scratch []float64) {
	clear(scratch)
	for _, g := range scores {
		scratch[binOf(g, len(scratch))]++
	}
	c.ofCounts(scratch)
}

// binOf is the bin of a score, of n equal ones on [0, 1].
func binOf(g float64, n int) int {
	top, bins := n-1, float64(n)
	k := min(max(int(g*bins), 0), top)
	// g·bins is rounded, so that the guess may be one off on either side of an edge.
	for k > 0 && g < float64(k)/bins {
		k--
	}
	for k < top && g >= float64(k+1)/bins {
		k++
	}
	return k
}

func (c *binnedCDF) ofCounts(h []float64) {
	c.n, c.counts, c.shift = 0, c.counts[:0], c.shift[:0]
	for k, v := range h {
		if v > 0 {
			c.n += v
			c.counts = append(c.counts, v)
			c.shift = append(c.shift, (float64(k)+0.5)/float64(len(h))/c.nu)
		}
	}
}

// at returns Ĝ_ν(g) and its slope, which is 0 where the clamp holds.
func (c *binnedCDF) at(g float64) (value, slope float64) {
	x := g / c.nu
	for k, h := range c.counts {
		s := 1 / (1 + math.Exp(c.shift[k]-x))
		value += h * s
		slope += h * s * (1 - s)
	}
	value /= c.n
	switch lo, hi := 1/(c.n+1), c.n/(c.n+1); {
	case value < lo:
		return lo, 0
	case value > hi:
		return hi, 0
	}
	return value, slope / c.n / c.nu
}
