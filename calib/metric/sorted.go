package metric

import (
	"cmp"
	"slices"
)

// Sorted are rows in ascending order of a confidence score; rows of equal score keep their order.
type Sorted struct {
	C []float64
	A []bool
}

// Sort returns the rows (c, a) in ascending order of c, stably, as new slices. It panics if the lengths differ.
// A NaN score sorts first.
func Sort(c []float64, a []bool) Sorted {
	checkLengths(c, a, nil)
	type row struct {
		c float64
		i int
	}
	rows := make([]row, len(c))
	for i, ci := range c {
		rows[i] = row{ci, i}
	}
	// The index breaks ties, which makes the faster unstable sort stable.
	slices.SortFunc(rows, func(x, y row) int {
		if x.c < y.c {
			return -1
		}
		if x.c > y.c {
			return 1
		}
		return cmp.Or(cmp.Compare(x.c, y.c), x.i-y.i)
	})
	s := Sorted{C: make([]float64, len(c)), A: make([]bool, len(c))}
	for k, r := range rows {
		s.C[k], s.A[k] = r.c, a[r.i]
	}
	return s
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
