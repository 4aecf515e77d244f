package model

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/calib/metric"
)

// Measures of rules on predictions without labels: distances (kind distance) and estimates (kind estimate).
const (
	measureKS          = "ks"
	measureWasserstein = "wasserstein"
	measurePSI         = "psi"
	measureJS          = "js"
	measureMiss        = "miss" // how far the confidence-based estimate is from the truth, of labelled rows
)

// scoreClass is the score of distances of the shares of predicted classes; their measures are psi and js.
const scoreClass = "class"

// confSize numbers are kept of each bin of an estimate: rows, Σc·rows, right rows.
const confSize = 3

// missBound is from how many standard errors on an estimate has failed.
const missBound = 3

// unlabelledSize is the length of the sums.
func (s *RuleSpec) unlabelledSize() int {
	if s.Kind == kindDistance && s.Score == scoreClass {
		return classBins
	}
	if s.Kind == kindDistance {
		return csfBins
	}
	return confSize * csfBins
}

// addSeen adds the predictions of a set, or for measureMiss its labelled rows.
func (s *RuleSpec) addSeen(sums []float64, set *acc.Set) (rows int64, err error) {
	if s.Measure == measureMiss {
		if set.LabelledRows() == 0 {
			return 0, nil
		}
		return set.LabelledRows(), addConfidences(sums, &set.Labelled.MSP)
	}
	if set.Seen == nil {
		return 0, nil
	}
	rows, _ = set.Seen.Total()
	if s.Kind != kindDistance {
		return rows, addConfidences(sums, &set.Seen.MSP)
	}
	if s.Score == scoreClass {
		if set.Classes == nil {
			return 0, nil
		}
		rows, _ = set.Classes.Total()
		addClasses(sums, set.Classes)
		return rows, nil
	}
	for i, g := range csfGrids(set.Seen) {
		if csfNames[i] == s.Score {
			return rows, addCounts(sums, g)
		}
	}
	panic("operators: rule " + s.Name + ": score " + s.Score)
}

func addConfidences(sums []float64, g *acc.Grid) error {
	bins, err := g.Bins(csfBins)
	if err != nil {
		return err
	}
	for j, b := range bins {
		if b.N == 0 {
			continue
		}
		n := float64(b.N)
		sums[j*confSize] += n
		sums[j*confSize+1] += n * b.Conf()
		sums[j*confSize+2] += n * b.Acc()
	}
	return nil
}

// distance judges the latest predictions by their distance from the reference: significant where it is above its threshold.
func (s *RuleSpec) distance(ref, cur sumBlock) (judgement, bool) {
	d, err := unlabelled.Compare(ref.sums, cur.sums, s.Alpha)
	if err != nil { // too few rows
		return judgement{}, false
	}
	x := map[string]unlabelled.Distance{measureKS: d.KS, measureWasserstein: d.Wasserstein, measurePSI: d.PSI, measureJS: d.JensenShannon}[s.Measure]
	return judgement{rows: cur.rows, measured: true, value: x.Value, significant: x.Exceeds(),
		detail: fmt.Sprintf("%s of %s between the last %d predictions and the %s reference of %d is %.4f; noise alone makes it %.4f, and above %.4f with probability %g",
			s.Measure, s.Score, cur.rows, s.Reference, ref.rows, x.Value, x.Null, x.Threshold, s.Alpha)}, true
}

// estimate judges the confidence-based estimate of the latest rows: accuracy by its fall from that of the labelled reference, ece by
// itself, miss by its distance from the truth.
func (s *RuleSpec) estimate(k *keyState, spec *UnlabelledSpec, cur sumBlock, bins int) (judgement, bool) {
	cells := make([]metric.Bin, 0, csfBins)
	var right float64
	for j := range csfBins {
		if n := cur.sums[j*confSize]; n > 0 {
			cells = append(cells, metric.Bin{N: int64(n), W: n, SumC: cur.sums[j*confSize+1]})
			right += cur.sums[j*confSize+2]
		}
	}
	e := unlabelled.ConfidenceBased(cells, k.drift.q.at, bins)
	j := judgement{rows: cur.rows, measured: true}
	switch s.Measure {
	case measureECE:
		j.value, j.significant = e.ECE, true
		j.detail = fmt.Sprintf("estimated ECE of the last %d predictions is %.4f, if %s", cur.rows, e.ECE, e.Assumption)
	case measureMiss:
		m := e.Against(right, float64(cur.rows))
		lo, hi := math.Abs(m.Difference)-1.96*m.SE, math.Abs(m.Difference)+1.96*m.SE
		j.value, j.lo, j.hi, j.significant = math.Abs(m.Difference), &lo, &hi, math.Abs(m.Z) > missBound
		j.detail = fmt.Sprintf("of the last %d labelled rows accuracy was estimated at %.4f without their labels and is %.4f, %.1f standard errors off: not true that %s",
			cur.rows, e.Accuracy, right/float64(cur.rows), math.Abs(m.Z), e.Assumption)
	default:
		if !k.drift.ref.labelledFull(spec) {
			return j, false
		}
		var was float64
		for _, n := range k.drift.ref.outcome[1] {
			was += n
		}
		total := k.drift.ref.labelled
		refLo, refHi := metric.Wilson(was, total)
		was /= total
		d := was - e.Accuracy
		lo, hi := d-math.Hypot(was-refLo, e.Hi-e.Accuracy), d+math.Hypot(refHi-was, e.Accuracy-e.Lo)
		j.value, j.lo, j.hi, j.significant = d, &lo, &hi, lo > 0
		j.detail = fmt.Sprintf("estimated accuracy of the last %d predictions is %.4f, %.4f in the labelled reference of %.0f rows, if %s", cur.rows, e.Accuracy, was, total, e.Assumption)
	}
	return j, true
}
