package metric

import (
	"math"
	"sort"
)

// Sweep returns the equal-mass bins of the monotonic sweep: the largest number of bins b in 2..n-1 for which the
// accuracies of the bins do not fall, stopping at the first b that fails (1 where b = 2 fails or n < 3). The row
// of rank r is in bin ⌊r·b/n⌋. ECE of these bins is the mean-sweep calibration error, ECEL2 its L2 form.
//
// Weighted rows: r runs over the weight, a row of weight w being w equal rows that may be split between bins. With
// whole weights these are the bins of the repeated rows, but b still ends at n-1, n the number of rows.
// Reference: Roelofs et al., Mitigating Bias in Calibration Error Estimation, AISTATS 2022.
func Sweep(s Sorted) []Bin {
	if w := unlessUnit(s.W); w != nil {
		rows := make([]Bin, len(s.C))
		for i := range rows {
			rows[i] = s.sum(i, i+1)
		}
		return SweepCells(rows)
	}
	n := len(s.C)
	hits := make([]int, n+1) // hits[r]: right rows among the r of lowest confidence
	first, last := n, -1     // the first right and the last wrong row
	for r, a := range s.A {
		hits[r+1] = hits[r]
		if a {
			hits[r+1]++
			first = min(first, r)
		} else {
			last = r
		}
	}
	b := 1
	for b+1 < n && monotone(hits, first, last, b+1) {
		b++
	}
	bins := make([]Bin, b)
	for r, c := range s.C {
		bins[r*b/n].add(c, s.A[r], 1)
	}
	return bins
}

// monotone says whether the accuracies of b bins do not fall. Bins wholly before the first right row have
// accuracy 0 and those wholly after the last wrong row 1, so only the bins between need a look; without this
// a model whose confidence separates right from wrong would cost n² steps.
func monotone(hits []int, first, last, b int) bool {
	n := len(hits) - 1
	if first > last {
		return true
	}
	prevHits, prevSize := 0, 1
	for j := first * b / n; j <= last*b/n; j++ {
		lo, hi := binStart(j, b, n), binStart(j+1, b, n)
		h, size := hits[hi]-hits[lo], hi-lo
		if h*prevSize < prevHits*size {
			return false
		}
		prevHits, prevSize = h, size
	}
	return true
}

// binStart returns the lowest rank r with ⌊r·b/n⌋ = j, ⌈j·n/b⌉.
func binStart(j, b, n int) int { return (j*n + b - 1) / b }

// SweepCells is Sweep of rows that are known by cell, in ascending order of confidence. A cell over the end of a bin
// is split in proportion. b ends one below the number of cells with weight: more bins would only split cells.
// At the same b the calibration error is off by at most what EqualMassCells says; b itself may differ from that of
// the rows, since one swapped pair can end the sweep.
func SweepCells(cells []Bin) []Bin {
	s := newSweeper(cells)
	b := 1
	for b+1 < s.cells && s.monotone(b+1) {
		b++
	}
	ends := make([]float64, b)
	for j := range ends {
		ends[j] = s.start(j+1, b)
	}
	return splitCells(cells, ends)
}

// sweeper holds the running sums of cells, and reads from them the accuracy of any range of the weight.
type sweeper struct {
	w, hits     []float64 // below the end of each cell, from 0
	cells       int       // that have weight
	whole       bool      // all weights are whole: so are the starts of bins
	first, last float64   // where right rows begin and wrong ones end
}

func newSweeper(cells []Bin) *sweeper {
	s := &sweeper{w: make([]float64, 1, len(cells)+1), hits: make([]float64, 1, len(cells)+1), whole: true,
		first: math.Inf(1)}
	for _, c := range cells {
		if !(c.W > 0) {
			continue
		}
		low := s.w[s.cells]
		s.w = append(s.w, low+c.W)
		s.hits = append(s.hits, s.hits[s.cells]+c.SumA)
		s.cells++
		s.whole = s.whole && c.W == math.Floor(c.W)
		if c.SumA > 0 {
			s.first = min(s.first, low)
		}
		if c.SumA < c.W {
			s.last = low + c.W
		}
	}
	return s
}

// start returns where bin j of b starts, in weight: ⌈j·W/b⌉ with whole weights, else j·W/b.
func (s *sweeper) start(j, b int) float64 {
	total := s.w[s.cells]
	if j >= b {
		return total
	}
	at := float64(j) * total / float64(b)
	if s.whole {
		at = math.Ceil(at)
	}
	return at
}

// below returns the right weight in the first at of the weight.
func (s *sweeper) below(at float64) float64 {
	i := sort.SearchFloat64s(s.w, at)
	if i > s.cells || s.w[i] == at {
		return s.hits[min(i, s.cells)]
	}
	share := (at - s.w[i-1]) / (s.w[i] - s.w[i-1])
	return s.hits[i-1] + share*(s.hits[i]-s.hits[i-1])
}

// sameAccuracy is how far accuracies may fall by rounding alone: bins inside one cell have equal ones.
const sameAccuracy = 1e-12

func (s *sweeper) monotone(b int) bool {
	if s.first >= s.last {
		return true
	}
	total := s.w[s.cells]
	j := int(s.first / total * float64(b))
	for j > 0 && s.start(j, b) > s.first {
		j--
	}
	prev := 0.0
	lo := s.start(j, b)
	low := s.below(lo)
	for ; j < b && lo < s.last; j++ {
		hi := s.start(j+1, b)
		high := s.below(hi)
		if hi > lo {
			acc := (high - low) / (hi - lo)
			if acc < prev-sameAccuracy {
				return false
			}
			prev = acc
		}
		lo, low = hi, high
	}
	return true
}
