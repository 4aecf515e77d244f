package rule

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Measures of rules that compare labelled rows with a reference (kind reference).
const (
	ECE      = "ece"      // debiased
	SmECE    = "smece"    // smooth
	Accuracy = "accuracy" // its fall
	NLL      = "nll"      // of the sampled rows
	Curve    = "curve"    // the largest change of a bin's accuracy - confidence
)

// comparison evaluates how much worse a measure is than in the reference (calib/detect/reference).
type comparison struct{ *labelled }

func newComparison(c *context) Rule { return comparison{&labelled{context: c}} }

// Evaluate compares the latest rows with the reference. The value is the change for the worse. ok is false if there is
// nothing to compare, such as an NLL without sampled rows.
func (r comparison) Evaluate(pane int64) (j Evaluation, ok bool, err error) {
	s, m, opt := r.cfg, r.env.Bins, r.options(pane)
	ref, cur, ok := r.windows(s)
	if !ok || cur.rows < max(s.MinRows, 1) {
		return j, false, nil
	}
	before, now := s.referenceWindow(ref.sums, m), s.referenceWindow(cur.sums, m)
	c, err := reference.Compare(before, now)
	if err != nil {
		return j, false, err
	}
	j = Evaluation{Rows: cur.rows, Bins: now.Bins,
		Interval: func() metric.Interval { return metric.Resample(now.Bins, opt.Resamples, opt.Seed) }}
	var d reference.Change
	switch s.Measure {
	case ECE:
		d = c.ECE
	case SmECE:
		d = reference.SmECEDifference(before, now)
		plain := j
		j.Bounded = func() (Evaluation, error) {
			d, err := reference.SmECE(before, now, opt)
			return r.worse(plain, d, ref.rows), err
		}
	case NLL:
		d = c.NLL
	case Accuracy:
		a := c.Accuracy
		d = reference.Change{Reference: a.Reference, Now: a.Now, Difference: -a.Difference, Lo: -a.Hi, Hi: -a.Lo}
	case Curve:
		return evaluateCurve(j, c.Curve, s, ref.rows)
	default:
		panic("rule: " + s.Name + ": measure " + s.Measure)
	}
	if math.IsNaN(d.Difference) {
		return j, false, nil
	}
	return r.worse(j, d, ref.rows), true, nil
}

// worse fills in a change for the worse from a reference of so many rows.
func (r comparison) worse(j Evaluation, d reference.Change, refRows int64) Evaluation {
	s := r.cfg
	j.Value, j.Lo, j.Hi, j.Significant = d.Difference, &d.Lo, &d.Hi, d.Lo > 0
	j.Detail = fmt.Sprintf("%s %s %.4f over the last %d %s, %.4f in the %s reference of %d: "+
		"worse by %.4f, 95 %% interval %.4f to %.4f",
		s.Signal, s.Measure, d.Now, j.Rows, stage.RowsOf(s.Signal), d.Reference, s.Reference, refRows,
		d.Difference, d.Lo, d.Hi)
	return j
}

// curveLevel is the level of the test that the curves are the same, Holm-corrected for the bins.
const curveLevel = .05

// evaluateCurve picks the bin with the largest change: among the bins whose change is significant after Holm's
// correction, or among all bins if there is none.
func evaluateCurve(j Evaluation, bins []reference.BinChange, s *Config, refRows int64) (Evaluation, bool, error) {
	best := -1
	for i, b := range bins {
		if math.IsNaN(b.Difference) {
			continue
		}
		sure := b.PHolm < curveLevel
		if best < 0 || sure && !j.Significant || sure == j.Significant && math.Abs(b.Difference) > j.Value {
			best, j.Value, j.Significant = i, math.Abs(b.Difference), sure
		}
	}
	if best < 0 {
		return j, false, nil
	}
	b := bins[best]
	lo, hi := b.Lo, b.Hi
	if b.Difference < 0 {
		lo, hi = -b.Hi, -b.Lo
	}
	j.Lo, j.Hi = &lo, &hi
	m := float64(len(bins))
	j.Detail = fmt.Sprintf("%s calibration curve over the last %d %s: "+
		"accuracy - confidence in (%.3g, %.3g] is %+.4f, %+.4f in the %s reference of %d rows "+
		"(p = %.2g for the whole curve)",
		s.Signal, j.Rows, stage.RowsOf(s.Signal), float64(best)/m, float64(best+1)/m, b.Now, b.Change.Reference,
		s.Reference, refRows, b.PHolm)
	return j, true, nil
}
