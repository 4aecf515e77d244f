package acc

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
)

// PredictRows does what Predict does, for the given rows of b, which SetRow has prepared. After an error nothing has
// changed.
func (s *Set) PredictRows(b *Block, rows []int32) error {
	if err := s.checkBlock(b); err != nil {
		return err
	}
	n, w := seenTotal(s)
	wf, err := b.room(rows, n, w)
	if err != nil {
		return err
	}
	if s.Seen == nil {
		s.Seen = &Seen{}
	}
	for f, g := range [...]*Grid{&s.Seen.MSP, &s.Seen.Margin, &s.Seen.NegEnt} {
		g.addRows(b, f, rows, 0)
		g.n += int64(len(rows))
		g.w += wf
	}
	if c := s.counted(s.cfg.K); c != nil {
		c.predictRows(b, rows, wf)
	}
	return nil
}

// LabelRows does what LabelScaled does, for the given rows of b, all of which must have labels. After an error nothing
// has changed. Class probabilities of rows of another weight than 1 are added one by one, which is several times
// slower.
func (s *Set) LabelRows(b *Block, rows []int32) error {
	if err := s.checkBlock(b); err != nil {
		return err
	}
	settle(s) // not all labelled rows would be predictions of the set
	return s.labelRows(b, rows)
}

// BothRows does what PredictRows and LabelRows do, for the same rows. As long as a set has no other labelled rows, it
// adds only to the grids of labelled rows: those of predictions are the same without the outcomes, and settle derives
// them when they are asked for. After an error nothing has changed.
func (s *Set) BothRows(b *Block, rows []int32) error {
	if s.Labelled != nil && s.Labelled.Scores.n > 0 && !s.owed {
		if err := s.PredictRows(b, rows); err != nil {
			return err
		}
		return s.LabelRows(b, rows)
	}
	if err := s.checkBlock(b); err != nil {
		return err
	}
	n, w := seenTotal(s)
	wf, err := b.room(rows, n, w)
	if err == nil {
		err = s.labelRows(b, rows)
	}
	if err != nil {
		return err
	}
	s.owed = true
	if c := s.counted(s.cfg.K); c != nil {
		c.predictRows(b, rows, wf)
	}
	return nil
}

// seenTotal returns the number of predictions and their Σw.
func seenTotal(s *Set) (n, w int64) {
	if s.Seen != nil {
		n, w = s.Seen.MSP.n, s.Seen.MSP.w
	}
	if s.owed {
		n, w = n+s.Labelled.MSP.n, w+s.Labelled.MSP.w
	}
	return n, w
}

// settledSeen returns Seen including the labelled rows that BothRows has not added to it; it changes nothing.
func settledSeen(s *Set) *Seen {
	if !s.owed {
		return s.Seen
	}
	l, out := s.Labelled, &Seen{}
	for f, g := range [...]*Grid{&l.MSP, &l.Margin, &l.NegEnt} {
		*[...]*Grid{&out.MSP, &out.Margin, &out.NegEnt}[f] = g.unlabelled()
	}
	if s.Seen != nil {
		out.merge(s.Seen)
	}
	return out
}

// settle adds to Seen the labelled rows that BothRows has not added.
func settle(s *Set) { s.Seen, s.owed = settledSeen(s), false }

// unlabelled returns the grid of the same rows without their outcomes.
func (g *Grid) unlabelled() Grid {
	out := Grid{n: g.n, w: g.w}
	out.t.space = gridKeys
	o := g.t.sorted()
	out.t.keys, out.t.ents = make([]uint16, 0, len(o.keys)), make([]entry, 0, len(o.keys))
	for i, key := range o.keys {
		e := o.nth(i)
		if n := len(out.t.keys); n > 0 && out.t.keys[n-1] == key&^1 {
			for f, v := range e {
				out.t.ents[n-1][f] += v
			}
			continue
		}
		out.t.keys, out.t.ents = append(out.t.keys, key&^1), append(out.t.ents, *e)
	}
	return out
}

