package metric

import "math"

// EqualMass groups the rows, in ascending order, into m bins whose sizes differ by at most one, the larger
// ones first (as numpy.array_split does). Rows of equal confidence may fall into different bins, by their
// order in the input. Where n < m the last m-n bins are empty. It panics if m < 1.
//
// ECE and ECEL2 of these bins are the adaptive calibration error, in L1 and in L2.
// Reference: Nixon et al., Measuring Calibration in Deep Learning, CVPR Workshops 2019.
func EqualMass(s Sorted, m int) []Bin {
	if m < 1 {
		panic("metric: fewer than one bin")
	}
	n := len(s.C)
	bins := make([]Bin, m)
	i := 0
	for b := range bins {
		size := n / m
		if b < n%m {
			size++
		}
		for ; size > 0; size-- {
			bins[b].add(s.C[i], s.A[i], 1)
			i++
		}
	}
	return bins
}

// DebiasedL2 returns the root of the debiased squared calibration error of (equal-mass) bins:
//
//	sqrt(max(0, Σ_b n_b/n · [(acc_b - conf_b)² - acc_b(1 - acc_b)/(n_b - 1)]))
//
// The subtracted term is the variance that finite bins add to the plug-in ECEL2; a bin of fewer than 2 rows
// gives 0. The root of a value cut at 0 is again biased upward near 0. NaN where there is no row.
// Reference: Kumar, Liang and Ma, Verified Uncertainty Calibration, NeurIPS 2019.
func DebiasedL2(bins []Bin) float64 {
	var sum float64
	for _, b := range bins {
		if b.N < 2 || b.W <= 0 {
			continue
		}
		acc := b.SumA / b.W
		gap := (b.SumA - b.SumC) / b.W
		sum += b.W * (gap*gap - acc*(1-acc)/float64(b.N-1))
	}
	mean := sum / Total(bins)
	if mean < 0 {
		return 0
	}
	return math.Sqrt(mean)
}
