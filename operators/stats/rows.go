package stats

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/operators/slicing"
	"github.com/plumbline/plumbline/pipeline"
)

// scan walks over the good rows of a batch. It keeps what a row mostly shares with the row before: model version,
// panes and groups.
type scan struct {
	s     *Operator
	b     *arrowio.Batch
	block *acc.Block // scores of the rows from first on
	first int

	model           int32            // of the current row, as index in b.Models; -1 before the first
	name            arrowio.ModelKey // of model
	key             int32            // of the whole model version
	pane, labelPane paneOf           // found last
	predict, label  int              // places of the groups found last
	row             countedRow
}

// paneOf finds the pane of times that are mostly in the same pane as the time before.
type paneOf struct{ index, from, end int64 }

func (p *paneOf) of(t, length int64) int64 {
	if t < p.from || t >= p.end {
		p.index = pipeline.PaneIndex(t, length)
		p.from = p.index * length
		p.end = p.from + length
	}
	return p.index
}

// countedRow has what every key needs of a row that it counts.
type countedRow struct {
	at              int32 // in the block
	z               []float32
	probs           bool
	id              arrowio.ID // of labelled rows
	ts, labelTS     int64
	pane, labelPane int64
	label           int32 // -1 = not yet known
	weight, served  float64
	prediction      bool // counts as seen
	shadow          bool // is in no count of rows
}

