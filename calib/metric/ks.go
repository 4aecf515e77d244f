package metric

import "math"

// KS returns the Kolmogorov-Smirnov calibration error, which needs no bins:
//
//	KS = max_t |Σ_{c_i ≤ t} w_i (a_i - c_i)| / W
//
// over the ends t of the groups of equal confidence, so that the order within ties does not matter. Code that takes
// the maximum over single rows depends on that order.
// It is in [0,1]; NaN where there is no row.
// Reference: Gupta et al., Calibration of Neural Networks using Splines, ICLR 2021.
func KS(s Sorted) float64 {
	var sum, total, largest float64
	for i := 0; i < len(s.C); {
		j := s.tieEnd(i)
		right, wrong := s.weigh(i, j)
		sum += right - (right+wrong)*s.C[i]
		total += right + wrong
		largest = max(largest, math.Abs(sum))
		i = j
	}
	return largest / total
}

// KSCells is KS of rows that are known by cell, in ascending order of confidence: thresholds inside a cell are not
// seen, so it is at most the KS of the rows, and less by no more than the largest cell's share of the weight.
func KSCells(cells []Bin) float64 {
	var sum, largest float64
	for _, c := range cells {
		sum += c.SumA - c.SumC
		largest = max(largest, math.Abs(sum))
	}
	return largest / Total(cells)
}
