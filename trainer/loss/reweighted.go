package loss

// detached is the au of a loss that is nothing but au of cross-entropy with weights that have no gradient; else nil.
func (l *Loss) detached() *au {
	if len(l.terms) != 1 {
		return nil
	}
	a, ok := l.terms[0].term.(*au)
	if !ok || a.through || a.inner != (crossEntropy{}) {
		return nil
	}
	return a
}

// evalDetached takes rows by blocks twice, once for their scores and once for loss and gradient: to exponentiate twice
// costs less than to go through memory for the probabilities of a large batch. It gives the bits of au.add.
func evalDetached[T float32 | float64](l *Loss, a *au, z []T, b Batch, grad []T) (float64, error) {
	r, size := &l.rows, blockRows(b.K)
	a.g = grow(a.g, b.N)
	for from := 0; from < b.N; from += size {
		to := min(from+size, b.N)
		r.resize(Batch{N: to - from, K: b.K, Y: b.Y[from:to]})
		if err := load(r, z[from*b.K:to*b.K], from); err != nil {
			return 0, err
		}
		for i := range r.n {
			a.g[from+i] = r.score(a.csf, i)
		}
		copy(l.top[from:], r.top)
	}
	mean, scale, n := a.weights(b.CDF), l.terms[0].weight, float64(b.N)
	if a.normalise {
		scale /= mean
	}
	var sum float64
	for from := 0; from < b.N; from += size {
		to := min(from+size, b.N)
		r.resize(Batch{N: to - from, K: b.K, Y: b.Y[from:to]})
		if err := exponentials(r, z[from*b.K:to*b.K], 0, r.n, from); err != nil {
			return 0, err
		}
		for i := range r.n {
			var g []T
			if grad != nil {
				g = grad[(from+i)*b.K : (from+i+1)*b.K]
			}
			beta := a.beta[from+i]
			sum += beta * crossRow(r, i, scale*beta/n, g)
		}
	}
	if a.normalise {
		sum /= mean
	}
	l.parts[0] = sum / n
	return l.terms[0].weight * l.parts[0], nil
}
