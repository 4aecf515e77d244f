package metric

import "math"

// BinIndex returns the index of c among the m bins (i/m, (i+1)/m], edges being float64(i)/float64(m) exactly.
// c ≤ 0 gives 0 and c > 1 gives m-1. It panics if m < 1.
func BinIndex(c float64, m int) int {
	if m < 1 {
		panic("metric: fewer than one bin")
	}
	fm := float64(m)
	x := c * fm
	i := min(max(int(x), 0), m-1)
	// x is off by less than 2^-36 for these m, so away from the integers its floor is right.
	const near, most = 1e-9, 1 << 16
	if f := x - float64(i); f > near && f < 1-near && m <= most {
		return i
	}
	// x is rounded, so that the guess may be one off on either side of an edge.
	for i > 0 && c <= float64(i)/fm {
		i--
	}
	for i < m-1 && c > float64(i+1)/fm {
		i++
	}
	return i
}

// EqualWidth sums n rows into the m bins (i/m, (i+1)/m]; a confidence of 0 (which no top label has) counts in
// the first. c are confidences in [0,1], a says which predictions are right, w are weights ≥ 0, or nil for 1.
// It panics if the lengths differ or m < 1. Code with bins [i/m, (i+1)/m) gives the confidence 1 a bin of its own.
// Reference: Guo et al., On Calibration of Modern Neural Networks, ICML 2017.
func EqualWidth(c []float64, a []bool, w []float64, m int) []Bin {
	checkLengths(c, a, w)
	bins := make([]Bin, m)
	for i, ci := range c {
		bins[BinIndex(ci, m)].add(ci, a[i], weight(w, i))
	}
	return bins
}

// ECE returns the expected calibration error of the bins:
//
//	ECE = Σ_b W_b/W · |acc_b - conf_b| = Σ_b |SumA_b - SumC_b| / W
//
// in [0,1]; NaN where W = Σ W_b = 0. With bins of EqualMass it is the adaptive calibration error.
// Reference: Guo et al., On Calibration of Modern Neural Networks, ICML 2017.
func ECE(bins []Bin) float64 {
	var gap float64
	for _, b := range bins {
		gap += math.Abs(b.SumA - b.SumC)
	}
	return gap / Total(bins)
}

// ECEL2 returns the root mean square calibration error of the bins:
//
//	sqrt(Σ_b W_b/W · (acc_b - conf_b)²)
//
// in [0,1], never below ECE; NaN where there is no row.
func ECEL2(bins []Bin) float64 {
	var sum float64
	for _, b := range bins {
		if b.W > 0 {
			d := b.SumA - b.SumC
			sum += d * d / b.W
		}
	}
	return math.Sqrt(sum / Total(bins))
}

// MCE returns the maximum calibration error, max |acc_b - conf_b| over the bins with W_b > 0; NaN where
// there is none. A bin of a few rows can decide it: read it beside the counts.
func MCE(bins []Bin) float64 {
	mce := math.NaN()
	for _, b := range bins {
		if b.W > 0 {
			if gap := math.Abs(b.SumA-b.SumC) / b.W; !(gap <= mce) {
				mce = gap
			}
		}
	}
	return mce
}
