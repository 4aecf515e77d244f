package compare

import (
	"cmp"
	"math"
	"slices"
)

// Split divides row indices: about the given share, in (0,1), is held out, and the rest is for fitting. The side of a
// row depends only on the hash of (seed, index). With at least two rows, neither side is empty. Both sides keep the
// order of rows.
func Split(rows []int, share float64, seed uint64) (fit, held []int) {
	order := byHash(rows, seed)
	n := len(rows)
	cut := min(max(int(math.Round(share*float64(n))), min(1, n)), max(n-1, 0))
	held, fit = order[:cut:cut], order[cut:]
	slices.Sort(held)
	slices.Sort(fit)
	return fit, held
}

// Folds divides row indices into k folds by the hash of (seed, index). Sizes differ by at most one. Each fold keeps the
// order of rows.
func Folds(rows []int, k int, seed uint64) [][]int {
	folds := make([][]int, k)
	for i, row := range byHash(rows, seed) {
		folds[i%k] = append(folds[i%k], row)
	}
	for _, f := range folds {
		slices.Sort(f)
	}
	return folds
}

// byHash returns the rows ordered by their hashes.
func byHash(rows []int, seed uint64) []int {
	type keyed struct {
		hash uint64
		row  int
	}
	order := make([]keyed, len(rows))
	for i, row := range rows {
		order[i] = keyed{mix(mix(seed) ^ uint64(row)), row}
	}
	slices.SortFunc(order, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash),
			cmp.Compare(a.row, b.row))
	})
	out := make([]int, len(rows))
	for i, o := range order {
		out[i] = o.row
	}
	return out
}

// mix is the output function of SplitMix64, a bijection.
// Reference: Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
