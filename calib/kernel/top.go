package kernel

import "github.com/plumbline/plumbline/internal/vexp"

// Top is the part of a Row that losses and accuracies need. Its fields are as there.
type Top struct {
	Arg            int
	Max, LSE, Conf float64
}

// LogitTop is Logits without the entropy and Σp², many exponentials at a time; p is scratch of K. With m = max z:
//
//	LSE = m + log1p(Σ_{k ≠ Arg} exp(z_k - m)),  Conf = 1 / (1 + Σ_{k ≠ Arg} exp(z_k - m))
//
// It returns false if K = 0 or any score is NaN or infinite, and panics if p is shorter than z.
func LogitTop(z, p []float64) (Top, bool) {
	if len(z) == 0 {
		return Top{}, false
	}
	arg, top := 0, z[0]
	bad := 0.0 // stays 0 for finite scores; NaN and infinities make it NaN
	for k, x := range z {
		bad += x * 0
		if x > top {
			arg, top = k, x
		}
	}
	if bad != 0 {
		return Top{}, false
	}
	p = p[:len(z)]
	vexp.Shifted(p, z, top)
	p[arg] = 0
	rest := 0.0
	for _, e := range p {
		rest += e
	}
	return Top{arg, top, top + ln1p(rest), 1 / (1 + rest)}, true
}

// ProbTop is Probs without the entropy and Σp²: the same numbers, and false for the same rows.
func ProbTop(q []float64) (Top, bool) {
	if len(q) == 0 {
		return Top{}, false
	}
	arg, top, sum := 0, q[0], 0.0
	for k, x := range q {
		if !(x >= 0 && x <= 1) {
			return Top{}, false
		}
		sum += x
		if x > top {
			arg, top = k, x
		}
	}
	sum, ok := probSum(sum)
	return Top{arg, ln(top), ln(sum), top / sum}, ok
}
