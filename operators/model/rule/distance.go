package rule

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Distances between two distributions.
const (
	KS          = "ks"
	Wasserstein = "wasserstein"
	PSI         = "psi"
	JS          = "js"
)

// ScoreClass is the score for distances between the shares of predicted classes. Its measures are PSI and JS.
const ScoreClass = "class"

// distance evaluates how far a score's distribution in the latest predictions is from the reference. It is significant
// above its threshold at level Config.Alpha (calib/detect/unlabelled). It needs no labels.
type distance struct {
	*context
	window
}

func newDistance(c *context) Rule { return &distance{context: c} }

func (r *distance) size() int {
	if r.cfg.Score == ScoreClass {
		return stage.ClassBins
	}
	return stage.ScoreBins
}

func (r *distance) Observe(in *stage.Pane) (rows int64, err error) {
	sums := make([]float64, r.size())
	for _, c := range in.Cells {
		n, err := r.addSet(sums, c.Set)
		if err != nil {
			return rows, err
		}
		rows += n
	}
	r.add(r.cfg, rows, sums)
	return rows, nil
}

func (r *distance) addSet(sums []float64, set *acc.Set) (rows int64, err error) {
	if set.Seen == nil {
		return 0, nil
	}
	if r.cfg.Score == ScoreClass {
		if set.Classes == nil {
			return 0, nil
		}
		rows, _ = set.Classes.Total()
		stage.AddClasses(sums, set.Classes)
		return rows, nil
	}
	rows, _ = set.Seen.Total()
	for i, g := range stage.ScoreGrids(set.Seen) {
		if stage.ScoreNames[i] == r.cfg.Score {
			return rows, g.AddRows(sums)
		}
	}
	panic("rule: " + r.cfg.Name + ": score " + r.cfg.Score)
}

// Evaluate compares the latest predictions with the reference.
func (r *distance) Evaluate(int64) (j Evaluation, ok bool, err error) {
	s := r.cfg
	ref, cur, ok := r.windows(s)
	if !ok || cur.rows < max(s.MinRows, 1) {
		return j, false, nil
	}
	d, err := unlabelled.Compare(ref.sums, cur.sums, s.Alpha)
	if err != nil { // there are too few rows
		return j, false, nil
	}
	x, ok := map[string]unlabelled.Distance{
		KS:          d.KS,
		Wasserstein: d.Wasserstein,
		PSI:         d.PSI,
		JS:          d.JensenShannon,
	}[s.Measure]
	if !ok {
		panic("rule: " + s.Name + ": measure " + s.Measure)
	}
	detail := fmt.Sprintf("%s of %s between the last %d predictions and the %s reference of %d is %.4f; "+
		"noise alone makes it %.4f, and above %.4f with probability %g",
		s.Measure, s.Score, cur.rows, s.Reference, ref.rows, x.Value, x.Null, x.Threshold, s.Alpha)
	j = Evaluation{Rows: cur.rows, Value: x.Value, Significant: x.Exceeds(), Unlabelled: true, Detail: detail}
	return j, true, nil
}

// Append appends the rule window.
func (r *distance) Append(dst []byte) []byte { return r.append(dst) }

// Restore reads what Append wrote.
func (r *distance) Restore(in *binenc.Reader) { r.restore(in, r.size()) }
