package loss

import (
	"cmp"
	"slices"
)

// aurc is the area under the risk-coverage curve of a row loss ℓ, in its finite-sample form:
//
//	1/n Σ_i (H_n − H_{n−r_i}) ℓ_i
//
// with r_i the ascending rank of row i's CSF, H_n = Σ_{j≤n} 1/j; rows of equal CSF share the mean of their weights.
// The weights have mean 1 and are detached.
// Reference: Zhou et al., Revisiting Reweighted Risk for Calibration; the released −ln(1 − r/n) is infinite at the top.
type aurc struct {
	csf   string
	inner rowLoss

	order   []int32
	g, beta []float64
}

func (a *aurc) add(r *rows, scale float64, grad []float64) float64 {
	a.weigh(r)
	var sum float64
	n := float64(r.n)
	for i := range r.n {
		sum += a.beta[i] * a.inner.row(r, i, scale*a.beta[i]/n, r.part(grad, i))
	}
	return sum / n
}

// weigh fills beta.
func (a *aurc) weigh(r *rows) {
	a.order, a.g, a.beta = grow(a.order, r.n), grow(a.g, r.n), grow(a.beta, r.n)
	for i := range r.n {
		a.order[i], a.g[i] = int32(i), r.rank(a.csf, i)
	}
	g := a.g
	slices.SortFunc(a.order, func(i, j int32) int {
		if c := cmp.Compare(g[i], g[j]); c != 0 {
			return c
		}
		return cmp.Compare(i, j)
	})
	var w float64
	for i := 0; i < r.n; {
		j, group := i, 0.0
		for ; j < r.n && g[a.order[j]] == g[a.order[i]]; j++ {
			w += 1 / float64(r.n-j)
			group += w
		}
		for _, row := range a.order[i:j] {
			a.beta[row] = group / float64(j-i)
		}
		i = j
	}
}
