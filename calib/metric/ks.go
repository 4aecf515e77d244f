package metric

import "math"

// KS returns the Kolmogorov-Smirnov calibration error, which needs no bins:
//
//	KS = max_t |Σ_{c_i ≤ t} (a_i - c_i)| / n
//
// over the ends t of the groups of equal confidence, so that the order within ties does not matter.
// It is in [0,1]; NaN where there is no row.
// Reference: Gupta et al., Calibration of Neural Networks using Splines, ICLR 2021.
func KS(s Sorted) float64 {
	n := len(s.C)
	if n == 0 {
		return math.NaN()
	}
	var sum, largest float64
	for i := 0; i < n; {
		j := s.tieEnd(i)
		sum += float64(s.correct(i, j)) - float64(j-i)*s.C[i]
		largest = max(largest, math.Abs(sum))
		i = j
	}
	return largest / float64(n)
}
