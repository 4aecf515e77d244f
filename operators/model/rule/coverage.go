package rule

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// coverage evaluates the share of predictions that have a label by the age Config.Age.
type coverage struct {
	*context
	window
	waiting stage.Slots[[coverageSize]float64]
}

// coverageSize is the length of the sums: predictions, and predictions with a label in time.
const coverageSize = 2

func (c *coverage) age() stage.Maturity {
	return stage.Maturity{After: int64(c.cfg.Age), Pane: c.env.Pane}
}

// count adds a label pane and returns the counts of the slots that it completes. Rows for a completed slot are left
// out, because their labels did not come in time.
func (c *coverage) count(in *stage.Pane) (sums [coverageSize]float64) {
	for _, cell := range in.Cells {
		n := c.waiting.At(c.age(), cell.PredictionPane, in.Index)
		if n == nil {
			continue
		}
		if cell.Set.Seen != nil {
			seen, _ := cell.Set.Seen.Total()
			n[0] += float64(seen)
		}
		n[1] += float64(cell.Set.LabelledRows())
	}
	for _, slot := range c.waiting.Take(c.age(), in.Index) {
		// A slot without predictions holds labels of rows that were not counted, for instance because the rule was
		// added after their prediction. It does not count.
		if n := slot.Sum; n[0] > 0 {
			sums[0], sums[1] = sums[0]+n[0], sums[1]+min(n[1], n[0])
		}
	}
	return sums
}

// Append appends the rule window and the slots.
func (c *coverage) Append(dst []byte) []byte {
	return c.waiting.Append(c.append(dst), func(dst []byte, n *[coverageSize]float64) []byte {
		return binenc.AppendFloat64s(dst, n[:]...)
	})
}

// Restore reads what Append wrote.
func (c *coverage) Restore(r *binenc.Reader) {
	c.restore(r, coverageSize)
	c.waiting.Restore(r, func(n *[coverageSize]float64) {
		if n[0], n[1] = r.Float64(), r.Float64(); !(n[0] >= 0 && n[1] >= 0) {
			r.Failf("a slot has %v predictions and labels, allowed 0 or more", *n)
		}
	})
}

// Observe adds the slots that a pane completes.
func (c *coverage) Observe(in *stage.Pane) (rows int64, err error) {
	sums := c.count(in)
	c.add(c.cfg, int64(sums[0]), sums[:])
	return int64(sums[0]), nil
}

// Evaluate computes the share among the latest predictions that are old enough.
func (c *coverage) Evaluate(int64) (j Evaluation, ok bool, err error) {
	_, cur, _ := c.windows(c.cfg)
	if cur.rows < max(c.cfg.MinRows, 1) {
		return j, false, nil
	}
	lo, hi := metric.Wilson(cur.sums[1], cur.sums[0])
	return c.cfg.withBounds(Evaluation{Rows: cur.rows, Unlabelled: true}, cur.sums[1]/cur.sums[0], lo, hi,
		fmt.Sprintf("label coverage of the last %d predictions that are old enough", cur.rows))
}
