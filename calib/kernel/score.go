package kernel

import "math"

// NLL returns the negative log-likelihood of class y, in nats:
//
//	logits: LSE - z_y = ln S + (m - z_y)        probabilities: ln s - ln q_y
//
// r is what Logits or Probs returned for scores, and probs says which. A probability of 0 counts as the
// smallest positive value of the input type (2^-149 or 2^-1074), so that the result is finite:
// at most 103.3 nats for float32 and 744.5 for float64. It panics if y is outside [0, K).
func NLL[T Float](r Row, scores []T, y int, probs bool) float64 {
	if !probs {
		return r.LogitNLL(float64(scores[y]))
	}
	return r.LSE - LogProb(scores[y])
}

// LogitNLL is NLL of a row of logits, of which zy is that of the class.
func (r *Row) LogitNLL(zy float64) float64 {
	if r.far() {
		return r.LogSum() + (r.Max - zy)
	}
	return r.LSE - zy
}

// LogitNLL is Row.LogitNLL.
func (r *Top) LogitNLL(zy float64) float64 {
	row := Row{Max: r.Max, LSE: r.LSE, Conf: r.Conf}
	return row.LogitNLL(zy)
}

// LogSum is ln S = ln Σ exp(z_k - m) of a row of logits, in [0, ln K].
func (r *Row) LogSum() float64 {
	if r.far() {
		return -ln(r.Conf)
	}
	return r.LSE - r.Max
}

// far reports whether m is so large that ln S is lost in LSE = m + ln S. Beyond 9·10^4 LogitRows goes through float64,
// so Conf = 1/S has it in full.
func (r *Row) far() bool {
	const most = 1 << 17
	return r.Max > most || r.Max < -most
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
