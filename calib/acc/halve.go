package acc

// Halve halves all sums, rounding down (see Halver).
func (g *Grid) Halve() {
	g.t.halve()
	g.n, g.w = g.n/2, g.w/2
}

// halve halves every sum; none is negative.
func (t *table[K]) halve() {
	for i := range t.ents {
		for j := range t.ents[i] {
			t.ents[i][j] /= 2
		}
	}
}

// Halve halves all sums, rounding down (see Halver).
func (b *SoftBins) Halve() {
	for _, s := range b.sums {
		for j := range s {
			s[j] /= 2
		}
	}
	b.n, b.w = b.n/2, b.w/2
}

// Halve halves all sums, rounding down (see Halver).
func (c *ClassWise) Halve() {
	for k := range c.dense {
		c.dense[k] /= 2
	}
	c.t.halve()
	c.n, c.w = c.n/2, c.w/2
}

// half returns ⌊a/2⌋.
func (a i128) half() i128 { return i128{a.hi >> 1, a.lo>>1 | uint64(a.hi)<<63} }

// Halve halves all sums, rounding down (see Halver), and quarters Σw², so that EffectiveN is that of the halved weights.
func (s *Scores) Halve() {
	*s = Scores{n: s.n / 2, w: s.w / 2, w2: s.w2.half().half(), nll: s.nll.half(), brier: s.brier.half(), wa: s.wa / 2, wc: s.wc / 2}
}

// Halve halves all sums, rounding down (see Halver).
func (c *TemperatureCurve) Halve() {
	c.n, c.w = c.n/2, c.w/2
	for j := range c.sums {
		c.sums[j].nll, c.sums[j].slope = c.sums[j].nll.half(), c.sums[j].slope.half()
	}
}

// Halve halves all sums, rounding down (see Halver).
func (l *Lag) Halve() {
	l.n, l.sum = 0, l.sum.half()
	for i := range l.counts {
		l.counts[i] /= 2
		l.n += l.counts[i]
	}
}

// Halve halves all sums, rounding down (see Halver); the sample stays.
func (s *Set) Halve() {
	if s.Seen != nil {
		for _, g := range []*Grid{&s.Seen.MSP, &s.Seen.Margin, &s.Seen.NegEnt} {
			g.Halve()
		}
	}
	if l := s.Labelled; l != nil {
		for _, g := range []*Grid{&l.MSP, &l.Margin, &l.NegEnt, &l.Served} {
			g.Halve()
		}
		l.Soft.Halve()
		l.ClassWise.Halve()
		l.Scores.Halve()
		l.Lag.Halve()
	}
	if s.Classes != nil {
		s.Classes.Halve()
	}
}
