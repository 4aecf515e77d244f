package rule

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Miss is the measure for the difference between the confidence-based estimate of accuracy and the true accuracy of
// labelled rows.
const Miss = "miss"

// confSize is how many numbers an estimate keeps for each bin: rows, Σc·rows, correct rows.
const confSize = 3

// missBound is the number of standard errors beyond which an estimate has failed.
const missBound = 3

// estimate evaluates the confidence-based estimate of the latest rows. Its value is the fall from the labelled
// reference for accuracy, the estimate itself for ECE, and the difference from the truth for miss. The map of
// confidences and the reference come from the key's Estimator.
type estimate struct {
	*context
	window
}

func newEstimate(c *context) Rule { return &estimate{context: c} }

const estimateSize = confSize * stage.ScoreBins

// Observe adds the predictions of a pane, or for measure miss its labelled rows: of rows that were predicted under the
// present map of confidences only.
func (r *estimate) Observe(in *stage.Pane) (rows int64, err error) {
	since, turned := int64(math.MinInt64), false
	if r.key.Estimator != nil {
		since, turned = r.key.Estimator.Mapped()
	}
	if turned {
		r.blocks = nil
	}
	sums := make([]float64, estimateSize)
	for _, c := range in.Cells {
		if c.PredictionPane*r.env.Pane < since {
			continue
		}
		n, err := r.addSet(sums, c.Set)
		if err != nil {
			return rows, err
		}
		rows += n
	}
	r.add(r.cfg, rows, sums)
	return rows, nil
}

func (r *estimate) addSet(sums []float64, set *acc.Set) (rows int64, err error) {
	if r.cfg.Measure == Miss {
		if set.LabelledRows() == 0 {
			return 0, nil
		}
		return set.LabelledRows(), addConfidences(sums, &set.Labelled.MSP)
	}
	if set.Seen == nil {
		return 0, nil
	}
	rows, _ = set.Seen.Total()
	return rows, addConfidences(sums, &set.Seen.MSP)
}

func addConfidences(sums []float64, g *acc.Grid) error {
	bins, err := g.Bins(stage.ScoreBins)
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

func (r *estimate) Evaluate(int64) (j Evaluation, ok bool, err error) {
	_, cur, _ := r.windows(r.cfg)
	if cur.rows < max(r.cfg.MinRows, 1) || r.key.Estimator == nil {
		return j, false, nil
	}
	cells := make([]metric.Bin, 0, stage.ScoreBins)
	var right float64
	for j := range stage.ScoreBins {
		if n := cur.sums[j*confSize]; n > 0 {
			cells = append(cells, metric.Bin{N: int64(n), W: n, SumC: cur.sums[j*confSize+1]})
			right += cur.sums[j*confSize+2]
		}
	}
	e := unlabelled.ConfidenceBased(cells, r.key.Estimator.Confidence, r.env.Bins)
	j = Evaluation{Rows: cur.rows, Unlabelled: true}
	switch r.cfg.Measure {
	case ECE:
		j.Value, j.Significant = e.ECE, true
		j.Detail = fmt.Sprintf("estimated ECE of the last %d predictions is %.4f, if %s", cur.rows, e.ECE, e.Assumption)
	case Miss:
		m := e.Against(right, float64(cur.rows))
		lo, hi := math.Abs(m.Difference)-1.96*m.SE, math.Abs(m.Difference)+1.96*m.SE
		j.Value, j.Lo, j.Hi, j.Significant = math.Abs(m.Difference), &lo, &hi, math.Abs(m.Z) > missBound
		j.Detail = fmt.Sprintf("of the last %d labelled rows accuracy was estimated at %.4f without their labels "+
			"and is %.4f, %.1f standard errors off: not true that %s",
			cur.rows, e.Accuracy, right/float64(cur.rows), math.Abs(m.Z), e.Assumption)
	case Accuracy:
		was, total, full := r.key.Estimator.Reference()
		if !full {
			return j, false, nil
		}
		refLo, refHi := metric.Wilson(was, total)
		was /= total
		d := was - e.Accuracy
		lo, hi := d-math.Hypot(was-refLo, e.Hi-e.Accuracy), d+math.Hypot(refHi-was, e.Accuracy-e.Lo)
		j.Value, j.Lo, j.Hi, j.Significant = d, &lo, &hi, lo > 0
		j.Detail = fmt.Sprintf("estimated accuracy of the last %d predictions is %.4f, "+
			"%.4f in the labelled reference of %.0f rows, if %s", cur.rows, e.Accuracy, was, total, e.Assumption)
	default:
		panic("rule: " + r.cfg.Name + ": measure " + r.cfg.Measure)
	}
	return j, true, nil
}

// Append appends the rule window.
func (r *estimate) Append(dst []byte) []byte { return r.append(dst) }

// Restore reads what Append wrote.
func (r *estimate) Restore(in *binenc.Reader) { r.restore(in, estimateSize) }
