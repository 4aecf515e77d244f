package evalue

import (
	"math"
	"slices"
)

// EBH returns the indices, ascending, of the hypotheses that the e-BH procedure rejects at level alpha in (0, 1), given
// the logarithms of K e-values: with e_(1) ≥ … ≥ e_(K),
//
//	reject the k* largest,  k* = max{k : e_(k) ≥ K/(alpha·k)}
//
// The expected share of true nulls among the rejected is at most alpha, whatever the dependence between the e-values.
// -Inf is an e-value of 0; NaN is never rejected. Each must be an e-value at the time when it is looked at: a
// detect.Detector with Ever set, not the sums of one without. The cost is K log K.
// Reference: Wang, Ramdas, False discovery rate control with e-values, JRSS-B 84, 2022, section 4.1.
func EBH(logE []float64, alpha float64) []int {
	if !(alpha > 0 && alpha < 1) {
		panic("evalue: alpha of e-BH is not in (0, 1)")
	}
	order := make([]int, 0, len(logE))
	for i, e := range logE {
		if !math.IsNaN(e) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case logE[a] > logE[b]:
			return -1
		case logE[a] < logE[b]:
			return 1
		}
		return 0
	})
	last := 0
	for k, i := range order {
		if logE[i] >= math.Log(float64(len(logE))/alpha/float64(k+1)) {
			last = k + 1
		}
	}
	rejected := order[:last]
	slices.Sort(rejected)
	return rejected
}
