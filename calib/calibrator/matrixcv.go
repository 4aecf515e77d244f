package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// ODIRScore is the held-out NLL of a pair of penalties.
type ODIRScore struct {
	ODIR
	// NLL is the mean over all rows, each under the fit of the folds that it is not in, in nats.
	NLL float64 `json:"nll"`
}

// defaultODIRGrid are the factors of DefaultODIR that CrossValidateODIR tries where it is given no grid, the strongest
// penalty first.
var defaultODIRGrid = []float64{100, 30, 10, 3, 1, 0.3, 0.1}

// CrossValidateODIR chooses the penalties of FitDirichlet, or with logits of FitMatrix, as the paper does: the least
// mean NLL of rows that were held out, over folds. Row i, of those of positive weight, is in fold i mod folds, 2..20.
// A nil grid is the default λ and μ times 100 to 0.1 in seven steps, with the default κ. It returns
// the best pair, which Options.ODIR takes, and the scores of all in the order of the grid. A fit starts where the one
// before it in the grid ended, so a grid in order is cheaper. Fit on all rows afterwards.
// The other arguments and errors are those of FitDirichlet.
func CrossValidateODIR[T kernel.Float](z []T, k int, y []int32, w []float64, logits bool, folds int, grid []ODIR, opts Options) (ODIR, []ODIRScore, error) {
	fail := func(err error) (ODIR, []ODIRScore, error) {
		return ODIR{}, nil, fmt.Errorf("cross-validate odir: %w", err)
	}
	s, err := newSample("odir", z, k, y, w, opts)
	if err != nil {
		return fail(err)
	}
	if folds < 2 || folds > maxFolds || folds > s.n {
		return fail(fmt.Errorf("%d folds of %d rows, allowed 2..%d and no more than rows", folds, s.n, maxFolds))
	}
	if k > maxMatrixClasses {
		return fail(fmt.Errorf("%d classes, allowed 2..%d", k, maxMatrixClasses))
	}
	if err := s.moderate(); err != nil {
		return fail(err)
	}
	if grid == nil {
		def := DefaultODIR(s.n, k)
		for _, v := range defaultODIRGrid {
			grid = append(grid, ODIR{OffDiagonal: v * def.OffDiagonal, Intercept: v * def.Intercept, Diagonal: def.Diagonal})
		}
	}
	scores := make([]ODIRScore, len(grid))
	for i, reg := range grid {
		if scores[i].ODIR, err = reg.withDefaults(s.n, k); err != nil {
			return fail(err)
		}
	}
	x := s.z
	if !logits {
		x = s.logProbs()
	}
	for fold := range folds {
		if err := s.scoreFold(x, fold, folds, scores); err != nil {
			return fail(err)
		}
	}
	best := 0
	for i := range scores {
		scores[i].NLL /= s.total
		if scores[i].NLL < scores[best].NLL {
			best = i
		}
	}
	if len(scores) == 0 || math.IsNaN(scores[best].NLL) {
		return fail(fmt.Errorf("no penalty of a grid of %d is usable", len(scores)))
	}
	return scores[best].ODIR, scores, nil
}

const maxFolds = 20

// scoreFold adds the summed NLL of a fold's rows to the scores.
func (s *sample) scoreFold(x []float64, fold, folds int, scores []ODIRScore) error {
	in, out := &sample{k: s.k}, &sample{k: s.k}
	var xIn, xOut []float64
	for i := range s.n {
		to, at := in, &xIn
		if i%folds == fold {
			to, at = out, &xOut
		}
		to.n++
		to.y, to.w, to.total = append(to.y, s.y[i]), append(to.w, s.w[i]), to.total+s.w[i]
		*at = append(*at, x[i*s.k:(i+1)*s.k]...)
	}
	start, err := in.scaled(xIn)
	if err != nil {
		return err
	}
	fit, held := newMatrixFit(in, xIn), newMatrixFit(out, xOut)
	// The penalties are of all rows: their weight against the rows of a fold's fit is the same.
	for i := range scores {
		scale := s.total / in.total
		reg := ODIR{OffDiagonal: scores[i].OffDiagonal * scale, Intercept: scores[i].Intercept * scale, Diagonal: scores[i].Diagonal * scale}
		start, _, _ = fit.fit(reg, start)
		th := append(append([]float64(nil), start.W...), start.B...)
		held.outputs(th, func(j int, u []float64) { scores[i].NLL += out.w[j] * nllGrad(u, out.y[j]) }, func(int, int) {})
	}
	return nil
}