// rows prepares the good rows in [from, end), which block has scored, and sorts them by cell.
func (c *scan) rows(b *arrowio.Batch, block *acc.Block, from, end int) error {
	*c = scan{s: c.s, b: b, block: block, first: from, model: -1}
	c.row = countedRow{probs: b.Probs, weight: 1, prediction: b.Kind == arrowio.Predictions, shadow: b.Shadow}
	for i := from; i < end; i++ {
		if !b.Good(i) {
			continue
		}
		if err := c.countRow(i); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	*c = scan{s: c.s} // nothing of a message stays
	return nil
}

func (c *scan) countRow(i int) error {
	s, b, x := c.s, c.b, &c.row
	x.at, x.z = int32(i-c.first), b.Scores[i*b.K:(i+1)*b.K]
	x.ts, x.labelTS, x.label, x.served = b.TS[i], b.TS[i], -1, math.NaN()
	x.pane = c.pane.of(x.ts, s.cfg.Pane)
	if b.Weight != nil {
		x.weight = float64(b.Weight[i])
	}
	if b.Label != nil && b.Label[i] >= 0 {
		c.takeLabel(i)
	}
	// The decoder rejects scores that are not finite; here they would be a programmer's mistake, and an error.
	if err := c.block.SetRow(int(x.at), int(x.label), x.weight, x.labelTS-x.ts, x.served); err != nil {
		return err
	}
	if err := c.countWhole(i); err != nil {
		return err
	}
	for f := range b.Slices {
		col := &b.Slices[f]
		if col.Index[i] < 0 {
			continue
		}
		if err := s.countSlice(x, c.name, col.Name, col.Values[col.Index[i]]); err != nil {
			return err
		}
	}
	return nil
}

// takeLabel fills in the fields that only labelled rows have.
func (c *scan) takeLabel(i int) {
	s, b, x := c.s, c.b, &c.row
	x.label, x.id = b.Label[i], b.RowID(i)
	if b.LabelTS != nil {
		x.labelTS = b.LabelTS[i]
	}
	x.labelPane = c.labelPane.of(x.labelTS, s.cfg.Pane)
	if b.Served != nil {
		x.served = float64(b.Served[i])
	}
	s.labelled++
}

// countWhole adds row i to the groups of the cells of its whole model version.
func (c *scan) countWhole(i int) error {
	s, b, x := c.s, c.b, &c.row
	model := int32(0)
	if b.Model != nil {
		model = b.Model[i]
	}
	fresh := model != c.model
	if fresh {
		c.model = model
		c.name, _ = b.ModelOf(i)
	}
	s.seen(c.name.Model, x)
	if fresh {
		c.key, _ = s.keys.index(c.name, "", "", b.K)
	}
	if x.prediction {
		g, err := c.groupAt(&c.predict, cellKey{c.key, x.pane, x.pane}, b.K)
		if err != nil {
			return err
		}
		s.countLate(g.late && !x.shadow, c.name)
		if x.label >= 0 && x.labelPane == x.pane {
			g.both = append(g.both, x.at)
			return s.sample(g, x)
		}
		g.predict = append(g.predict, x.at)
	}
	if x.label < 0 {
		return nil
	}
	g, err := c.groupAt(&c.label, cellKey{c.key, x.labelPane, x.pane}, b.K)
	if err != nil {
		return err
	}
	if !x.prediction {
		s.countLate(g.late && !x.shadow, c.name)
	}
	return s.addLabel(g, x)
}

// groupAt is groupOf with a guess: the cell is mostly that of the group at place.
func (c *scan) groupAt(place *int, k cellKey, classes int) (*group, error) {
	if i := *place; i < len(c.s.groups) && c.s.groups[i].key == k {
		return &c.s.groups[i], nil
	}
	g, at, err := c.s.groupOf(k, classes)
	*place = at
	return g, err
}

// addLabel adds a labelled row to a group.
func (s *Operator) addLabel(g *group, x *countedRow) error {
	g.labels = append(g.labels, x.at)
	return s.sample(g, x)
}

// sample offers a labelled row to the sample.
func (s *Operator) sample(g *group, x *countedRow) error {
	if !g.set.Samples(x.id) {
		return nil
	}
	return g.set.AddSample(acc.SampleRow{ID: x.id, TS: x.ts, LabelTS: x.labelTS, W: float32(x.weight), Y: x.label,
		Z: s.sampleScores(x.z, x.probs)})
}

// countSlice adds a row to the groups of the cells of a slice.
func (s *Operator) countSlice(x *countedRow, m arrowio.ModelKey, column, value string) error {
	own, full := s.keys.index(m, column, value, len(x.z))
	turn := uint32(0)
	if s.cfg.Turns > 1 && own >= 0 {
		turn = s.keys.turns[own]
	} else if s.cfg.Turns > 1 {
		turn = slicing.TurnOfValue(column, value)
	}
	span, predicted, labelled := s.cfg.Turns.Span(x.pane), s.cfg.Turns.Next(x.pane, turn), int64(0)
	if x.label >= 0 {
		labelled = s.cfg.Turns.Next(x.labelPane, turn)
	}
	key, pooled, err := own, false, error(nil)
	if x.prediction {
		if full != nil {
			if key, pooled, err = s.admit(full, value, own, predicted); err != nil {
				return err
			}
		}
		s.countPooled(pooled)
		g, _, err := s.groupOf(cellKey{key, predicted, span}, len(x.z))
		if err != nil {
			return err
		}
		if x.label >= 0 && labelled == predicted {
			s.countPooled(pooled)
			g.both = append(g.both, x.at)
			return s.sample(g, x)
		}
		g.predict = append(g.predict, x.at)
	}
	if x.label < 0 {
		return nil
	}
	if full != nil && (!x.prediction || labelled != predicted) {
		if key, pooled, err = s.admit(full, value, own, labelled); err != nil {
			return err
		}
	}
	s.countPooled(pooled)
	g, _, err := s.groupOf(cellKey{key, labelled, span}, len(x.z))
	if err != nil {
		return err
	}
	return s.addLabel(g, x)
}

// countLate counts a late row.
func (s *Operator) countLate(late bool, m arrowio.ModelKey) {
	if late {
		s.counts.Add(pipeline.CountLate, 1)
		s.lateBy[m]++
	}
}

// sampleScores converts scores to logits in scratch memory; the sample copies the rows that it keeps.
func (s *Operator) sampleScores(z []float32, probs bool) []float32 {
	if !probs {
		return z
	}
	s.z = append(s.z[:0], z...)
	kernel.LogProbs(s.z)
	return s.z
}
