package loss

import "math"

// crossEntropy is −ln p_y, in nats; by log-sum-exp, never the logarithm of a softmax.
type crossEntropy struct{}

func (crossEntropy) row(r *rows, i int, w float64, g []float64) float64 {
	if g != nil {
		r.addNLL(g, i, w)
	}
	return r.nll(i)
}

// crossRow is cross-entropy of row i of which p has e^d: it writes w times the gradient to g, unless that is nil, in
// one pass. The same bits as normalise and crossEntropy.row give on a gradient of zeros.
func crossRow[T float32 | float64](r *rows, i int, w float64, g []T) float64 {
	p, top, y := r.prob(i), int(r.top[i]), int(r.y[i])
	others := total(p[:top]) + total(p[top+1:])
	if g != nil {
		inv := 1 / (1 + others)
		g = g[:len(p)]
		if f, ok := any(g).([]float32); ok {
			scaled32(f, p, inv, w)
		} else {
			scaledGo(g, p, inv, w)
		}
		not := others * inv // 1 − p_y
		if y != top {
			not = 1 - p[y]*inv
		}
		g[y] = T(0 - w*not)
	}
	return math.Log1p(others) - r.diff(i)[y]
}

// scaledGo writes w·(p·inv) to g.
func scaledGo[T float32 | float64](g []T, p []float64, inv, w float64) {
	g = g[:len(p)]
	for k, v := range p {
		g[k] = T(w * (v * inv))
	}
}

// squared is the Brier score Σ_k (p_k − 1[k=y])², summed over the classes.
type squared struct{}

func (squared) row(r *rows, i int, w float64, g []float64) float64 {
	p, y := r.prob(i), int(r.y[i])
	off := r.not(i, y) // 1 − p_y
	var sum, dot float64
	for k, pk := range p {
		if k == y {
			sum += off * off
			dot -= pk * off
		} else {
			sum += pk * pk
			dot += pk * pk
		}
	}
	if g != nil {
		for k, pk := range p {
			e := pk
			if k == y {
				e = -off
			}
			g[k] += 2 * w * pk * (e - dot)
		}
	}
	return sum
}

// smoothing is cross-entropy against (1 − ε)·1[k=y] + ε/K: ε/K on every class.
type smoothing struct{ epsilon float64 }

func (s smoothing) row(r *rows, i int, w float64, g []float64) float64 {
	d, share := r.diff(i), s.epsilon/float64(r.k)
	var sum float64
	for _, v := range d {
		sum += v
	}
	if g != nil {
		r.addNLL(g, i, w*(1-s.epsilon))
		for k, pk := range r.prob(i) {
			g[k] += w * (s.epsilon*pk - share)
		}
	}
	return (1-s.epsilon)*r.nll(i) + s.epsilon*r.logS[i] - share*sum
}

// penalty is −H(p), the entropy penalty (ECP): added with a weight it keeps confidences down.
// Reference: Pereyra et al., Regularizing Neural Networks by Penalizing Confident Output Distributions, 2017.
type penalty struct{}

func (penalty) row(r *rows, i int, w float64, g []float64) float64 {
	if g != nil {
		r.addEntropy(g, i, -w)
	}
	return -r.entropy(i)
}
