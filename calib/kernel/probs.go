package kernel

import (
	"fmt"
	"math"
)

const (
	// probSumSlack is how far Σq may be from 1 before a row is refused: it lets low-precision rows
	// (float16, rounded CSV) in and keeps logits that were sent as probabilities out.
	probSumSlack = 0.05
	// probSumExact is how far Σq may be from 1 for q to be taken as it is. It is about the error of a
	// float32 softmax, and dividing by such a sum would push a probability off a bin edge it lies on.
	probSumExact = 0x1p-20
)

// Probs writes the probabilities q to p, normalised, and returns the row's summary:
//
//	p_k = q_k / s,  s = 1 if |Σq - 1| <= 2^-20, else Σq
//	H = -Σ p_k ln p_k,  Max = ln max q,  LSE = ln s
//
// q and p have length K; natural logarithms. A zero stays exactly zero and adds nothing to H.
// It returns false, with p undefined, if K = 0, any q is NaN, below 0 or above 1, or |Σq - 1| > 0.05.
// It panics if p is shorter than q.
func Probs[T Float](q []T, p []float64) (Row, bool) {
	if len(q) == 0 {
		return Row{}, false
	}
	p = p[:len(q)]
	arg, top, sum := 0, float64(q[0]), 0.0
	for k, v := range q {
		x := float64(v)
		if !(x >= 0 && x <= 1) {
			return Row{}, false
		}
		sum += x
		p[k] = x
		if x > top {
			arg, top = k, x
		}
	}
	sum, ok := probSum(sum)
	if !ok {
		return Row{}, false
	}
	r := Row{Arg: arg, Max: ln(top), LSE: ln(sum), Conf: top / sum, Scale: 1 / sum, OK: true}
	rest := 0.0
	for k, v := range p {
		x := v / sum
		p[k] = x
		r.SumP2 += float64(x * x)
		if x > 0 && k != arg {
			rest += v
			r.Entropy -= float64(x * ln(x))
			r.Second = max(r.Second, x)
		}
	}
	r.Entropy += float64(r.Conf * surprise(top, rest, sum))
	return r, true
}

// RowError says why Logits, or with probs Probs, has refused the row.
func RowError[T Float](row []T, probs bool) error {
	sum := 0.0
	for k, v := range row {
		x := float64(v)
		if probs && !(x >= 0 && x <= 1) {
			return fmt.Errorf("probability %d is %g, allowed are values in [0, 1]", k, x)
		}
		if x-x != 0 {
			return fmt.Errorf("score %d is %g, allowed are finite values", k, x)
		}
		sum += x
	}
	if probs {
		return fmt.Errorf("probabilities sum to %g, allowed is within %g of 1", sum, probSumSlack)
	}
	return fmt.Errorf("%d scores, allowed are 1 and more", len(row))
}

// probSum is what probabilities with a sum are divided by, and whether they are probabilities.
func probSum(sum float64) (float64, bool) {
	off := math.Abs(sum - 1)
	if off <= probSumExact {
		return 1, true
	}
	return sum, off <= probSumSlack
}
