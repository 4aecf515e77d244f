package loss

// crossEntropy is −ln p_y, in nats; by log-sum-exp, never the logarithm of a softmax.
type crossEntropy struct{}

func (crossEntropy) row(r *rows, i int, w float64, g []float64) float64 {
	if g != nil {
		r.addNLL(g, i, w)
	}
	return r.nll(i)
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
