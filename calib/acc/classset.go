package acc

import (
	"fmt"
	"slices"
)

// classCounting is the part of a set that counts rows by predicted class.
type classCounting struct {
	// Classes counts, by predicted class, the rows that were added while CountClasses was on; nil if there are none.
	Classes  *ClassCounts
	counting bool
}

// CountClasses sets whether rows added from now on are also counted by predicted class (ClassCounts); by default they
// are not. It is not part of the configuration: sets with and without such counts merge, and existing counts stay.
func (c *classCounting) CountClasses(on bool) { c.counting = on }

// counted returns the counts that rows of k classes are to be added to, nil where they are not. If Seen and Labelled
// had room for a row, so have these counts.
func (c *classCounting) counted(k int) *ClassCounts {
	if !c.counting {
		return nil
	}
	if c.Classes == nil {
		c.Classes, _ = NewClassCounts(k) // k has been checked
	}
	return c.Classes
}

// mergeClasses merges the class counts of sets of one K whose Seen and Labelled fit.
func (c *classCounting) mergeClasses(o *classCounting) {
	switch {
	case o.Classes == nil:
	case c.Classes == nil:
		c.Classes = o.Classes.Clone()
	default:
		c.Classes.merge(o.Classes)
	}
}

// decodeClasses reads the class counts, when the other parts have been read.
func (s *Set) decodeClasses(data []byte) error {
	s.Classes = &ClassCounts{}
	if err := s.Classes.UnmarshalBinary(data); err != nil {
		return err
	}
	return s.checkClasses()
}

// checkClasses checks decoded class counts against the other parts. They count the same rows, so the checks for room
// of those hold for them too.
func (s *Set) checkClasses() error {
	c := s.Classes
	var n, w, labelled, labelledW int64
	if s.Seen != nil {
		n, w = s.Seen.MSP.n, s.Seen.MSP.w
	}
	if s.Labelled != nil {
		labelled, labelledW = s.Labelled.Scores.n, s.Labelled.Scores.w
	}
	switch {
	case c.k != s.cfg.K:
		return fmt.Errorf("counts of %d classes in a set of %d: %w", c.k, s.cfg.K, ErrCorrupt)
	case c.empty():
		return fmt.Errorf("an empty part: %w", ErrCorrupt)
	case c.n > n, c.w > w, c.labelled > labelled, c.labelledW > labelledW:
		return fmt.Errorf("classes of %d predictions and %d labelled rows in a set of %d and %d: %w", c.n, c.labelled,
			n, labelled, ErrCorrupt)
	}
	return nil
}

// symbolsOf returns the cell of ClassCounts of every row of b; for those that were not set it has no meaning.
func (b *Block) symbolsOf() []uint32 {
	if b.symbolled {
		return b.symbols
	}
	n := len(b.rows)
	if cap(b.symbols) < n {
		b.symbols = make([]uint32, n)
	}
	b.symbols = b.symbols[:n]
	symbols, made, keys := b.symbols, b.rows[:n], b.csf[csfMSP].Key[:n]
	for i := range symbols {
		symbols[i] = uint32(made[i].Arg)*Bands + bandOf(uint32(keys[i]/2))
	}
	b.symbolled = true
	return symbols
}

// predictRows does what predict does for the given rows, whose Σw, wf, does not overflow.
func (c *ClassCounts) predictRows(b *Block, rows []int32, wf int64) {
	symbols, t := b.symbolsOf(), &c.cells
	c.n += int64(len(rows))
	c.w += wf
	if !b.weighted && c.buffered(len(rows)) {
		c.buffer.predict(symbols, rows)
		return
	}
	for _, i := range rows {
		e := t.known(symbols[i])
		if e == nil {
			e = t.search(symbols[i])
		}
		e[ccSeen]++
		e[ccSeenExcess] += b.wf[i] - fixOne
	}
}

// labelRows does what label does for the given rows.
func (c *ClassCounts) labelRows(b *Block, rows []int32, wf int64) {
	symbols, t := b.symbolsOf(), &c.cells
	c.labelled += int64(len(rows))
	c.labelledW += wf
	if !b.weighted && c.buffered(len(rows)) {
		if c.hasPairs() {
			c.labelPairs(b.y, symbols, rows)
			return
		}
		wrong := c.buffer.label(b, symbols, rows)
		b.pairs = slices.Grow(b.pairs[:0], len(wrong))[:len(wrong)]
		b.places = slices.Grow(b.places[:0], len(wrong))[:len(wrong)]
		for len(b.ones) < len(wrong) {
			b.ones = append(b.ones, 1)
		}
		keys, y := b.pairs, b.y
		for j, i := range wrong {
			keys[j] = c.pair(symbols[i], int(y[i]))
		}
		c.wrong.addRows(keys, b.ones, b.places)
		c.wrongRows += int64(len(wrong))
		return
	}
	var right int64
	for _, i := range rows {
		if b.of.Hit[i] == 0 {
			c.wrong.add(c.pair(symbols[i], int(b.y[i])), pairSum{1, b.wf[i] - fixOne})
			continue
		}
		e := t.known(symbols[i])
		if e == nil {
			e = t.search(symbols[i])
		}
		e[ccRight]++
		e[ccRightExcess] += b.wf[i] - fixOne
		right++
	}
	c.rightRows += right
	c.wrongRows += int64(len(rows)) - right
}
