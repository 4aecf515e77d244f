package stage

import (
	"math"

	"github.com/plumbline/plumbline/calib/metric"
)

// recentSum is what Recent.Last says of a signal and a number of rows, kept from pane to pane: a new pane is added, and
// those that are needed no longer are taken off. It is no part of the state, and the same as adding up all panes.
type recentSum struct {
	signal string
	rows   int64
	n      int64
	first  int // place of its oldest pane
	filled int // panes with bins
	asked  int // Recent.end when it was asked for last
	bins   []metric.Bin
	pane   []metric.Bin // of add
}

// recentSums bounds the sums of a key. They are for what is asked for at each pane: if there is more of it, the others
// are added up each time, since a sum that took the place of another would only be made anew.
const recentSums = 16

// sumOf returns the sum of what Last is asked for; nil where Last has to add up: few panes, or bins that do not sum
// exactly.
func (r *Recent) sumOf(signal string, rows int64) *recentSum {
	if len(r.blocks) == 0 || rows <= 0 {
		return nil
	}
	for i := range r.sums {
		if s := &r.sums[i]; s.signal == signal && s.rows == rows {
			s.asked = r.end()
			return s
		}
	}
	if len(r.sums) == recentSums {
		return nil
	}
	s := recentSum{signal: signal, rows: rows, first: r.end(), asked: r.end()}
	for p := range r.latest {
		if s.n >= rows {
			break
		}
		if !s.add(p, 1) {
			return nil
		}
		s.first--
	}
	r.sums = append(r.sums, s)
	return &r.sums[len(r.sums)-1]
}

// follow adds the newest pane, and takes those off that Last needs no longer. It returns false if that is not exact, or
// if nobody has asked for the sum lately.
func (s *recentSum) follow(r *Recent) bool {
	if r.end()-s.asked > panesOfBlock || !s.add(&r.panes[len(r.panes)-1], 1) {
		return false
	}
	for {
		old := r.at(s.first)
		if _, m := old.of(s.signal); s.n-m < s.rows {
			return true
		}
		if !s.add(&old, -1) {
			return false
		}
		s.first++
	}
}

// add adds a pane; with sign -1 it takes one off.
func (s *recentSum) add(p *paneBins, sign int64) (exact bool) {
	data, m := p.of(s.signal)
	s.n += sign * m
	if len(data) == 0 {
		return true
	}
	s.filled += int(sign)
	clear(s.pane)
	if s.pane = plusPacked(s.pane, data); s.bins == nil {
		s.bins = make([]metric.Bin, len(s.pane))
	}
	f := float64(sign)
	for i, b := range s.pane {
		d := &s.bins[i]
		d.N, d.W, d.SumC, d.SumA = d.N+sign*b.N, d.W+f*b.W, d.SumC+f*b.SumC, d.SumA+f*b.SumA
	}
	return addable(s.pane) && addable(s.bins)
}

// addable reports whether sums of such bins are the same in any order: they are multiples of 2^-32, as those of package
// acc, and below 2^20.
func addable(bins []metric.Bin) bool {
	exact := func(x float64) bool { return x >= 0 && x < 1<<20 && x*(1<<32) == math.Trunc(x*(1<<32)) }
	for i := range bins {
		if b := &bins[i]; !exact(b.W) || !exact(b.SumC) || !exact(b.SumA) {
			return false
		}
	}
	return true
}

// end is the place of the pane that comes next. Places count all panes, also those that are forgotten.
func (r *Recent) end() int { return r.gone + panesOfBlock*len(r.blocks) + len(r.panes) }

// at returns the pane of a place.
func (r *Recent) at(place int) paneBins {
	i := place - r.gone
	if n := panesOfBlock * len(r.blocks); i >= n {
		return r.panes[i-n]
	}
	return r.blocks[i/panesOfBlock].all()[i%panesOfBlock]
}
