package student

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval returns the mean of x and the half-width of its 95 % interval by Student's t,
//
//	h = t₀.₉₇₅,J₋₁ · s · √(1/J + shared)
//
// over J = len(x) repeats of standard deviation s. shared enlarges the variance for repeats that share rows: 0 takes
// them as independent, the ratio of tested to fitted rows is what Nadeau and Bengio (Inference for the generalization
// error, 2003) ask for. h is NaN for fewer than two repeats.
func Interval(x []float64, shared float64) (mean, h float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	if len(x) < 2 {
		return mean, math.NaN()
	}
	var s2 float64
	for _, v := range x {
		s2 += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	j := float64(len(x))
	return mean, distuv.StudentsT{Sigma: 1, Nu: j - 1}.Quantile(0.975) * math.Sqrt(s2*(1/j+shared))
}
