package model

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/metric"
)

// Measures of rules that compare labelled rows with a reference (kind reference).
const (
	measureECE      = "ece"      // debiased
	measureSmECE    = "smece"    // smooth
	measureAccuracy = "accuracy" // its fall
	measureNLL      = "nll"      // of the sampled rows
	measureCurve    = "curve"    // the largest change of a bin's accuracy - confidence
)

// smoothCells are the cells that smECE is read from.
const smoothCells = 180

// binSize numbers are kept of each bin: rows, Σw, Σ w·c, Σ w·a. Before them stand the moments of NLL: Σw, Σ w·x, Σ w·x².
const (
	binSize     = 4
	momentsSize = 3
)

// labelledSize is the length of the sums of labelled rows.
func (s *RuleSpec) labelledSize(bins int) int {
	n := momentsSize + binSize*bins
	if s.cells() {
		n += binSize * smoothCells
	}
	return n
}

// cells reports whether the measure is read from the fine cells.
func (s *RuleSpec) cells() bool { return s.Measure == measureSmECE || s.Measure == measureConfidence }

// addLabelled adds the labelled rows of a set to sums.
func (s *RuleSpec) addLabelled(sums []float64, set *acc.Set, m int) error {
	at := momentsSize
	for _, n := range []int{m, smoothCells} {
		if at == len(sums) {
			break
		}
		bins, err := set.Labelled.MSP.Bins(n)
		if err != nil {
			return err
		}
		for _, b := range bins {
			sums[at], sums[at+1], sums[at+2], sums[at+3] = sums[at]+float64(b.N), sums[at+1]+b.W, sums[at+2]+b.SumC, sums[at+3]+b.SumA
			at += binSize
		}
	}
	return nil
}

// binsOf reads bins from sums.
func binsOf(sums []float64) []metric.Bin {
	bins := make([]metric.Bin, len(sums)/binSize)
	for j := range bins {
		b := sums[j*binSize:]
		bins[j] = metric.Bin{N: int64(b[0]), W: b[1], SumC: b[2], SumA: b[3]}
	}
	return bins
}

// referenceWindow is what package reference compares.
func (s *RuleSpec) referenceWindow(sums []float64, m int) reference.Window {
	w := reference.Window{NLL: reference.Moments{W: sums[0], Sum: sums[1], Square: sums[2]}, Bins: binsOf(sums[momentsSize : momentsSize+binSize*m])}
	if s.cells() {
		for _, b := range binsOf(sums[momentsSize+binSize*m:]) {
			if b.N > 0 {
				w.Cells = append(w.Cells, b)
			}
		}
	}
	return w
}

// compare judges the latest rows against the reference: value is the change for the worse. ok is false where there is nothing to
// compare, such as an NLL without sampled rows.
func (s *RuleSpec) compare(ref, cur sumBlock, m int, opt reference.Options) (j judgement, ok bool, err error) {
	now := s.referenceWindow(cur.sums, m)
	c, err := reference.Compare(s.referenceWindow(ref.sums, m), now, opt)
	if err != nil {
		return j, false, err
	}
	j = judgement{rows: cur.rows, measured: true, ece: metric.ECE(now.Bins), iv: metric.Resample(now.Bins, opt.Resamples, opt.Seed)}
	var d reference.Change
	switch s.Measure {
	case measureECE:
		d = c.ECE
	case measureSmECE:
		d = c.SmECE
	case measureNLL:
		d = c.NLL
	case measureAccuracy:
		a := c.Accuracy
		d = reference.Change{Reference: a.Reference, Now: a.Now, Difference: -a.Difference, Lo: -a.Hi, Hi: -a.Lo}
	case measureCurve:
		return curveJudgement(j, c.Curve, s, ref.rows)
	}
	if math.IsNaN(d.Difference) {
		return j, false, nil
	}
	j.value, j.lo, j.hi, j.significant = d.Difference, &d.Lo, &d.Hi, d.Lo > 0
	j.detail = fmt.Sprintf("%s %s %.4f over the last %d labelled rows, %.4f in the %s reference of %d: worse by %.4f, 95 %% interval %.4f to %.4f",
		s.Signal, s.Measure, d.Now, cur.rows, d.Reference, s.Reference, ref.rows, d.Difference, d.Lo, d.Hi)
	return j, true, nil
}

// curveLevel is the level of the test that the curves are the same, Holm-corrected for the bins.
const curveLevel = .05

// curveJudgement takes the largest change among the bins that have changed after Holm's correction, else among all.
func curveJudgement(j judgement, bins []reference.BinChange, s *RuleSpec, refRows int64) (judgement, bool, error) {
	best := -1
	for i, b := range bins {
		if math.IsNaN(b.Difference) {
			continue
		}
		sure := b.PHolm < curveLevel
		if best < 0 || sure && !j.significant || sure == j.significant && math.Abs(b.Difference) > j.value {
			best, j.value, j.significant = i, math.Abs(b.Difference), sure
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
	j.lo, j.hi = &lo, &hi
	m := float64(len(bins))
	j.detail = fmt.Sprintf("%s calibration curve over the last %d labelled rows: accuracy - confidence in (%.3g, %.3g] is %+.4f, %+.4f in the %s reference of %d rows (p = %.2g for the whole curve)",
		s.Signal, j.rows, float64(best)/m, float64(best+1)/m, b.Now, b.Change.Reference, s.Reference, refRows, b.PHolm)
	return j, true, nil
}
