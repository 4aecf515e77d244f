package metric

import (
	"cmp"
	"math"
	"slices"
)

// Sorted are rows in ascending order of a confidence score; rows of equal score keep their order. W are their
// weights, or nil where every row counts 1: a row of weight w stands for w equal rows.
type Sorted struct {
	C []float64
	A []bool
	W []float64
}

// SortWeighted returns the rows in ascending order of c, stably, as new slices. The weights are ≥ 0, or nil where every
// row counts 1; weights that are all 1 are dropped. It panics if the lengths differ. A NaN score sorts first.
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

// weigh returns the weights of the right and of the wrong rows in [i, j). Each is a sum of its own: a small one would
// not survive as the difference of two that are large.
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

const (
	radixBits   = 11
	radixDigits = (64 + radixBits - 1) / radixBits
	radixSize   = 1 << radixBits
)

type radixKey struct {
	key uint64
	row int32
}

// radixOrder returns the indices of c in stable ascending order, by a radix sort from the lowest digit up. All the
// digits are counted in one pass, and a digit that all keys share is passed over: confidences have few exponents.
func radixOrder(c []float64) []int32 {
	from, to := make([]radixKey, len(c)), make([]radixKey, len(c))
	var count [radixDigits][radixSize]int32
	for i, v := range c {
		k := sortKey(v)
		from[i] = radixKey{k, int32(i)}
		for d := range count {
			count[d][k>>(d*radixBits)&(radixSize-1)]++
		}
	}
	for d := range count {
		h, shift := &count[d], d*radixBits
		if h[from[0].key>>shift&(radixSize-1)] == int32(len(c)) {
			continue
		}
		var sum int32
		for i, n := range h {
			h[i] = sum
			sum += n
		}
		for _, x := range from {
			at := &h[x.key>>shift&(radixSize-1)]
			to[*at] = x
			*at++
		}
		from, to = to, from
	}
	order := make([]int32, len(c))
	for i, x := range from {
		order[i] = x.row
	}
	return order
}

// sortKey maps floats to integers of the same order: NaN first, -0 equal to 0.
func sortKey(v float64) uint64 {
	if v != v {
		return 0
	}
	b := math.Float64bits(v + 0) // -0 + 0 is 0
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}
