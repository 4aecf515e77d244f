package loss

import "math"

// rows is what the terms share of one batch. Invariant: d ≤ 0, and d[top] = 0.
type rows struct {
	n, k    int
	y       []int32
	correct []float64 // history of correctness, n or nil
	cdf     []float64 // counts of a stream's CSF, or nil

	d    []float64 // n×K, z − max z
	p    []float64 // n×K, softmax
	max  []float64 // n
	logS []float64 // n, ln Σ exp d; so ln p = d − logS
	rest []float64 // n, 1 − p[top], without cancellation
	top  []int32   // n, argmax, the lowest of ties

	h     []float64 // n, entropy in nats; valid if haveH
	haveH bool
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// resize prepares for a batch; the contents are undefined.
func (r *rows) resize(b Batch) {
	r.n, r.k, r.y, r.correct, r.cdf = b.N, b.K, b.Y, b.Correct, b.CDF
	r.d, r.p = grow(r.d, b.N*b.K), grow(r.p, b.N*b.K)
	r.max, r.logS, r.rest, r.top = grow(r.max, b.N), grow(r.logS, b.N), grow(r.rest, b.N), grow(r.top, b.N)
	r.haveH = false
}

// setRow computes row i of logits z. The top class's own 1 is kept out of the sum, so that a row that is all but
// certain keeps its precision.
func setRow[T float32 | float64](r *rows, i int, z []T) {
	top := 0
	for k, v := range z {
		if v > z[top] {
			top = k
		}
	}
	m := float64(z[top])
	d, p := r.d[i*r.k:(i+1)*r.k], r.p[i*r.k:(i+1)*r.k]
	var others float64
	for k, v := range z {
		d[k] = float64(v) - m
		p[k] = math.Exp(d[k])
		if k != top {
			others += p[k]
		}
	}
	inv := 1 / (1 + others)
	for k := range p {
		p[k] *= inv
	}
	r.max[i], r.logS[i], r.rest[i], r.top[i] = m, math.Log1p(others), others*inv, int32(top)
}

func (r *rows) prob(i int) []float64 { return r.p[i*r.k : (i+1)*r.k] }
func (r *rows) diff(i int) []float64 { return r.d[i*r.k : (i+1)*r.k] }

// part is row i of a gradient, or nil.
func (r *rows) part(grad []float64, i int) []float64 {
	if grad == nil {
		return nil
	}
	return grad[i*r.k : (i+1)*r.k]
}

func (r *rows) conf(i int) float64 { return r.p[i*r.k+int(r.top[i])] }

// hit is a: 1 where the top class is the label.
func (r *rows) hit(i int) float64 {
	if r.top[i] == r.y[i] {
		return 1
	}
	return 0
}

// nll is −ln p_y.
func (r *rows) nll(i int) float64 { return r.logS[i] - r.d[i*r.k+int(r.y[i])] }

// not is 1 − p_j without cancellation.
func (r *rows) not(i, j int) float64 {
	if j == int(r.top[i]) {
		return r.rest[i]
	}
	return 1 - r.p[i*r.k+j]
}

// entropy is H(p) of row i in nats.
func (r *rows) entropy(i int) float64 {
	if !r.haveH {
		r.h = grow(r.h, r.n)
		for i := range r.n {
			d, sum := r.diff(i), r.logS[i]
			for k, pk := range r.prob(i) {
				sum -= pk * d[k]
			}
			r.h[i] = sum
		}
		r.haveH = true
	}
	return r.h[i]
}

// addProb adds s·∂p_j/∂z = s·p_j(1[k=j] − p_k) to g.
func (r *rows) addProb(g []float64, i, j int, s float64) {
	p := r.prob(i)
	s *= p[j]
	if s == 0 {
		return
	}
	keep := g[j]
	for k, pk := range p {
		g[k] -= s * pk
	}
	g[j] = keep + s*r.not(i, j)
}

// addNLL adds s·∂(−ln p_y)/∂z = s·(p_k − 1[k=y]) to g.
func (r *rows) addNLL(g []float64, i int, s float64) {
	y := r.y[i]
	keep := g[y]
	for k, pk := range r.prob(i) {
		g[k] += s * pk
	}
	g[y] = keep - s*r.not(i, int(y))
}

// addEntropy adds s·∂H/∂z = −s·p_k(ln p_k + H) to g.
func (r *rows) addEntropy(g []float64, i int, s float64) {
	if s == 0 {
		return
	}
	d, shift := r.diff(i), r.entropy(i)-r.logS[i]
	for k, pk := range r.prob(i) {
		g[k] -= s * pk * (d[k] + shift)
	}
}

// other is the class of the largest p but j, the lowest of ties.
func (r *rows) other(i, j int) int {
	d, best := r.diff(i), -1
	for k, v := range d {
		if k != j && (best < 0 || v > d[best]) {
			best = k
		}
	}
	return best
}
