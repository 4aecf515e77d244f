package acc

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/metric"
)

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
// over the m-1 inner ends. Many rows at exactly one confidence make that large, but then ace of the rows depends as much
// on their order. Fixed-point rounding adds up to 2^-33·m. It panics if m < 1.
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

// RiskCoverage returns the risk-coverage curve at the low ends of cells, from the highest confidence down: those points
// are exact, and the ones between are missing. Its metric.RiskArea is AURC.
func (g *Grid) RiskCoverage() []metric.RiskPoint { return metric.RiskCoverageCells(g.Groups()) }

// BrierBins returns the m equal-width bins of Bins with what metric.DecomposeBrier needs beside, Σ w·c² and Σ w·c·a.
// Exact but for rounding to 2^-32. m must divide 3600, else ErrShape.
func (g *Grid) BrierBins(m int) ([]metric.BrierBin, error) {
	wrong, correct, err := g.BinsByOutcome(m)
	if err != nil {
		return nil, fmt.Errorf("brier bins: %w", err)
	}
	squares, err := g.SquareSums(m)
	if err != nil {
		return nil, fmt.Errorf("brier bins: %w", err)
	}
	bins := make([]metric.BrierBin, m)
	for i, c := range correct {
		b := wrong[i]
		b.N += c.N
		b.W += c.W
		b.SumC += c.SumC
		b.SumA += c.SumA
		bins[i] = metric.BrierBin{Bin: b, SumC2: squares[i], SumCA: c.SumC}
	}
	return bins, nil
}
