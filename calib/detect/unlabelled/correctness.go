package unlabelled

import (
	"fmt"
	"math"
)

// CorrectnessAssumption is what CorrectnessShift rests on.
const CorrectnessAssumption = "P(confidence | right) and P(confidence | wrong) are as in the labelled reference: " +
	"only the share of right predictions has moved"

// CorrectnessShift returns the accuracy of unlabelled rows from the distribution of their confidence alone: label shift
// with the two classes right and wrong, and the bin of the confidence as the black box. right, wrong and now are counts
// of rows in the same k bins, of the labelled reference and of the unlabelled rows. With the split s of the bins where
// right and wrong rows differ most,
//
//	t = P(bin ≥ s | right),  f = P(bin ≥ s | wrong),  s = argmax |t - f|,  μ = P(bin ≥ s now)
//	accuracy = π = (μ - f)/(t - f), clipped to [0, 1]
//	var(π) = (μ(1-μ)/m + π² t(1-t)/n₁ + (1-π)² f(1-f)/n₀)/(t - f)²,  SE² = var(accuracy)
//	[Lo, Hi] = {π: |π - (μ - f)/(t - f)| ≤ 1.96 sqrt(var(π))}, clipped to [0, 1]
//
// which for two bins is black-box shift estimation (package shift) of two classes. The interval is Fieller's, as t - f
// may be little more than its own error; [0, 1] where it is less. An interval without an inner point of [0, 1] refutes
// the assumption, as μ is then no mixture of t and f: Rejected, and the end of [0, 1] that is nearest is no estimate.
// Shares are one row of each kind more, so that no variance is 0. ECE is NaN. ErrInput where shapes differ, a count is
// negative or not finite, there are fewer than 10 rows of one sort, or |t - f| < 0.05: confidence then does not tell
// right from wrong.
// References: Lipton, Wang, Smola, Detecting and Correcting for Label Shift with Black Box Predictors, ICML 2018,
// section 4. Fieller, Some Problems in Interval Estimation, JRSS B 16, 1954.
func CorrectnessShift(right, wrong, now []float64) (Estimate, error) {
	k := len(now)
	if k < 2 || len(right) != k || len(wrong) != k {
		return Estimate{}, fmt.Errorf("%d, %d and %d bins, allowed 2 or more, the same: %w", len(right), len(wrong), k,
			ErrInput)
	}
	var n [3]float64
	for i, h := range [][]float64{right, wrong, now} {
		var err error
		if n[i], err = total([]string{"right", "wrong", "now"}[i], h); err != nil {
			return Estimate{}, err
		}
	}
	var best, above [3]float64
	for s := k - 1; s > 0; s-- {
		above[0], above[1], above[2] = above[0]+right[s], above[1]+wrong[s], above[2]+now[s]
		if math.Abs(above[0]/n[0]-above[1]/n[1]) > math.Abs(best[0]/n[0]-best[1]/n[1]) {
			best = above
		}
	}
	share := func(i int) float64 { return (best[i] + 1) / (n[i] + 2) }
	t, f, mu := share(0), share(1), share(2)
	if math.Abs(t-f) < minContrast {
		return Estimate{}, fmt.Errorf("confidence above the best split has share %.3g among right and %.3g among "+
			"wrong rows, allowed to differ by %g or more: %w", t, f, minContrast, ErrInput)
	}
	p := min(1, max(0, (mu-f)/(t-f)))
	vt, vf, vmu := t*(1-t)/n[0], f*(1-f)/n[1], mu*(1-mu)/n[2]
	e := Estimate{Method: "correctness shift (BBSE)", Assumption: CorrectnessAssumption, N: int64(n[2]), Accuracy: p,
		ECE: math.NaN(), SE: math.Sqrt(vmu+p*p*vt+(1-p)*(1-p)*vf) / math.Abs(t-f)}
	lo, hi := fieller(t-f, mu-f, vt, vf, vmu)
	e.Rejected = hi <= 0 || lo >= 1
	e.Lo, e.Hi = min(1, max(0, lo)), min(1, max(0, hi))
	return e, nil
}

// fieller returns the ends of the π with (y - π d)² ≤ 1.96² (var μ + π² var t + (1 - π)² var f), where y = μ - f and
// d = t - f; [0, 1] where all or those outside an interval are such.
func fieller(d, y, vt, vf, vmu float64) (lo, hi float64) {
	const zz = z95 * z95
	a := d*d - zz*(vt+vf)
	if a <= 0 {
		return 0, 1
	}
	mid := (y*d - zz*vf) / a
	half := math.Sqrt(max(0, mid*mid-(y*y-zz*(vmu+vf))/a))
	return mid - half, mid + half
}

const minContrast = .05
