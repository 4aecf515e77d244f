package rule

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Measures that only rules of kind threshold have.
const (
	Confidence = "confidence" // mean confidence of labelled rows
	Coverage   = "coverage"   // share of predictions that have a label at the age Config.Age
)

// z95two is the 97.5 % quantile of the standard normal distribution.
const z95two = 1.959963984540054

// threshold judges a measure of the latest labelled rows by itself. Value and 95 % interval of n rows, as if their
// weights were equal:
//
//	accuracy     Wilson's
//	nll          mean ± 1.96 sd/√n of the sampled rows
//	ece          reference.DebiasedECE ± 1.96 times the standard deviation that noise of the bins' accuracies gives it
//	smece        resampled (metric.UncertaintyCells)
//	confidence   mean ± 1.96 sd/√n, by cells of 1/180, whose width counts as noise
//	coverage     Wilson's
//
// It is significant always, or with Interval where the whole interval is beyond Fire. ok is false where there is
// nothing to judge, such as an NLL without two sampled rows, or one that is infinite.
type threshold struct{ *labelled }

func newThreshold(c *context) Rule {
	if c.cfg.Measure == Coverage {
		return &coverage{context: c}
	}
	return threshold{&labelled{context: c}}
}

func (r threshold) Judge(in *stage.Pane) (j Judgement, ok bool, err error) {
	_, cur, _ := r.windows(r.cfg)
	if cur.rows < max(r.cfg.MinRows, 1) {
		return j, false, nil
	}
	opt := r.options(in)
	now := r.cfg.referenceWindow(cur.sums, r.env.Bins)
	j = Judgement{Rows: cur.rows, ECE: metric.ECE(now.Bins), Interval: metric.Resample(now.Bins, opt.Resamples,
		opt.Seed)}
	value, lo, hi, err := r.cfg.measured(now, opt)
	if err != nil {
		return j, false, err
	}
	return r.cfg.hold(j, value, lo, hi, fmt.Sprintf("%s %s of the last %d labelled rows", r.cfg.Signal, r.cfg.Measure,
		cur.rows))
}

// hold holds a value with its interval against the bounds. ok is false where the value is no number.
func (s *Config) hold(j Judgement, value, lo, hi float64, what string) (Judgement, bool, error) {
	if math.IsNaN(value+lo+hi) || math.IsInf(value, 0) || math.IsInf(hi, 0) {
		return j, false, nil
	}
	near := lo
	if s.below() {
		near = hi
	}
	j.Value, j.Lo, j.Hi, j.Significant = value, &lo, &hi, !s.Interval || s.beyond(near, s.Fire)
	j.Detail = fmt.Sprintf("%s is %.4f, 95 %% interval %.4f to %.4f", what, value, lo, hi)
	return j, true, nil
}

// measured returns the measure of labelled rows with its interval.
func (s *Config) measured(w reference.Window, opt reference.Options) (value, lo, hi float64, err error) {
	switch s.Measure {
	case Accuracy:
		var right, weight, n float64
		for _, b := range w.Bins {
			right, weight, n = right+b.SumA, weight+b.W, n+float64(b.N)
		}
		lo, hi = metric.Wilson(right/weight*n, n)
		return right / weight, lo, hi, nil
	case NLL:
		value, lo, hi = normal(w.NLL)
		return value, lo, hi, nil
	case Confidence:
		value, lo, hi = normal(cellMoments(w.Cells))
		return value, lo, hi, nil
	case SmECE:
		iv, err := metric.UncertaintyCells(w.Cells, "smece", metric.Options{Resamples: opt.Resamples, Seed: opt.Seed})
		value = metric.SmECECells(w.Cells)
		return value, min(iv.Lo, value), max(iv.Hi, value), err
	}
	value, half := debiasedECE(w.Bins)
	return value, value - half, value + half, nil
}

// normal returns the mean of what has these moments, ± 1.96 standard errors; NaN below a weight of 2.
func normal(m reference.Moments) (mean, lo, hi float64) {
	if m.W < 2 {
		nan := math.NaN()
		return nan, nan, nan
	}
	mean = m.Sum / m.W
	half := z95two * math.Sqrt(max(0, m.Square/m.W-mean*mean)/(m.W-1))
	return mean, mean - half, mean + half
}

// cellMoments are the moments of the confidences in cells; within a cell they are at most half its width from their
// mean.
func cellMoments(cells []metric.Bin) (m reference.Moments) {
	const within = 1. / (4 * smoothCells * smoothCells)
	var n float64
	for _, b := range cells {
		c := b.SumC / b.W
		n += float64(b.N)
		m.W, m.Sum, m.Square = m.W+b.W, m.Sum+b.SumC, m.Square+b.W*(c*c+within)
	}
	f := n / m.W // rows count, whatever the scale of their weights
	return reference.Moments{W: n, Sum: f * m.Sum, Square: f * m.Square}
}

// debiasedECE returns DebiasedECE and 1.96 times its standard deviation, which is that of package reference: sqrt(Σ_b
// d_b²), d_b half of how much the value changes when the accuracy of bin b moves from one standard error s_b below to
// one above, at least (n_b/n)·s_b.
func debiasedECE(bins []metric.Bin) (ece, half float64) {
	total, moved := metric.Total(bins), slices.Clone(bins)
	var variance float64
	for i, b := range bins {
		if !(b.W > 0) {
			continue
		}
		n := b.EffectiveN()
		p := (b.Acc()*n + 1) / (n + 2)
		se := math.Sqrt(p * (1 - p) / n)
		moved[i].SumA = b.SumA + se*b.W
		up := reference.DebiasedECE(moved)
		moved[i].SumA = b.SumA - se*b.W
		d := max(math.Abs(up-reference.DebiasedECE(moved))/2, b.W/total*se)
		moved[i] = b
		variance += d * d
	}
	return reference.DebiasedECE(bins), z95two * math.Sqrt(variance)
}
