package metric

import "math"

// CDFBins is K_bins, the number of equal bins behind the binned CDF.
const CDFBins = 50

// CDFWeights returns the weight of the scores in each of k equal bins on [0,1]: [e_i, e_{i+1}), the last one closed,
// with edges e_i = float64(i)/float64(k). Scores outside [0,1] count in the nearest bin. w may be nil where every row
// counts 1. It panics if k < 1.
func CDFWeights(c, w []float64, k int) []float64 {
	if k < 1 {
		panic("metric: fewer than one bin")
	}
	h := make([]float64, k)
	fk := float64(k)
	for j, ci := range c {
		i := min(max(int(ci*fk), 0), k-1)
		// ci·k is rounded, so that the guess may be one off on either side of an edge.
		for i > 0 && ci < float64(i)/fk {
			i--
		}
		for i < k-1 && ci >= float64(i+1)/fk {
			i++
		}
		h[i] += weight(w, j)
	}
	return h
}

// BinnedCDF returns the smoothed CDF of the scores at g, from their counts h (or weights) in len(h) equal bins:
//
//	Ĝ_ν(g) = 1/n Σ_k h_k σ((g - c_k)/ν),  c_k = (k + ½)/K_bins,  n = Σ_k h_k
//
// clamped to [1/(n+1), n/(n+1)], so that ln(1 - Ĝ) is finite (the paper has no clamp). ν > 0 is the width of
// the smoothing. NaN where n = 0. Reference: Zhou et al., Revisiting Reweighted Risk for Calibration.
func BinnedCDF(h []float64, nu, g float64) float64 {
	var n, sum float64
	for k, hk := range h {
		if hk != 0 {
			centre := (float64(k) + 0.5) / float64(len(h))
			n += hk
			sum += hk / (1 + math.Exp(-(g-centre)/nu))
		}
	}
	if !(n > 0) {
		return math.NaN()
	}
	return min(n/(n+1), max(1/(n+1), sum/n))
}

// CDFCurve returns Ĝ_ν at the len(h)+1 bin edges 0, 1/K_bins, …, 1, and those edges.
func CDFCurve(h []float64, nu float64) (grid, g []float64) {
	for i := range len(h) + 1 {
		e := float64(i) / float64(len(h))
		grid = append(grid, e)
		g = append(g, BinnedCDF(h, nu, e))
	}
	return grid, g
}
