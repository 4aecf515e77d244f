package metric

import (
	"cmp"
	"slices"
)

// Sorted are rows in ascending order of a confidence score; rows of equal score keep their order. W are their
// weights, or nil where every row counts 1: a row of weight w stands for w equal rows.
type Sorted struct {
	C []float64
	A []bool
	W []float64
}

// Sort returns the rows (c, a) in ascending order of c, stably, as new slices. It panics if the lengths differ.
// A NaN score sorts first.
func Sort(c []float64, a []bool) Sorted { return SortWeighted(c, a, nil) }

// SortWeighted is Sort of rows with weights ≥ 0; w may be nil. Weights that are all 1 are dropped.
func SortWeighted(c []float64, a []bool, w []float64) Sorted {
	checkLengths(c, a, w)
	w = unlessUnit(w)
	order := ascending(c)
	s := Sorted{C: make([]float64, len(c)), A: make([]bool, len(c))}
	for k, i := range order {
		s.C[k], s.A[k] = c[i], a[i]
	}
	if w != nil {
		s.W = make([]float64, len(w))
		for k, i := range order {
			s.W[k] = w[i]
		}
	}
	return s
}

// radixFrom is the number of rows from which a radix sort beats comparisons.
const radixFrom = 1 << 11

// ascending returns the indices of c in stable ascending order.
func ascending(c []float64) []int32 {
	if len(c) >= radixFrom {
		return radixOrder(c)
	}
	order := make([]int32, len(c))
	for i := range order {
		order[i] = int32(i)
	}
	// The index breaks ties, which makes the faster unstable sort stable.
	slices.SortFunc(order, func(x, y int32) int { return cmp.Or(cmp.Compare(c[x], c[y]), cmp.Compare(x, y)) })
	return order
}

// tieEnd returns the end of the group of equal scores that starts at i.
func (s Sorted) tieEnd(i int) int {
	j := i + 1
	for j < len(s.C) && s.C[j] == s.C[i] {
		j++
	}
	return j
}

// correct returns the number of right rows in [i, j).
func (s Sorted) correct(i, j int) int {
	n := 0
	for _, a := range s.A[i:j] {
		if a {
			n++
		}
	}
	return n
}

// weigh returns the weights of the right and of the wrong rows in [i, j). Each is a sum of its own: a small one would not
// survive as the difference of two that are large.
func (s Sorted) weigh(i, j int) (right, wrong float64) {
	if s.W == nil {
		n := s.correct(i, j)
		return float64(n), float64(j - i - n)
	}
	for k, w := range s.W[i:j] {
		if s.A[i+k] {
			right += w
		} else {
			wrong += w
		}
	}
	return right, wrong
}

// sum returns the sums of the rows in [i, j).
func (s Sorted) sum(i, j int) Bin {
	var b Bin
	for k := i; k < j; k++ {
		b.add(s.C[k], s.A[k], weight(s.W, k))
	}
	return b
}
