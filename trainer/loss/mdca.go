package loss

import "math"

// mdca is the multi-class difference of confidence and accuracy:
//
//	1/K Σ_k |1/n Σ_i p_ik − 1/n Σ_i 1[y_i = k]|
//
// with slope 0 where a difference is 0. Reference: Hebbalaguppe et al., A Stitch in Time Saves Nine, CVPR 2022.
type mdca struct{ sign []float64 }

func (l *mdca) add(r *rows, scale float64, grad []float64) float64 {
	l.sign = grow(l.sign, r.k)
	clear(l.sign)
	for i := range r.n {
		for k, pk := range r.prob(i) {
			if k == int(r.y[i]) {
				pk = -r.not(i, k)
			}
			l.sign[k] += pk
		}
	}
	var sum float64
	for k, v := range l.sign {
		sum += math.Abs(v)
		switch {
		case v > 0:
			l.sign[k] = 1
		case v < 0:
			l.sign[k] = -1
		}
	}
	nk := float64(r.n) * float64(r.k)
	if grad != nil {
		for i := range r.n {
			var dot float64
			p, g := r.prob(i), r.part(grad, i)
			for k, pk := range p {
				dot += pk * l.sign[k]
			}
			for k, pk := range p {
				g[k] += scale * pk * (l.sign[k] - dot) / nk
			}
		}
	}
	return sum / nk
}
