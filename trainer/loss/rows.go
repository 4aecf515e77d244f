package loss

import (
	"math"

	"github.com/plumbline/plumbline/internal/vexp"
)

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

// blockValues is how many values loadRows takes at a time: what the three passes touch stays in the first cache.
const blockValues = 1024

// loadRows computes what the terms share of the logits z. It returns a row in which a logit is not finite, or whose
// logits differ by more than the largest number; n where there is none.
func loadRows[T float32 | float64](r *rows, z []T) int {
	block := max(1, blockValues/r.k)
	for from := 0; from < r.n; from += block {
		to := min(from+block, r.n)
		for i := from; i < to; i++ {
			if !differences(r, i, z[i*r.k:(i+1)*r.k]) {
				return i
			}
		}
		vexp.Shifted(r.p[from*r.k:to*r.k], r.d[from*r.k:to*r.k], 0)
		for i := from; i < to; i++ {
			r.normalise(i)
		}
	}
	return r.n
}

// differences fills d, max and top of row i and says whether all is finite.
func differences[T float32 | float64](r *rows, i int, z []T) bool {
	top, most := 0, z[0]
	for k, v := range z {
		if v > most {
			top, most = k, v
		}
	}
	m := float64(most)
	r.max[i], r.top[i] = m, int32(top)
	d := r.d[i*r.k:][:len(z)]
	for k, v := range z {
		d[k] = float64(v) - m
		if !(d[k] >= -math.MaxFloat64) { // also where a NaN or an infinite maximum made it NaN
			return false
		}
	}
	return true
}

// normalise turns e^d into probabilities. The top class's own 1 is kept out of the sum, so that a row that is all but
// certain keeps its precision.
func (r *rows) normalise(i int) {
	p, top := r.prob(i), int(r.top[i])
	others := total(p[:top]) + total(p[top+1:])
	inv := 1 / (1 + others)
	for k, v := range p {
		p[k] = v * inv
	}
	r.logS[i], r.rest[i] = math.Log1p(others), others*inv
}

// total is Σ p, by four sums whose additions need not wait for each other.
func total(p []float64) float64 {
	var a, b, c, d float64
	for len(p) >= 4 {
		a, b, c, d = a+p[0], b+p[1], c+p[2], d+p[3]
		p = p[4:]
	}
	for _, v := range p {
		a += v
	}
	return (a + b) + (c + d)
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
