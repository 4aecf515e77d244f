package acc

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/metric"
)

// KS returns the Kolmogorov–Smirnov calibration error, at the ends of cells:
//
//	KS = max_t |Σ_{c <= t} w·(a - c)| / Σw
//
// The rows of one cell count as one group of equal confidence: the result is at most the raw one, and below it by
// no more than a cell's share of the weight. NaN without weight.
// Reference: Gupta et al., Calibration of Neural Networks using Splines, 2020.
func (g *Grid) KS() float64 {
	if g.w == 0 {
		return math.NaN()
	}
	var sum, worst int64
	keys := g.t.sorted()
	for i, k := range keys {
		e := g.t.get(k)
		sum -= e[gWC]
		if k&1 == 1 {
			sum += e[gW]
		}
		if i+1 == len(keys) || keys[i+1]/2 != k/2 {
			worst = max(worst, sum, -sum)
		}
	}
	return float64(worst) / float64(g.w)
}

// AUROC returns the area under the ROC curve of the confidence as a score for correctness, P(c₁ > c₀) + ½P(c₁ = c₀)
// for a correct and a wrong row drawn by weight; the rows of a cell are tied. NaN unless there are both.
func (g *Grid) AUROC() float64 {
	var below, area, right float64
	for c := range g.Cells() {
		area += c.Correct.W * (below + c.Wrong.W/2)
		below += c.Wrong.W
		right += c.Correct.W
	}
	if below == 0 || right == 0 {
		return math.NaN()
	}
	return area / (below * right)
}

// AURC returns the area under the risk–coverage curve with 0/1 loss, the mean over the rows i of the error rate of
// the rows at or above i:
//
//	AURC = (1/n) Σ_i (Σ_{c_j >= c_i} e_j) / #{c_j >= c_i}
//
// The rows of a cell are tied: they share their mean weight, as tied scores do. A row of weight w is w rows, for any
// real w, as in metric.AURC. NaN without weight.
// Reference: Zhou et al., the finite-sample form with weights H_n - H_{n-r} on ascending rank r.
func (g *Grid) AURC() float64 {
	cells := slices.Collect(g.Cells())
	slices.Reverse(cells)
	var u, e, total float64 // weight and wrong weight of the cells above
	for _, c := range cells {
		w := c.Wrong.W + c.Correct.W
		if w == 0 {
			continue
		}
		risk := c.Wrong.W / w
		// Σ_{i=1..w} (e + i·risk)/(u + i), with the part that depends on i apart.
		total += w * risk
		if d := e - u*risk; d != 0 {
			total += d * harmonic(u, w)
		}
		u += w
		e += c.Wrong.W
	}
	return total / u
}

// EAURC returns AURC less that of the best ordering of the same rows, of weight W and with the same share r of errors:
//
//	E-AURC = AURC - (r - (1-r)·(H_W - H_{W(1-r)}))
func (g *Grid) EAURC() float64 {
	var right, wrong float64
	for c := range g.Cells() {
		right += c.Correct.W
		wrong += c.Wrong.W
	}
	w := right + wrong
	if w == 0 {
		return math.NaN()
	}
	// Rounding can leave a tiny negative number.
	return max(0, g.AURC()-(wrong-right*harmonic(right, wrong))/w)
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

// EqualMass returns m equal-mass bins, of which metric.ECE is `ace`, metric.ECEL2 `ace_l2` and metric.DebiasedL2
// `debiased_l2`. The ranks at which bins end are those of the rows; only how the rows of the cell over such an end are
// shared between the two bins is not known, and taken in proportion. With q_b the cell's share of the weight and v_b
// its width,
//
//	|ace(grid) - ace(rows)| ≤ Σ_b q_b (1 + v_b)/2
//
// over the m-1 inner ends. Many rows at exactly one confidence make that large, but then ace of the rows depends as
// much on their order. Fixed-point rounding adds up to 2^-33·m. It panics if m < 1.
func (g *Grid) EqualMass(m int) []metric.Bin { return metric.EqualMassCells(g.Groups(), m) }

// Sweep returns the bins of the monotonic sweep, of which metric.ECE is `sweep` and metric.ECEL2 `sweep_l2`. With the
// same number of bins as from the rows, the bound is that of EqualMass. The number may differ where two neighbouring
// bins have accuracies closer than that: the metric itself jumps there, whatever it is computed from.
func (g *Grid) Sweep() []metric.Bin { return metric.SweepCells(g.Groups()) }

// SmECE returns `smece`, with the wrong and the right rows of a cell at their mean confidences. Where v = 1/3600 is the
// width of the cells and R = mean |a - c| ≤ 1,
//
//	|smece(grid) - smece(rows)| ≤ √(2/π)·v/smece·R
//
// and in practice more than twenty times less, as a cell's rows lie on both sides of their mean.
func (g *Grid) SmECE() float64 {
	var cells []metric.Bin
	for c := range g.Cells() {
		cells = append(cells,
			metric.Bin{N: c.Wrong.N, W: c.Wrong.W, SumC: c.Wrong.SumC},
			metric.Bin{N: c.Correct.N, W: c.Correct.W, SumC: c.Correct.SumC, SumA: c.Correct.W})
	}
	return metric.SmECECells(cells)
}

// FPR95 returns `fpr95` over thresholds at the low ends of cells: at least that of the rows, and more by no more than
// the share of all wrong rows that lies in one cell, the one with the threshold of the rows.
func (g *Grid) FPR95() float64 { return metric.FPR95Cells(g.Groups()) }
