package acc

import (
	"math"

	"github.com/plumbline/plumbline/calib/metric"
)

// AURC returns the area under the risk–coverage curve with 0/1 loss, the mean over the rows i of the error rate of
// the rows at or above i:
//
//	AURC = (1/n) Σ_i (Σ_{c_j >= c_i} e_j) / #{c_j >= c_i}
//
// The rows of a cell are tied: they share their mean weight, as tied scores do. A row of weight w is w rows, for any
// real w, as in metric.AURC. NaN without weight.
// Reference: Zhou et al., the finite-sample form with weights H_n - H_{n-r} on ascending rank r.
func (g *Grid) AURC() float64 {
	o := g.t.sorted()
	var u, e, total float64 // weight and wrong weight of the cells above
	for i := len(o.keys) - 1; i >= 0; i-- {
		var by [2]float64 // weight by outcome
		key := o.keys[i]
		by[key&1] = unfix(o.nth(i)[gW])
		if i > 0 && o.keys[i-1] == key^1 {
			i--
			by[0] = unfix(o.nth(i)[gW])
		}
		w := by[0] + by[1]
		if w == 0 {
			continue
		}
		risk := by[0] / w
		// Σ_{i=1..w} (e + i·risk)/(u + i), with the part that depends on i apart.
		total += w * risk
		if d := e - u*risk; d != 0 {
			total += d * harmonic(u, w)
		}
		u += w
		e += by[0]
	}
	return total / u
}

// harmonic returns H_{x+n} - H_x = Σ_{i=1..n} 1/(x+i) for x >= 0, n >= 0; n need not be whole.
func harmonic(x, n float64) float64 {
	const direct = 64 // below, the terms themselves: the difference of two digammas cancels for large x
	if n <= direct && n == math.Floor(n) {
		s := 0.0
		for i := n; i >= 1; i-- {
			s += 1 / (x + i)
		}
		return s
	}
	return digamma(x+n+1) - digamma(x+1)
}

// digamma returns ψ(x) for x > 0: recurrence up to x >= 16, then the asymptotic series, whose first dropped term
// is below 1e-16 there.
func digamma(x float64) float64 {
	s := 0.0
	for ; x < 16; x++ {
		s -= 1 / x
	}
	y := 1 / (x * x)
	return s + math.Log(x) - 0.5/x - y*(1.0/12-y*(1.0/120-y*(1.0/252-y*(1.0/240-y*(1.0/132)))))
}

// Groups returns the cells that have rows, ascending, with right and wrong rows put together: what the functions of
// package metric that end in Cells read. For null expectations and intervals:
//
//	iv, err := metric.UncertaintyCells(grid.Groups(), "ks", metric.Options{Seed: seed})
//
// A cell is at most 1/3600 wide.
func (g *Grid) Groups() []metric.Bin {
	var cells []metric.Bin
	for c := range g.Cells() {
		w := c.Wrong.W + c.Correct.W
		// Σ w·c is rounded: keep the mean inside the cell, and the cells in order.
		sum := min(c.Hi*w, max(c.Lo*w, c.Wrong.SumC+c.Correct.SumC))
		cells = append(cells, metric.Bin{N: c.Wrong.N + c.Correct.N, W: w, SumC: sum, SumA: c.Correct.W})
	}
	return cells
}
