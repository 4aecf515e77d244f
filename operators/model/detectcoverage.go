package model

import (
	"maps"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// coverage counts predictions, and those of them that have a label, until they are old enough to be judged: by slots of so many
// prediction panes that at most maxSlots are open.
type coverage struct{ slots map[int64][2]float64 }

// coverageSize is the length of the sums: predictions, those with a label in time.
const coverageSize = 2

func panesOf(d, pane int64) int64 { return (d + pane - 1) / pane }

// slot returns the length of slots, in panes.
func (s *RuleSpec) slot(pane int64) int64 {
	return max(1, (panesOf(int64(s.Age), pane)+maxSlots-1)/maxSlots)
}

// due is the label pane at whose end all predictions of a slot are of the rule's age.
func (s *RuleSpec) due(slot, pane int64) int64 {
	return (slot+1)*s.slot(pane) + panesOf(int64(s.Age), pane) - 1
}

// add takes a label pane and returns the counts of the slots that it completes. What comes for a slot later is left out: those labels
// did not come in time.
func (c *coverage) add(s *RuleSpec, in *stage.Pane, pane int64) (sums [coverageSize]float64) {
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
		// A pane without its predictions has labels of rows that were counted nowhere, such as those of before a rule was there.
		if n := c.slots[slot]; n[0] > 0 {
			sums[0], sums[1] = sums[0]+n[0], sums[1]+min(n[1], n[0])
		}
		delete(c.slots, slot)
	}
	return sums
}

func (c *coverage) append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(c.slots)))
	for _, slot := range slices.Sorted(maps.Keys(c.slots)) {
		n := c.slots[slot]
		dst = binenc.AppendFloat64(binenc.AppendFloat64(binenc.AppendVarint(dst, slot), n[0]), n[1])
	}
	return dst
}

func (c *coverage) restore(r *binenc.Reader) {
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