// labelRows is LabelRows without the checks.
func (s *Set) labelRows(b *Block, rows []int32) error {
	if s.Labelled == nil {
		var err error
		if s.Labelled, err = newLabelled(s.cfg); err != nil {
			return err
		}
	}
	wf, err := s.Labelled.addRows(b, rows)
	if err != nil {
		return err
	}
	if c := s.counted(s.cfg.K); c != nil {
		c.labelRows(b, rows, wf)
	}
	return nil
}

func (s *Set) checkBlock(b *Block) error {
	if s.cfg.K != b.k {
		return fmt.Errorf("a block of %d scores a row for %d classes: %w", b.k, s.cfg.K, ErrShape)
	}
	b.finish()
	return nil
}

// room returns the rows' Σw, or ErrOverflow if they do not fit into sums that have n0 rows and weight w0.
func (b *Block) room(rows []int32, n0, w0 int64) (wf int64, err error) {
	if n := int64(len(rows)); !b.weighted {
		return n << fixBits, checkRoom(n0, w0, n, n<<fixBits)
	}
	for _, i := range rows {
		w := b.wf[i]
		if w > math.MaxInt64-wf {
			return 0, checkRoom(n0, w0, 1, math.MaxInt64) // cannot fit
		}
		wf += w
	}
	return wf, checkRoom(n0, w0, int64(len(rows)), wf)
}

// addRows returns the rows' Σw.
func (l *Labelled) addRows(b *Block, rows []int32) (wf int64, err error) {
	if wf, err = b.room(rows, l.Scores.n, l.Scores.w); err != nil {
		return wf, err
	}
	// The other sums have room for all rows that Σw allows, unless weights are tiny or lags are centuries.
	if !l.Scores.roomy() || !l.Lag.roomy(len(rows)) {
		return wf, fmt.Errorf("add %d rows to sums that are nearly full: %w", len(rows), ErrOverflow)
	}
	if err := l.ClassWise.addRows(b, rows, wf); err != nil {
		return wf, err
	}
	n := int64(len(rows))
	for f, g := range [...]*Grid{&l.MSP, &l.Margin, &l.NegEnt} {
		g.addRows(b, f, rows, 1)
		g.n += n
		g.w += wf
	}
	l.Soft.addRows(b, rows)
	l.Soft.n += n
	l.Soft.w += wf
	l.Scores.addRows(b, rows)
	l.Scores.n += n
	l.Scores.w += wf
	l.Lag.addRows(b.lag, b.cell, rows)
	if !b.csf[csfServed].used {
		return wf, nil
	}
	for _, i := range rows {
		if b.served[i] {
			l.Served.addRows(b, csfServed, []int32{i}, 1)
			l.Served.n++
			l.Served.w += b.wf[i]
		}
	}
	return wf, nil
}

// addRows adds the rows of one score function to the cells, but not to the totals; outcome is 1 for labelled rows.
func (g *Grid) addRows(b *Block, csf int, rows []int32, outcome uint16) {
	g.t.space = gridKeys
	c := &b.csf[csf].CellRows
	for len(rows) > 0 {
		done := fixedpoint.AddCells(g.t.ents, g.t.place, c, rows, outcome)
		if rows = rows[done:]; len(rows) == 0 {
			return
		}
		i := rows[0]
		e := g.t.at(c.Key[i] + outcome&c.Hit[i])
		e[gN]++
		e[gW] += c.W[i]
		e[gWC] += c.WC[i]
		e[gWC2] += c.WC2[i]
		rows = rows[1:]
	}
}

