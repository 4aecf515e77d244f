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

// blockValues is how many values are taken at a time: what the passes touch stays in the first cache.
const blockValues = 1024

func blockRows(k int) int { return max(1, blockValues/k) }

// load computes what the terms share of the logits z. An error names the row, counted from first, in which a logit is
// not finite, or whose logits differ by more than the largest number.
func load[T float32 | float64](r *rows, z []T, first int) error {
	block := blockRows(r.k)
	for from := 0; from < r.n; from += block {
		to := min(from+block, r.n)
		if err := exponentials(r, z, from, to, first); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			r.normalise(i)
		}
	}
	return nil
}

// exponentials fills d, max and top of rows from up to to, and p with e^d.
func exponentials[T float32 | float64](r *rows, z []T, from, to, first int) error {
	for i := from; i < to; i++ {
		if row := z[i*r.k : (i+1)*r.k]; !differences(r, i, row) {
			return notFinite(first+i, row)
		}
	}
	vexp.Shifted(r.p[from*r.k:to*r.k], r.d[from*r.k:to*r.k], 0)
	return nil
}

// differences fills d, max and top of row i and says whether all is finite.
func differences[T float32 | float64](r *rows, i int, z []T) bool {
	d := r.d[i*r.k:][:len(z)]
	var top int
	var sum float64
	if f, ok := any(z).([]float32); ok {
		top = highest32(f)
		sum = minus32(d, f, float64(z[top]))
	} else {
		top = highestGo(z)
		sum = minusGo(d, z, float64(z[top]))
	}
	r.max[i], r.top[i] = float64(z[top]), int32(top)
	if sum >= -math.MaxFloat64 { // not so where one is infinite or NaN
		return true
	}
	for _, v := range d { // the sum alone may be too large
		if !(v >= -math.MaxFloat64) {
			return false
		}
	}
	return true
}

// minusGo writes z − m to d and returns the sum of what it wrote.
func minusGo[T float32 | float64](d []float64, z []T, m float64) float64 {
	var a, b, c, e float64
	d = d[:len(z)]
	k := 0
	for ; k+4 <= len(z); k += 4 {
		x, to := z[k:k+4:k+4], d[k:k+4:k+4]
		to[0], to[1], to[2], to[3] = float64(x[0])-m, float64(x[1])-m, float64(x[2])-m, float64(x[3])-m
		a, b, c, e = a+to[0], b+to[1], c+to[2], e+to[3]
	}
	for ; k < len(z); k++ {
		d[k] = float64(z[k]) - m
		a += d[k]
	}
	return (a + b) + (c + e)
}

// highestGo is the place of the largest value, the lowest of ties; of no meaning where one is NaN.
func highestGo[T float32 | float64](z []T) int {
	top, most, k := 0, z[0], 0
	for ; k+4 <= len(z); k += 4 {
		// A new maximum is rare: one look at four values.
		if x := z[k : k+4 : k+4]; x[0] > most || x[1] > most || x[2] > most || x[3] > most {
			for j, v := range x {
				if v > most {
					top, most = k+j, v
				}
			}
		}
	}
	for ; k < len(z); k++ {
		if z[k] > most {
			top, most = k, z[k]
		}
	}
	return top
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

// totalGo is Σ p, by four sums whose additions need not wait for each other.
func totalGo(p []float64) float64 {
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
