package metric

import "math"

// AURC returns the area under the risk-coverage curve of the 0/1 loss, in its finite-sample form: the mean
// over k = 1..n of the error rate among the k rows of the highest score. As a weighted mean of the losses,
//
//	AURC = 1/n Σ_i (H_n - H_{n-r_i})·(1 - a_i),  H_n = Σ_{j≤n} 1/j
//
// with r_i the ascending rank of row i's score; rows of equal score share the mean of their weights, so the
// order of the input does not matter. In [0,1], lower is better; NaN where there is no row.
// A row of weight w is w rows, as RiskArea says, for any real w: k then runs over the weight, so that weights
// times a factor give the same only up to terms of ln W/W.
// Reference: Zhou et al., Revisiting Reweighted Risk for Calibration. The weights -ln(1 - r/n) of other code are
// infinite for the top row.
func AURC(s Sorted) float64 {
	if w := unlessUnit(s.W); w != nil {
		return RiskArea(RiskCoverage(s))
	}
	n := len(s.C)
	if n == 0 {
		return math.NaN()
	}
	var area, w float64
	for i := 0; i < n; {
		j := s.tieEnd(i)
		var group float64
		for r := i; r < j; r++ {
			w += 1 / float64(n-r)
			group += w
		}
		area += group * float64(j-i-s.correct(i, j)) / float64(j-i)
		i = j
	}
	return area / float64(n)
}

// EAURC returns the excess AURC: AURC less that of the best order of the same rows, all wrong rows below all
// right ones. 0 where the score separates them; NaN where there is no row. Other code takes an asymptotic formula of
// the best order off.
// Reference: Geifman, Uziel and El-Yaniv, Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers, ICLR 2019.
func EAURC(s Sorted) float64 {
	n := len(s.C)
	if w := unlessUnit(s.W); w != nil {
		right, wrong := s.weigh(0, n)
		best := RiskArea([]RiskPoint{{W: right}, {W: right + wrong, Risk: wrong / (right + wrong)}})
		return max(0, AURC(s)-best)
	}
	wrong := n - s.correct(0, n)
	var best, w float64
	for r := range wrong {
		w += 1 / float64(n-r)
		best += w
	}
	// Summation in another order can leave a tiny negative number; max keeps NaN.
	return max(0, AURC(s)-best/float64(n))
}

// AUROC returns the probability that a right row has a higher score than a wrong one, ties counting half, for rows
// drawn by weight. NaN where all rows are right or all are wrong.
func AUROC(s Sorted) float64 {
	var pairs, below, right float64 // below: wrong rows of a lower score
	for i := 0; i < len(s.C); {
		j := s.tieEnd(i)
		p, q := s.weigh(i, j)
		pairs += p * (below + q/2)
		below += q
		right += p
		i = j
	}
	if right == 0 || below == 0 {
		return math.NaN()
	}
	return pairs / (right * below)
}

// FPR95 returns the smallest share of the wrong rows that are accepted (score ≥ t) at a threshold t that
// accepts at least 95 % of the right ones. NaN where all rows are right or all are wrong.
func FPR95(s Sorted) float64 {
	f := newFPR(s.weigh(0, len(s.C)))
	for i := 0; i < len(s.C) && f.enough(); {
		j := s.tieEnd(i)
		f.reject(s.weigh(i, j))
		i = j
	}
	return f.rate
}

// fpr raises the threshold from below as long as 95 % of the right rows stay accepted.
type fpr struct{ pos, neg, lostPos, lostNeg, rate float64 }

func newFPR(right, wrong float64) *fpr {
	f := &fpr{pos: right, neg: wrong, rate: 1}
	if !(f.pos > 0) || !(f.neg > 0) {
		f.rate = math.NaN()
	}
	return f
}

// sameShare lets sums of weights that are rounded, such as twenty of 0.1, be 95 % like the twenty rows.
const sameShare = 1 + 1e-12

func (f *fpr) enough() bool {
	if f.lostPos*20 > f.pos*sameShare || f.rate != f.rate {
		return false
	}
	f.rate = max(0, f.neg-f.lostNeg) / f.neg
	return true
}

func (f *fpr) reject(right, wrong float64) {
	f.lostPos += right
	f.lostNeg += wrong
}
