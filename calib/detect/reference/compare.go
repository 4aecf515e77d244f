package reference

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/metric"
)

// ErrInput is for windows without rows or of different shape.
var ErrInput = errors.New("invalid window")

// Window has the sums of the labelled rows of a window.
type Window struct {
	Bins  []metric.Bin // M equal-width bins, of acc.Grid.Bins
	Cells []metric.Bin // acc.Grid.Groups; may be empty: then SmECE is not known
	NLL   Moments
}

// Moments are the sums of a loss: Σw, Σ w·x, Σ w·x². The zero value says that it is not known.
type Moments struct{ W, Sum, Square float64 }

// Mean returns the mean and its variance, of the rows that the weight stands for where a row weighs 1/perWeight. NaN
// of fewer than two.
func (m Moments) Mean(perWeight float64) (mean, variance float64) {
	n := m.W * perWeight
	if !(n >= 2) {
		return math.NaN(), math.NaN()
	}
	mean = m.Sum / m.W
	return mean, max(0, m.Square/m.W-mean*mean) / (n - 1)
}

// PerWeight returns how many rows a weight of 1 stands for, Σ n_b/Σw with Kish's effective number n_b of each bin: what
// is known of rows does not depend on the scale of their weights.
func (w *Window) PerWeight() float64 {
	var n, weight float64
	for _, b := range w.Bins {
		if b.W > 0 {
			n, weight = n+b.EffectiveN(), weight+b.W
		}
	}
	return n / weight
}

// Options are the settings of SmECE; zero values mean the defaults of metric.Options.
type Options struct {
	Resamples int
	Seed      uint64
}

// Change is a value in the reference and now, and a 95 % interval of the difference, now - reference. NaN where not
// known.
type Change struct{ Reference, Now, Difference, Lo, Hi float64 }

// BinChange is the change of a - c in one bin. P is its two-sided p-value, PHolm that after Holm's correction for the M
// bins: the smallest of them is one p-value for "the curves are the same".
type BinChange struct {
	Change
	P, PHolm float64
}

// Changes are the differences between two windows.
type Changes struct {
	Curve    []BinChange // by bin; NaN, and p-values of 1, where a window has fewer than two rows there
	Accuracy Change      // Newcombe's interval
	NLL      Change      // normal interval
	ECE      Change      // DebiasedECE of the equal-width bins
}

// Compare returns the differences between cur and ref, windows that share no rows. Intervals of differences are by
// MOVER from those [l, u] of the two values x (now) and y (reference):
//
//	Lo = (x - y) - sqrt((x - l_x)² + (u_y - y)²),   Hi = (x - y) + sqrt((u_x - x)² + (y - l_y)²)
//
// with Wilson's for accuracy (Newcombe's hybrid).
// ErrInput where a window has no rows or the numbers of bins differ.
// References: Zou, Donner, Statistics in Medicine 27, 2008; Newcombe, Statistics in Medicine 17, 1998, method 10.
func Compare(ref, cur Window) (Changes, error) {
	if len(ref.Bins) != len(cur.Bins) || len(ref.Bins) == 0 {
		return Changes{}, fmt.Errorf("windows of %d and %d bins, allowed 1 or more, the same: %w", len(ref.Bins),
			len(cur.Bins), ErrInput)
	}
	if !(metric.Total(ref.Bins) > 0) || !(metric.Total(cur.Bins) > 0) {
		return Changes{}, fmt.Errorf("windows of weight %v and %v, allowed above 0: %w", metric.Total(ref.Bins),
			metric.Total(cur.Bins), ErrInput)
	}
	return Changes{Curve: curve(ref.Bins, cur.Bins), Accuracy: accuracy(ref, cur), NLL: nll(ref, cur),
		ECE: mover(debiased(ref.Bins), debiased(cur.Bins))}, nil
}

// estimate is a value with its 95 % interval.
type estimate struct{ value, lo, hi float64 }

func mover(ref, cur estimate) Change {
	d := cur.value - ref.value
	return Change{Reference: ref.value, Now: cur.value, Difference: d,
		Lo: d - math.Hypot(cur.value-cur.lo, ref.hi-ref.value), Hi: d + math.Hypot(cur.hi-cur.value, ref.value-ref.lo)}
}

func unknown() Change {
	nan := math.NaN()
	return Change{nan, nan, nan, nan, nan}
}

func accuracy(ref, cur Window) Change {
	of := func(w Window) estimate {
		var hits, weight float64
		for _, b := range w.Bins {
			hits += b.SumA
			weight += b.W
		}
		rows := w.PerWeight()
		lo, hi := metric.Wilson(hits*rows, weight*rows)
		return estimate{hits / weight, lo, hi}
	}
	return mover(of(ref), of(cur))
}