// addRows adds the rows to the sums, but not to the totals.
func (b *SoftBins) addRows(block *Block, rows []int32) {
	l := &block.soft
	l.conf, l.hit = slices.Grow(l.conf[:0], len(rows))[:len(rows)], slices.Grow(l.hit[:0], len(rows))[:len(rows)]
	n, conf, hit, c := 0, l.conf, l.hit, block.csf[csfMSP].c
	right, look := block.of.Hit[:len(c)], block.weighted || b.gauss == nil
	for _, i := range rows {
		if look && (b.gauss == nil || block.w[i] != 1) {
			b.addOne(c[i], block.w[i], right[i] == 1)
			continue
		}
		conf[n], hit[n] = c[i], -uint8(right[i])
		n++
	}
	l.conf, l.hit = conf[:n], hit[:n]
	l.rho = slices.Grow(l.rho[:0], len(l.conf))[:len(l.conf)]
	fixedpoint.Ratios(l.rho, l.conf, b.rate, b.first)
	sums := b.outcomes()
	sums.AddRows(b.gauss, b.u, fixedpoint.SoftRows{Rho: l.rho, C: l.conf, Hit: l.hit})
}

// addRows adds the rows to the sums, but not to the totals. Values of rows of weight 1 that are below fixFast, and so
// below 2^51 units, are gathered in 64 bits first.
func (s *Scores) addRows(b *Block, rows []int32) {
	const atOnce = 1 << 11
	n, weighted := len(b.of.NLL), b.weighted
	nlls, briers, wcs, hits := b.of.NLL, b.of.Brier[:n], b.csf[csfMSP].WC[:n], b.of.Hit[:n]
	for ; len(rows) > 0; rows = rows[min(len(rows), atOnce):] {
		var ones, right, nll, brier, wc int64
		for _, i := range rows[:min(len(rows), atOnce)] {
			wc += wcs[i]
			x, y := nlls[i], briers[i]
			if weighted && b.w[i] != 1 || !fitsFast(x) || !fitsFast(y) {
				s.addLarge(b, i)
				continue
			}
			ones++
			right += int64(hits[i])
			nll += fixedpoint.Round(x)
			brier += fixedpoint.Round(y)
		}
		s.wc, s.wa = s.wc+wc, s.wa+right<<fixBits
		s.w2, s.nll, s.brier = s.w2.plus(ones*fixOne), s.nll.plus(nll), s.brier.plus(brier)
	}
}

// fitsFast reports whether x is in [+0, fixFast). The bit patterns of non-negative floats are in their order, and
// those of negative ones and NaN are greater.
func fitsFast(x float64) bool {
	const bits = 0x4120000000000000 // of fixFast
	return math.Float64bits(x) < bits
}

// addLarge adds a row with a weight other than 1 or with values that are not small.
func (s *Scores) addLarge(b *Block, i int32) {
	s.wa += b.wf[i] & -int64(b.of.Hit[i])
	s.w2 = s.w2.plusFix(b.w[i] * b.w[i])
	s.nll = s.nll.plusFix(b.of.NLL[i])
	s.brier = s.brier.plusFix(b.of.Brier[i])
}

// addRows adds the rows; wf is their Σw. After an error nothing has changed.
func (c *ClassWise) addRows(b *Block, rows []int32, wf int64) error {
	if err := c.addSmall(b, rows); err != nil {
		return err
	}
	c.addLarges(b)
	for _, i := range b.slow {
		x := exactOf(&b.rows[i], b.row(i), b.logits(i))
		c.addEach(&x, b.row(i), b.w[i], b.wf[i])
	}
	b.key = slices.Grow(b.key[:0], len(rows))[:len(rows)]
	labels := fixedpoint.LabelRows{Y: b.y, P: b.of.P, Rows: rows}
	labels.Keys(b.key, c.m, c.slack)
	place, ents := c.t.place, c.t.ents
	keys, weights := b.key[:len(rows)], b.wf
	for x, i := range rows {
		key := keys[x]
		if int(key) < len(place) {
			if at := uint(place[key]) - 1; at < uint(len(ents)) {
				ents[at][cWA] += weights[i]
				continue
			}
		}
		if key == fixedpoint.NoKey {
			y := int(b.y[i])
			key = c.key(y, b.settled(i, y, b.of.P[i], c.m))
		}
		c.t.at(key)[cWA] += weights[i]
		place, ents = c.t.place, c.t.ents
	}
	c.n += int64(len(rows))
	c.w += wf
	return nil
}

