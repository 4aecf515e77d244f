package calibrator

import "sort"

// interpolate is the function through the points (x_j, v_j), x rising, at c: linear between neighbours and never beyond
// both of them, constant outside, NaN at NaN.
func interpolate(x, v []float64, c float64) float64 {
	if c != c {
		return c
	}
	j := sort.SearchFloat64s(x, c) // x_j ≥ c
	switch {
	case j == 0:
		return v[0]
	case j == len(x):
		return v[j-1]
	}
	share := (c - x[j-1]) / (x[j] - x[j-1])
	lo, hi := min(v[j-1], v[j]), max(v[j-1], v[j])
	return max(lo, min(hi, v[j-1]+share*(v[j]-v[j-1])))
}
