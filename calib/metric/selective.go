package metric

import "math"

// AURC returns the area under the risk-coverage curve of the 0/1 loss, in its finite-sample form: the mean
// over k = 1..n of the error rate among the k rows of the highest score. As a weighted mean of the losses,
//
//	AURC = 1/n Σ_i (H_n - H_{n-r_i})·(1 - a_i),  H_n = Σ_{j≤n} 1/j
//
// with r_i the ascending rank of row i's score; rows of equal score share the mean of their weights, so the
// order of the input does not matter. In [0,1], lower is better; NaN where there is no row.
// Reference: Zhou et al., Revisiting Reweighted Risk for Calibration.
func AURC(s Sorted) float64 {
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
// right ones. 0 where the score separates them; NaN where there is no row.
// Reference: Geifman, Uziel and El-Yaniv, Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers, ICLR 2019.
func EAURC(s Sorted) float64 {
	n := len(s.C)
	wrong := n - s.correct(0, n)
	var best, w float64
	for r := range wrong {
		w += 1 / float64(n-r)
		best += w
	}
	// Summation in another order can leave a tiny negative number; max keeps NaN.
	return max(0, AURC(s)-best/float64(n))
}

// AUROC returns the probability that a right row has a higher score than a wrong one, ties counting half.
// NaN where all rows are right or all are wrong.
func AUROC(s Sorted) float64 {
	n := len(s.C)
	pos := s.correct(0, n)
	neg := n - pos
	if pos == 0 || neg == 0 {
		return math.NaN()
	}
	var pairs float64
	below := 0 // wrong rows of a lower score
	for i := 0; i < n; {
		j := s.tieEnd(i)
		p := s.correct(i, j)
		q := j - i - p
		pairs += float64(p) * (float64(below) + float64(q)/2)
		below += q
		i = j
	}
	return pairs / (float64(pos) * float64(neg))
}

// FPR95 returns the smallest share of the wrong rows that are accepted (score ≥ t) at a threshold t that
// accepts at least 95 % of the right ones. NaN where all rows are right or all are wrong.
func FPR95(s Sorted) float64 {
	n := len(s.C)
	pos := s.correct(0, n)
	neg := n - pos
	if pos == 0 || neg == 0 {
		return math.NaN()
	}
	tp, fp := pos, neg // accepted at the lowest threshold
	fpr := 1.0
	for i := 0; i < n; {
		if tp*20 < pos*19 {
			break
		}
		fpr = float64(fp) / float64(neg)
		j := s.tieEnd(i)
		p := s.correct(i, j)
		tp -= p
		fp -= j - i - p
		i = j
	}
	return fpr
}
