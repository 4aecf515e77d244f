package rule

import (
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// coverage evaluates the share of predictions that have a label by the age Config.Age. It counts predictions, and those
// with a label, in slots until they are old enough. A slot is a group of prediction panes, so large that at most
// maxSlots slots are open.
type coverage struct {
	*context
	window
	slots map[int64][2]float64
}

// maxSlots is the largest number of open slots.
const maxSlots = 32

// coverageSize is the length of the sums: predictions, and predictions with a label in time.
const coverageSize = 2

func panesOf(d, pane int64) int64 { return (d + pane - 1) / pane }

// slot returns the length of slots, in panes.
func (s *Config) slot(pane int64) int64 {
	return max(1, (panesOf(int64(s.Age), pane)+maxSlots-1)/maxSlots)
}

// due returns the label pane at whose end all predictions of a slot have the rule's age.
func (s *Config) due(slot, pane int64) int64 {
	return (slot+1)*s.slot(pane) + panesOf(int64(s.Age), pane) - 1
}

// count adds a label pane and returns the counts of the slots that it completes. Rows for a completed slot are left
// out, because their labels did not come in time.
func (c *coverage) count(in *stage.Pane) (sums [coverageSize]float64) {
	s, pane := c.cfg, c.env.Pane
	if c.slots == nil {
		c.slots = map[int64][2]float64{}
	}
	for _, cell := range in.Cells {
		slot := pipeline.PaneIndex(cell.PredictionPane, s.slot(pane))
		if s.due(slot, pane) < in.Index {
			continue
		}
		n := c.slots[slot]
		if cell.Set.Seen != nil {
			seen, _ := cell.Set.Seen.Total()
			n[0] += float64(seen)
		}
		n[1] += float64(cell.Set.LabelledRows())
		c.slots[slot] = n
	}
	for _, slot := range slices.Sorted(maps.Keys(c.slots)) {
		if s.due(slot, pane) > in.Index {
			break
		}
		// A slot without predictions holds labels of rows that were not counted, for instance because the rule was
		// added after their prediction. It does not count.
		if n := c.slots[slot]; n[0] > 0 {
			sums[0], sums[1] = sums[0]+n[0], sums[1]+min(n[1], n[0])
		}
		delete(c.slots, slot)
	}
	return sums
}

// Append appends the rule window and the slots.
func (c *coverage) Append(dst []byte) []byte {
	dst = c.append(dst)
	dst = binenc.AppendUvarint(dst, uint64(len(c.slots)))
	for _, slot := range slices.Sorted(maps.Keys(c.slots)) {
		n := c.slots[slot]
		dst = binenc.AppendFloat64s(binenc.AppendVarint(dst, slot), n[:]...)
	}
	return dst
}

// Restore reads what Append wrote.
func (c *coverage) Restore(r *binenc.Reader) {
	c.restore(r, coverageSize)
	c.slots = map[int64][2]float64{}
	for range r.Count(17, binenc.MaxItems) {
		slot := r.Varint()
		n := [2]float64{r.Float64(), r.Float64()}
		if !(n[0] >= 0 && n[1] >= 0) {
			r.Failf("slot %d has %v predictions and labels, allowed 0 or more", slot, n)
		}
		if r.Err() != nil {
			return
		}
		c.slots[slot] = n
	}
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
