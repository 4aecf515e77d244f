package loss

import "math"

// classWise is class-wise loss scaling of a row loss: with L_k the mean loss of the rows of class k, over the classes
// that have rows,
//
//	L̄_k = (L_k − mean L)/sd L                sample deviation
//	w_k = β/(1 + exp(−L̄_k/α)) − β/2          detached
//	loss = Σ_k (1 + w_k) L_k
//
// so classes served worse count for more. L̄ is 0 where one class is present or the losses do not differ. With printed,
// sums over a class in place of means and the population deviation, as the paper prints it. α is ln(K)/2 and β 1.5
// unless set, the bounds at which the objective of the paper's released code has its optimum (package calibrator,
// LossScaling).
// Reference: Jung et al., Scaling of Class-wise Training Losses for Post-hoc Calibration, ICML 2023.
type classWise struct {
	alpha, beta float64
	printed     bool
	inner       rowLoss

	rows, losses, weight, mass []float64
}

// sameLosses is the share of their mean below which a deviation is rounding.
const sameLosses = 1e-12

func (l *classWise) add(r *rows, scale float64, grad []float64) float64 {
	l.rows = grow(l.rows, r.n)
	l.losses, l.weight, l.mass = grow(l.losses, r.k), grow(l.weight, r.k), grow(l.mass, r.k)
	clear(l.losses)
	clear(l.mass)
	for i, y := range r.y {
		l.losses[y] += l.inner.row(r, i, 0, nil)
		l.mass[y]++
	}
	l.weigh(r.k)
	var sum float64
	for k, m := range l.mass {
		if m > 0 {
			sum += (1 + l.weight[k]) * l.losses[k]
		}
	}
	if grad != nil {
		for i, y := range r.y {
			w := scale * (1 + l.weight[y])
			if !l.printed {
				w /= l.mass[y]
			}
			l.inner.row(r, i, w, r.part(grad, i))
		}
	}
	return sum
}

// weigh turns sums into means and fills weight.
func (l *classWise) weigh(k int) {
	var mean, present, sd float64
	for c, m := range l.mass {
		if m > 0 {
			if !l.printed {
				l.losses[c] /= m
			}
			mean += l.losses[c]
			present++
		}
	}
	mean /= present
	for c, m := range l.mass {
		if m > 0 {
			sd += (l.losses[c] - mean) * (l.losses[c] - mean)
		}
	}
	free := present
	if !l.printed {
		free = max(present-1, 1)
	}
	sd = math.Sqrt(sd / free)
	alpha := l.alpha
	if alpha == 0 {
		alpha = math.Log(float64(k)) / 2
	}
	for c := range l.weight {
		l.weight[c] = 0
		if l.mass[c] > 0 && sd > sameLosses*math.Abs(mean) {
			l.weight[c] = l.beta/(1+math.Exp(-(l.losses[c]-mean)/sd/alpha)) - l.beta/2
		}
	}
}
