package loss

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// kde is the kernel density estimate of the canonical calibration error, without a root:
//
//	1/n Σ_i Σ_k |R_ik − p_ik|^q,  R_ik = Σ_{j≠i} κ(p_i; p_j) 1[y_j = k] / Σ_{j≠i} κ(p_i; p_j)
//
// leave-one-out, κ(·; p_j) the density of the Dirichlet distribution with parameters p_j/b + 1. The gradient goes
// through the kernel. A single row has no estimate and counts 0. O(n²K), n² numbers of workspace.
// Reference: Popordanoska, Sayer, Blaschko, A Consistent and Differentiable Lp Canonical Calibration Error Estimator,
// NeurIPS 2022. KDE-XE is cross-entropy plus λ times this.
type kde struct {
	bandwidth, power float64

	kern         []float64 // n×n: ln κ, then R's weights, then ∂/∂ln κ
	beta         []float64 // n: Σ_k lnΓ(p_jk/b + 1); lnΓ(1/b + K) is common to all rows and cancels
	psi          []float64 // n×K: digamma(p_jk/b + 1)
	ratio, slope []float64 // n×K: R; ∂/∂R
	byP, byLog   []float64 // n×K
}

func (l *kde) add(r *rows, scale float64, grad []float64) float64 {
	if r.n < 2 {
		return 0
	}
	l.weigh(r)
	l.slope = grow(l.slope, r.n*r.k)
	var sum float64
	for i, p := range r.p {
		e := l.ratio[i] - p
		l.slope[i] = 0
		if e != 0 {
			v := math.Pow(math.Abs(e), l.power)
			sum += v
			l.slope[i] = l.power * v / e / float64(r.n)
		}
	}
	if grad != nil {
		l.backward(r, scale, grad)
	}
	return sum / float64(r.n)
}

// weigh fills kern with the weights of R, and ratio. All in log space: kernels underflow.
func (l *kde) weigh(r *rows) {
	n, k := r.n, r.k
	l.kern, l.beta, l.ratio = grow(l.kern, n*n), grow(l.beta, n), grow(l.ratio, n*k)
	for j := range n {
		l.beta[j] = 0
		for _, pk := range r.prob(j) {
			lg, _ := math.Lgamma(pk/l.bandwidth + 1)
			l.beta[j] += lg
		}
	}
	clear(l.ratio)
	for i := range n {
		row, d, most := l.kern[i*n:(i+1)*n], r.diff(i), math.Inf(-1)
		for j := range n {
			var dot float64
			for k, pk := range r.prob(j) {
				dot += pk * (d[k] - r.logS[i])
			}
			row[j] = dot/l.bandwidth - l.beta[j]
			if j != i {
				most = max(most, row[j])
			}
		}
		row[i] = math.Inf(-1)
		var sum float64
		for j, v := range row {
			row[j] = math.Exp(v - most)
			sum += row[j]
		}
		for j := range row {
			row[j] /= sum
			l.ratio[i*k+int(r.y[j])] += row[j]
		}
	}
}

func (l *kde) backward(r *rows, scale float64, grad []float64) {
	n, k := r.n, r.k
	l.byP, l.byLog, l.psi = grow(l.byP, n*k), grow(l.byLog, n*k), grow(l.psi, n*k)
	clear(l.byLog)
	for i, p := range r.p {
		l.byP[i] = -l.slope[i]
		l.psi[i] = mathext.Digamma(p/l.bandwidth + 1)
	}
	for i := range n {
		row, slope := l.kern[i*n:(i+1)*n], l.slope[i*k:(i+1)*k]
		var mean float64
		for j, w := range row {
			mean += w * slope[r.y[j]]
		}
		d, byLog := r.diff(i), l.byLog[i*k:(i+1)*k]
		for j, w := range row {
			q := w * (slope[r.y[j]] - mean) / l.bandwidth // ∂/∂ln κ(p_i; p_j), over b
			if q == 0 {
				continue
			}
			pj, psi, byP := r.prob(j), l.psi[j*k:(j+1)*k], l.byP[j*k:(j+1)*k]
			for c := range byLog {
				byLog[c] += q * pj[c]
				byP[c] += q * (d[c] - r.logS[i] - psi[c])
			}
		}
	}
	for i := range n {
		p, byP, byLog, g := r.prob(i), l.byP[i*k:(i+1)*k], l.byLog[i*k:(i+1)*k], r.part(grad, i)
		var dot, all float64
		for c, pc := range p {
			dot += pc * byP[c]
			all += byLog[c]
		}
		for c, pc := range p {
			g[c] += scale * (pc*(byP[c]-dot) + byLog[c] - pc*all)
		}
	}
}
