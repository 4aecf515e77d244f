package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// check validates the input, and counts what the report tells of it.
func (f *fitter[T]) check() (FitReport, error) {
	n := len(f.y)
	switch {
	case f.k < 2:
		return FitReport{}, fmt.Errorf("%d classes, allowed are 2 and more", f.k)
	case len(f.z)%f.k != 0 || len(f.z)/f.k != n:
		return FitReport{}, fmt.Errorf("%d scores for %d labels, want %d labels × %d classes", len(f.z), n, n, f.k)
	case f.w != nil && len(f.w) != n:
		return FitReport{}, fmt.Errorf("%d weights for %d labels, want one a label", len(f.w), n)
	}
	var r FitReport
	seen := make([]bool, f.k)
	p := make([]float64, f.k)
	for i, y := range f.y {
		w := 1.0
		if f.w != nil {
			w = f.w[i]
		}
		if err := f.checkRow(i, y, w, p); err != nil {
			return FitReport{}, fmt.Errorf("row %d: %w", i, err)
		}
		if w == 0 {
			continue
		}
		f.total += w
		r.Rows++
		if !seen[y] {
			seen[y] = true
			r.Classes++
		}
	}
	if r.Rows == 0 {
		return FitReport{}, fmt.Errorf("no row of positive weight among %d, need at least 1", n)
	}
	return r, nil
}

// Bounds of scores and weights, so that no sum of w·NLL overflows or vanishes. float32 lies within.
const (
	scoreLimit = 1e100
	minWeight  = 1e-100
	maxWeight  = 1e100
)

func weightAllowed(w float64) bool { return w == 0 || w >= minWeight && w <= maxWeight }

func weightError(w float64) error {
	return fmt.Errorf("weight %g, allowed are 0 and %g..%g", w, minWeight, maxWeight)
}

func (f *fitter[T]) checkRow(i int, y int32, w float64, p []float64) error {
	if y < 0 || int(y) >= f.k {
		return fmt.Errorf("label %d, allowed 0..%d", y, f.k-1)
	}
	if !weightAllowed(w) {
		return weightError(w)
	}
	row := f.z[i*f.k : (i+1)*f.k]
	if f.probs {
		if _, ok := kernel.Probs(row, p); !ok {
			return kernel.RowError(row, true)
		}
		return nil
	}
	for k, v := range row {
		x := float64(v)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("score %d is %g, allowed are finite values", k, x)
		}
		if math.Abs(x) > scoreLimit {
			return fmt.Errorf("score %d is %g, allowed %g..%g", k, x, -scoreLimit, scoreLimit)
		}
	}
	return nil
}
