package kernel

import "math"

// NLL returns the negative log-likelihood of class y, in nats:
//
//	logits: LSE - z_y        probabilities: ln s - ln q_y
//
// r is what Logits or Probs returned for scores, and probs says which. A probability of 0 counts as the
// smallest positive value of the input type (2^-149 or 2^-1074), so that the result is finite:
// at most 103.3 nats for float32 and 744.5 for float64. It panics if y is outside [0, K).
func NLL[T Float](r Row, scores []T, y int, probs bool) float64 {
	if !probs {
		return r.LSE - float64(scores[y])
	}
	return r.LSE - LogProb(scores[y])
}

func smallest[T Float]() float64 {
	var zero T
	if _, ok := any(zero).(float32); ok {
		return math.SmallestNonzeroFloat32
	}
	return math.SmallestNonzeroFloat64
}

// Brier returns the Brier score of a row, summed over the classes, in [0, 2]:
//
//	Σ_k (p_k - 1[k = y])² = Σ p² - 2 p_y + 1
//
// py is the probability of the label's class. Rounding below 0 is cut off.
func Brier(r Row, py float64) float64 {
	return max(0, r.SumP2-float64(2*py)+1)
}

// NegEnt returns the CSF "negative entropy" on [0,1]: 1 - H/ln K, 1 for a certain row and 0 for a uniform one.
// It is 1 for k < 2, where there is nothing to be uncertain of.
func NegEnt(r Row, k int) float64 {
	if k < 2 {
		return 1
	}
	return min(1, max(0, 1-r.Entropy/ln(float64(k))))
}
