package loss

// crl is the correctness ranking loss over the pairs (i, i+1), the last row with the first:
//
//	1/n Σ_i max(0, |h_i − h_{i+1}| − sign(h_i − h_{i+1})(κ_i − κ_{i+1}))
//
// h the share of earlier epochs in which a row was right (Batch.Correct), κ the CSF. A pair of equal h counts 0.
// Reference: Moon et al., Confidence-Aware Learning for Deep Neural Networks, ICML 2020.
type crl struct {
	csf string

	score, slope []float64
}

func (l *crl) add(r *rows, scale float64, grad []float64) float64 {
	l.score, l.slope = grow(l.score, r.n), grow(l.slope, r.n)
	clear(l.slope)
	for i := range r.n {
		l.score[i] = r.score(l.csf, i)
	}
	var sum float64
	for i := range r.n {
		j := i + 1
		if j == r.n {
			j = 0
		}
		gap, by := l.history(r, i)-l.history(r, j), l.score[i]-l.score[j]
		if gap == 0 {
			continue
		}
		sign := 1.0
		if gap < 0 {
			sign = -1
		}
		if v := sign * (gap - by); v > 0 {
			sum += v
			l.slope[i] -= sign
			l.slope[j] += sign
		}
	}
	n := float64(r.n)
	if grad != nil {
		for i, s := range l.slope {
			if s != 0 {
				r.addScore(l.csf, r.part(grad, i), i, scale*s/n)
			}
		}
	}
	return sum / n
}

func (l *crl) history(r *rows, i int) float64 {
	if r.correct != nil {
		return r.correct[i]
	}
	return r.hit(i)
}