const z95 = 1.959963984540054

func nll(ref, cur Window) Change {
	m0, v0 := ref.NLL.Mean(ref.PerWeight())
	m1, v1 := cur.NLL.Mean(cur.PerWeight())
	if math.IsNaN(v0 + v1) {
		return unknown()
	}
	half := z95 * math.Sqrt(v0+v1)
	return Change{m0, m1, m1 - m0, m1 - m0 - half, m1 - m0 + half}
}

// DebiasedInterval returns DebiasedECE and half of its 95 % interval, 1.96 sqrt(Σ_b d_b²), d_b half of how much it
// changes between g_b - s_b and g_b + s_b, and at least (n_b/n)·s_b, what the plain ECE does.
func DebiasedInterval(bins []metric.Bin) (ece, half float64) {
	total := metric.Total(bins)
	moved := slices.Clone(bins)
	var variance float64
	for j, b := range bins {
		if !(b.W > 0) {
			continue
		}
		_, v := gap(b)
		s := math.Sqrt(v)
		moved[j].SumA = b.SumA + s*b.W
		up := DebiasedECE(moved)
		moved[j].SumA = b.SumA - s*b.W
		d := max(math.Abs(up-DebiasedECE(moved))/2, b.W/total*s)
		moved[j] = b
		variance += d * d
	}
	return DebiasedECE(bins), z95 * math.Sqrt(variance)
}

func debiased(bins []metric.Bin) estimate {
	ece, half := DebiasedInterval(bins)
	return estimate{ece, ece - half, ece + half}
}

// DebiasedECE returns ECE less what noise adds to it. A bin's gap g of n rows has variance s² = p(1-p)/n (p its
// accuracy, one row of each kind added), so |g| has the mean of a folded normal distribution, which is above the true
// |Δ|. With the Δ of all bins taken for their debiased root mean square:
//
//	Σ_b n_b/n · (|g_b| - E|N(Δ, s_b²)| + Δ),   Δ² = max(0, Σ_b n_b/n (g_b² - s_b²))
//
// Where the model is calibrated that is about 0 at any n, where gaps are large nothing is taken off, as there is
// nothing: windows of different size are comparable. (To take off the null expectation is too much for a model that is
// wrong.) It can be below 0; NaN without rows.
func DebiasedECE(bins []metric.Bin) float64 {
	total := metric.Total(bins)
	var square float64
	for _, b := range bins {
		if b.W > 0 {
			g, v := gap(b)
			square += b.W / total * (g*g - v)
		}
	}
	delta := math.Sqrt(max(0, square))
	var sum float64
	for _, b := range bins {
		if b.W > 0 {
			g, v := gap(b)
			sum += b.W * (math.Abs(g) - folded(delta, math.Sqrt(v)) + delta)
		}
	}
	return sum / total
}

// folded returns E|N(d, s²)|.
func folded(d, s float64) float64 {
	x := d / s
	return s*math.Sqrt(2/math.Pi)*math.Exp(-x*x/2) + d*math.Erf(x/math.Sqrt2)
}

// SmECE returns the difference of the smooth ECE between cur and ref by MOVER, as Compare has it, from intervals by
// resampling.
func SmECE(ref, cur Window, opt Options) (Change, error) {
	if len(ref.Cells) == 0 || len(cur.Cells) == 0 {
		return unknown(), nil
	}
	if opt.Resamples == 0 {
		opt.Resamples = 1000
	}
	of := func(cells []metric.Bin) (estimate, error) {
		iv, err := metric.UncertaintyCells(cells, "smece", metric.Options{Resamples: opt.Resamples, Seed: opt.Seed})
		value := metric.SmECECells(cells)
		return estimate{value, min(iv.Lo, value), max(iv.Hi, value)}, err
	}
	r, err := of(ref.Cells)
	if err != nil {
		return Change{}, fmt.Errorf("smece of the reference: %w", err)
	}
	c, err := of(cur.Cells)
	if err != nil {
		return Change{}, fmt.Errorf("smece of the window: %w", err)
	}
	return mover(r, c), nil
}

// SmECEDifference is SmECE without its interval, for which it resamples.
func SmECEDifference(ref, cur Window) Change {
	if len(ref.Cells) == 0 || len(cur.Cells) == 0 {
		return unknown()
	}
	r, c := metric.SmECECells(ref.Cells), metric.SmECECells(cur.Cells)
	return mover(estimate{r, r, r}, estimate{c, c, c})
}
