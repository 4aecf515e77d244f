package loss

import (
	"cmp"
	"math"
	"slices"
)

// mmce is the squared maximum mean calibration error with a Laplacian kernel:
//
//	1/n² Σ_i Σ_j (a_i − c_i)(a_j − c_j) exp(−|c_i − c_j|/0.4)
//
// diagonal included, no root; with root its square root, whose gradient is 0 at 0. In order of c the kernel is a
// product of the steps, so the double sum is two passes over sorted rows: O(n log n). Rows of equal c have no slope
// through each other's kernel.
// Reference: Kumar, Sarawagi, Jain, Trainable Calibration Measures for Neural Networks from Kernel Mean Embeddings,
// ICML 2018.
type mmce struct {
	root bool

	order              []int32
	c                  []float64
	below, same, above []float64 // n, Σ r_j k_ij over the rows of smaller, equal and larger c
}

const mmceWidth = 0.4

func (l *mmce) add(r *rows, scale float64, grad []float64) float64 {
	l.sums(r)
	nn := float64(r.n) * float64(r.n)
	var v float64
	for i := range r.n {
		v += (r.hit(i) - l.c[i]) * (l.below[i] + l.same[i] + l.above[i])
	}
	v = max(0, v/nn) // the kernel is positive definite; rounding may leave a tiny negative number
	value := v
	if l.root {
		value = math.Sqrt(v)
	}
	if grad == nil || l.root && v == 0 {
		return value
	}
	if l.root {
		scale /= 2 * value
	}
	for i := range r.n {
		s := -(l.below[i] + l.same[i] + l.above[i]) + l.residual(r, i)*(l.above[i]-l.below[i])/mmceWidth
		r.addProb(r.part(grad, i), i, int(r.top[i]), scale*2*s/nn)
	}
	return value
}

// residual is a − c; of a row that is right, without cancellation.
func (l *mmce) residual(r *rows, i int) float64 {
	if r.hit(i) == 1 {
		return r.rest[i]
	}
	return -l.c[i]
}

func (l *mmce) sums(r *rows) {
	n := r.n
	l.order, l.c = grow(l.order, n), grow(l.c, n)
	l.below, l.same, l.above = grow(l.below, n), grow(l.same, n), grow(l.above, n)
	for i := range n {
		l.order[i], l.c[i] = int32(i), r.conf(i)
	}
	c := l.c
	slices.SortFunc(l.order, func(i, j int32) int {
		if o := cmp.Compare(c[i], c[j]); o != 0 {
			return o
		}
		return cmp.Compare(i, j)
	})
	var carry, at float64
	for s := 0; s < n; {
		e := l.tie(s, 1)
		carry *= math.Exp((at - c[l.order[s]]) / mmceWidth)
		var group float64
		for _, i := range l.order[s:e] {
			group += l.residual(r, int(i))
		}
		for _, i := range l.order[s:e] {
			l.below[i], l.same[i] = carry, group
		}
		carry, at = carry+group, c[l.order[s]]
		s = e
	}
	carry = 0
	for s := n - 1; s >= 0; {
		e := l.tie(s, -1)
		carry *= math.Exp((c[l.order[s]] - at) / mmceWidth)
		for _, i := range l.order[e+1 : s+1] {
			l.above[i] = carry
		}
		carry, at = carry+l.same[l.order[s]], c[l.order[s]]
		s = e
	}
}

// tie returns the first position from s in the direction of step whose c differs.
func (l *mmce) tie(s, step int) int {
	e := s
	for e >= 0 && e < len(l.order) && l.c[l.order[e]] == l.c[l.order[s]] {
		e += step
	}
	return e
}
