package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/metric"
)

const kindThreshold = "threshold"

// Measures that only rules of kind threshold have.
const (
	measureConfidence = "confidence" // mean confidence of labelled rows
	measureCoverage   = "coverage"   // share of predictions that have a label at the age RuleSpec.Age
)

// z95two is the 97.5 % quantile of the standard normal distribution.
const z95two = 1.959963984540054

// below says that the rule fires on values below its bound.
func (s *RuleSpec) below() bool { return s.Side == "below" }

// labelled reports whether the rule looks at labelled rows by bin.
func (s *RuleSpec) labelled() bool {
	return s.Kind == kindReference || s.Kind == kindThreshold && s.Measure != measureCoverage
}

// beyond reports whether x is on the far side of a bound: below it where the rule is for falls, else above it.
func (s *RuleSpec) beyond(x, bound float64) bool {
	if s.below() {
		return x < bound
	}
	return x > bound
}

// sides are the words for the sides of fire and of clear.
func (s *RuleSpec) sides() (fire, clear string) {
	if s.below() {
		return "below", "above"
	}
	return "above", "below"
}

// threshold judges a value of the latest rows by itself. Value and 95 % interval of n rows, as if their weights were equal:
//
//	accuracy     Wilson's
//	nll          mean ± 1.96 sd/√n of the sampled rows
//	ece          reference.DebiasedECE ± 1.96 times the standard deviation that noise of the bins' accuracies gives it
//	smece        resampled (metric.UncertaintyCells)
//	confidence   mean ± 1.96 sd/√n, by cells of 1/180, whose width counts as noise
//	coverage     Wilson's
//
// It is significant always, or with Interval where the whole interval is beyond Fire. ok is false where there is nothing to judge,
// such as an NLL without two sampled rows, or one that is infinite.
func (s *RuleSpec) threshold(cur sumBlock, m int, opt reference.Options) (j judgement, ok bool, err error) {
	j = judgement{rows: cur.rows, measured: true}
	var value, lo, hi float64
	if s.Measure == measureCoverage {
		value = cur.sums[1] / cur.sums[0]
		lo, hi = metric.Wilson(cur.sums[1], cur.sums[0])
	} else {
		now := s.referenceWindow(cur.sums, m)
		j.ece, j.iv = metric.ECE(now.Bins), metric.Resample(now.Bins, opt.Resamples, opt.Seed)
		if value, lo, hi, err = s.measured(now, opt); err != nil {
			return j, false, err
		}
	}
	if math.IsNaN(value+lo+hi) || math.IsInf(value, 0) || math.IsInf(hi, 0) {
		return j, false, nil
	}
	near := lo
	if s.below() {
		near = hi
	}
	j.value, j.lo, j.hi, j.significant = value, &lo, &hi, !s.Interval || s.beyond(near, s.Fire)
	what := fmt.Sprintf("%s %s of the last %d labelled rows", s.Signal, s.Measure, cur.rows)
	if s.Measure == measureCoverage {
		what = fmt.Sprintf("label coverage of the last %d predictions that are old enough", cur.rows)
	}
	j.detail = fmt.Sprintf("%s is %.4f, 95 %% interval %.4f to %.4f", what, value, lo, hi)
	return j, true, nil
}

// measured returns the measure of labelled rows with its interval.
func (s *RuleSpec) measured(w reference.Window, opt reference.Options) (value, lo, hi float64, err error) {
	switch s.Measure {
	case measureAccuracy:
		var right, weight, n float64
		for _, b := range w.Bins {
			right, weight, n = right+b.SumA, weight+b.W, n+float64(b.N)
		}
		lo, hi = metric.Wilson(right/weight*n, n)
		return right / weight, lo, hi, nil
	case measureNLL:
		value, lo, hi = normal(w.NLL)
		return value, lo, hi, nil
	case measureConfidence:
		value, lo, hi = normal(cellMoments(w.Cells))
		return value, lo, hi, nil
	case measureSmECE:
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

// cellMoments are the moments of the confidences in cells; within a cell they are at most half its width from their mean.
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

// debiasedECE returns DebiasedECE and 1.96 times its standard deviation, which is that of package reference: sqrt(Σ_b d_b²), d_b half of
// how much the value changes when the accuracy of bin b moves from one standard error s_b below to one above, at least (n_b/n)·s_b.
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