// addSmall adds, for rows of weight 1, the probabilities in the first bin and lists the others. Rows of other weights,
// and those with a -0, are left to the slow path, one by one.
func (c *ClassWise) addSmall(b *Block, rows []int32) error {
	l, r := &b.large, &b.unit
	l.Reset()
	b.slow = b.slow[:0]
	r.V, r.K = b.v, b.k
	r.Rows, r.Scale = slices.Grow(r.Rows[:0], len(rows))[:len(rows)], slices.Grow(r.Scale[:0], len(rows))[:len(rows)]
	n, units, scales, made, weighted := 0, r.Rows, r.Scale, b.rows, b.weighted
	for _, i := range rows {
		row := &made[i]
		if weighted && b.w[i] != 1 {
			if err := checkEach(row, b.row(i)); err != nil {
				return err
			}
			b.slow = append(b.slow, i)
			continue
		}
		units[n], scales[n] = i, row.Scale
		n++
	}
	r.Rows, r.Scale = units[:n], scales[:n]
	dense, edge := c.dense[:cap(c.dense)], c.clear
	for at := 0; ; {
		if at = fixedpoint.AddScaledRows(dense, l, r, at, edge); at == len(r.Rows) {
			return nil
		}
		i := r.Rows[at]
		if err := checkEach(&b.rows[i], b.row(i)); err != nil {
			for j, i := range r.Rows[:at] {
				fixedpoint.SubScaled(dense, b.row(i), r.Scale[j], edge)
			}
			return err
		}
		b.slow = append(b.slow, i)
		r.Rows, r.Scale = slices.Delete(r.Rows, at, at+1), slices.Delete(r.Scale, at, at+1)
	}
}

// addLarges adds the listed probabilities, and counts those that are 0.
func (c *ClassWise) addLarges(b *Block) {
	l := &b.large
	l.FindKeys(&b.unit, c.m, c.slack)
	row := 0
	for x := 0; x < len(l.Key); x++ {
		x += fixedpoint.AddEntries(c.t.ents, c.t.place, l.Key[x:], l.Sum[x:], fixOne)
		if x == len(l.Key) {
			break
		}
		for l.End[row] <= x {
			row++
		}
		c.addLarge(b, x, row)
	}
	for row, zero := range l.Zero {
		if zero == 0 {
			continue
		}
		i := b.unit.Rows[row]
		x := exactOf(&b.rows[i], b.row(i), b.logits(i))
		x.EachZero(b.row(i), func(k int) {
			e := c.t.at(c.key(k, 0))
			e[cN]++
			e[cW] += fixOne
		})
	}
}

// addLarge adds the listed probability x, of the given row of the list: one whose bin is uncertain or new.
func (c *ClassWise) addLarge(b *Block, x, row int) {
	l := &b.large
	i, k, key, sum := b.unit.Rows[row], int(l.Class[x]), l.Key[x], l.Sum[x]
	if key == fixedpoint.NoKey {
		scale := b.unit.Scale[row]
		p := min(float64(l.V[x])*scale, 1)
		if kernel.BesideEdge(p, c.m) {
			p = b.settled(i, k, p, c.m)
			sum = fixedpoint.Round(p)
		} else if p <= c.edges[1] {
			sum = fixedpoint.RoundProduct(l.V[x], scale) // as those that are small for certain
		}
		if p <= c.edges[1] {
			c.dense[k] += sum
			return
		}
		key = c.key(k, p)
	}
	e := c.t.at(key)
	e[cN]++
	e[cW] += fixOne
	e[cWP] += sum
}

// settled returns p, the probability of class k of row i; if it is 0 or lies beside the edge of a bin, computed in
// float64.
func (b *Block) settled(i int32, k int, p float64, m int) float64 {
	if p != 0 && !kernel.BesideEdge(p, m) {
		return p
	}
	if b.exactRow != i || b.exact.Row == nil {
		b.exact, b.exactRow = exactOf(&b.rows[i], b.row(i), b.logits(i)), i
	}
	if p == 0 {
		return scaled(&b.exact, b.row(i), k)
	}
	return b.exact.Prob(k)
}
