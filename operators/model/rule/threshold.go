package rule

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Measures that only rules of kind threshold have.
const (
	CWECE      = "cwece"      // class-wise ECE
	Confidence = "confidence" // mean confidence of labelled rows
	Coverage   = "coverage"   // share of predictions that have a label at the age Config.Age
)

// z95two is the 97.5 % quantile of the standard normal distribution.
const z95two = 1.959963984540054

// threshold evaluates a measure of the latest labelled rows itself. The 95 % interval over n rows treats all weights as
// equal:
//
//	accuracy     Wilson's
//	nll          mean ± 1.96 sd/√n of the sampled rows
//	ece          reference.DebiasedECE ± 1.96 times the standard deviation that noise of the bins' accuracies gives it
//	smece        resampled (metric.UncertaintyCells)
//	cwece        from 1.96 standard deviations and the null below the value to 1.96 above it (acc.ClassWise.Chance):
//	             on average noise adds to it, and at most the null
//	confidence   mean ± 1.96 sd/√n, by cells of 1/180, whose width counts as noise
//	coverage     Wilson's
//
// It is always significant, or with Interval only if the whole interval is beyond Fire. ok is false if the value is not
// a finite number, such as an NLL with fewer than two sampled rows.
type threshold struct{ *labelled }

func newThreshold(c *context) Rule {
	if c.cfg.Measure == Coverage {
		return &coverage{context: c}
	}
	return threshold{&labelled{context: c}}
}

func (r threshold) Evaluate(pane int64) (j Evaluation, ok bool, err error) {
	_, cur, _ := r.windows(r.cfg)
	if cur.rows < max(r.cfg.MinRows, 1) {
		return j, false, nil
	}
	opt := r.options(pane)
	now := r.cfg.referenceWindow(cur.sums, r.env.Bins)
	j = Evaluation{Rows: cur.rows, Bins: now.Bins,
		Interval: func() metric.Interval { return metric.Resample(now.Bins, opt.Resamples, opt.Seed) }}
	if r.cfg.Measure == CWECE {
		return r.classWise(j)
	}
	what := fmt.Sprintf("%s %s of the last %d %s", r.cfg.Signal, r.cfg.Measure, cur.rows,
		stage.RowsOf(r.cfg.Signal))
	if r.cfg.Measure == SmECE {
		return r.smooth(j, now, opt, what)
	}
	value, lo, hi := r.cfg.measured(now)
	return r.cfg.withBounds(j, value, lo, hi, what)
}

// smooth completes the evaluation of measure smece.
func (r threshold) smooth(j Evaluation, w reference.Window, opt reference.Options, what string) (Evaluation, bool,
	error) {
	value := metric.SmECECells(w.Cells)
	plain := j
	j, ok, err := r.cfg.withBounds(j, value, value, value, what)
	j.Bounded = func() (Evaluation, error) {
		iv, err := metric.UncertaintyCells(w.Cells, "smece", metric.Options{Resamples: opt.Resamples, Seed: opt.Seed})
		if err != nil {
			return plain, err
		}
		full, _, err := r.cfg.withBounds(plain, value, min(iv.Lo, value), max(iv.Hi, value), what)
		return full, err
	}
	return j, ok, err
}

// classWise completes the evaluation of measure cwece.
func (r threshold) classWise(j Evaluation) (Evaluation, bool, error) {
	classes, err := r.latestClasses(r.cfg)
	if err != nil {
		return j, false, err
	}
	value, _ := classes.ECE()
	null, sd := classes.Chance()
	half := z95two * sd
	what := fmt.Sprintf("%s class-wise ECE (cwece) of the last %d %s", r.cfg.Signal, j.Rows,
		stage.RowsOf(r.cfg.Signal))
	j, ok, err := r.cfg.withBounds(j, value, max(value-null-half, 0), min(value+half, 1), what)
	j.Detail += fmt.Sprintf("; a calibrated model would show about %.4f", null)
	return j, ok, err
}

// withBounds fills in a value and its interval, and checks the interval against Fire. ok is false if the value is not a
// finite number.
func (s *Config) withBounds(j Evaluation, value, lo, hi float64, what string) (Evaluation, bool, error) {
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

// measured returns the measure of labelled rows and its interval.
func (s *Config) measured(w reference.Window) (value, lo, hi float64) {
	switch s.Measure {
	case Accuracy:
		all := metric.Sum(w.Bins)
		lo, hi = metric.Wilson(all.Acc()*float64(all.N), float64(all.N))
		return all.Acc(), lo, hi
	case NLL:
		value, lo, hi = normal(w.NLL, w.PerWeight())
		return value, lo, hi
	case ECE:
		value, half := reference.DebiasedInterval(w.Bins)
		return value, value - half, value + half
	case Confidence:
		value, lo, hi = normal(cellMoments(w.Cells), 1)
		return value, lo, hi
	}
	panic("rule: " + s.Name + ": measure " + s.Measure)
}

// normal returns the mean for the given moments, ± 1.96 standard errors. It returns NaN for fewer than two rows.
func normal(m reference.Moments, perWeight float64) (mean, lo, hi float64) {
	mean, variance := m.Mean(perWeight)
	half := z95two * math.Sqrt(variance)
	return mean, mean - half, mean + half
}

// cellMoments returns the moments of the confidences in cells. It adds the variance within a cell, assuming that
// confidences differ from their mean by at most half the cell's width.
func cellMoments(cells []metric.Bin) (m reference.Moments) {
	const within = 1. / (4 * smoothCells * smoothCells)
	var n float64
	for _, b := range cells {
		c := b.SumC / b.W
		n += float64(b.N)
		m.W, m.Sum, m.Square = m.W+b.W, m.Sum+b.SumC, m.Square+b.W*(c*c+within)
	}
	f := n / m.W // scale to rows, whatever the scale of their weights
	return reference.Moments{W: n, Sum: f * m.Sum, Square: f * m.Square}
}
