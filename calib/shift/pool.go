package shift

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// PooledAssumption is what estimates of more than MaxClasses classes rest on.
const PooledAssumption = Assumption + "; those of the classes that are taken together have not moved among each other"

// Pool takes classes together: the MaxClasses - 1 with the most rows of a reference, say, stay what they are, the
// others are one, the rest. So an estimate of any K takes the memory and the time of MaxClasses. Up to MaxClasses
// classes are all kept.
type Pool struct {
	k    int
	kept []int // ascending; nil = all
	at   []int32
}

// NewPool returns the pool for rows of the reference by class, or whatever else says which to keep; of classes with as
// many the first are kept.
func NewPool(rows []float64) *Pool { return NewPoolOf(rows, MaxClasses) }

// NewPoolOf is NewPool with at most so many classes, 2 and more: it takes less time, and says less.
func NewPoolOf(rows []float64, most int) *Pool {
	p := &Pool{k: len(rows)}
	if p.k <= most {
		return p
	}
	order := make([]int, p.k)
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows[b], rows[a]) })
	p.keep(order[:most-1])
	return p
}

// RestorePool returns the pool of k classes that keeps the given ones, in ascending order; nil keeps all. ErrInput
// where a pool cannot be so.
func RestorePool(k int, kept []int) (*Pool, error) {
	want := 0
	if k > MaxClasses {
		want = MaxClasses - 1
	}
	if len(kept) != want || !slices.IsSorted(kept) || len(slices.Compact(slices.Clone(kept))) != want || want > 0 &&
		(kept[0] < 0 || kept[want-1] >= k) {
		return nil, fmt.Errorf("%d of %d classes are kept, allowed %d, ascending and below K: %w", len(kept), k, want,
			ErrInput)
	}
	p := &Pool{k: k}
	if want > 0 {
		p.keep(kept)
	}
	return p, nil
}

func (p *Pool) keep(classes []int) {
	p.kept = slices.Clone(classes)
	slices.Sort(p.kept)
	p.at = make([]int32, p.k)
	for j := range p.at {
		p.at[j] = int32(len(classes))
	}
	for i, j := range p.kept {
		p.at[j] = int32(i)
	}
}

// Classes is K of tables of the pool.
func (p *Pool) Classes() int {
	if p.kept == nil {
		return p.k
	}
	return len(p.kept) + 1
}

// Kept are the classes that stay what they are, ascending; nil = all.
func (p *Pool) Kept() []int { return p.kept }

// Rest is how many classes are taken together.
func (p *Pool) Rest() int {
	if p.kept == nil {
		return 0
	}
	return p.k - len(p.kept)
}

// Of is the class of the pool that a class is.
func (p *Pool) Of(class int) int {
	if p.at == nil {
		return class
	}
	return int(p.at[class])
}

// Class is the reverse of Of; -1 is the rest.
func (p *Pool) Class(pooled int) int {
	switch {
	case p.kept == nil:
		return pooled
	case pooled < len(p.kept):
		return p.kept[pooled]
	}
	return -1
}

// Sum sets dst, of Classes, to the sums of x, of K, by class of the pool.
func (p *Pool) Sum(dst, x []float64) {
	if p.at == nil {
		copy(dst, x)
		return
	}
	clear(dst)
	for j, v := range x {
		dst[p.at[j]] += v
	}
}

// Spread sets dst, of K, to the values of x, of Classes: each class has that of its class of the pool. Probabilities of
// K classes that are corrected (Correct) by weights so spread have, summed by class of the pool, the sums corrected by
// the weights themselves; within the rest their ratios stay, which is right where PooledAssumption is.
func (p *Pool) Spread(dst, x []float64) {
	for j := range dst {
		dst[j] = x[p.Of(j)]
	}
}

// Gather sets dst, of Classes, to the means of x, of K, by class of the pool, where class j weighs rows_j + ½: of the
// rest it is what weights by class do to its share.
func (p *Pool) Gather(dst, x, rows []float64) {
	clear(dst)
	total := make([]float64, len(dst))
	for j, v := range x {
		n := rows[j] + .5
		dst[p.Of(j)] += n * v
		total[p.Of(j)] += n
	}
	for i := range dst {
		dst[i] /= total[i]
	}
}

// Mend makes an estimate of a table of the pool one of the K classes. There a row of the rest of which the model says
// another class of the rest looks right: wrong are such rows of the reference, and rows all of its rest. With δ =
// wrong/rows,
//
//	accuracy = accuracy of the table - q δ,   q the share of the rest
//
// and its interval is wider by 1.96 (SE_q δ + q sqrt(δ(1-δ)/rows)) on either side, as if the errors came together at
// their worst.
func (p *Pool) Mend(e *Estimate, wrong, rows float64) {
	if p.kept == nil {
		return
	}
	e.Assumption = PooledAssumption
	if !(rows > 0) {
		return
	}
	rest := len(p.kept)
	q, d := e.Shares[rest], min(1, wrong/rows)
	more := z95 * (e.SE[rest]*d + q*math.Sqrt(d*(1-d)/rows))
	lo, hi := e.Accuracy-e.Lo, e.Hi-e.Accuracy
	e.Accuracy = max(0, e.Accuracy-q*d)
	e.Lo, e.Hi = max(0, e.Accuracy-lo-more), min(1, e.Accuracy+hi+more)
}
