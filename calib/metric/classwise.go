package metric

import (
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// ClassWise holds the equal-width bins of every class's probability: m bins a class, over all rows.
type ClassWise struct {
	k, m int
	n    int64
	w    float64
	bins []Bin // k×m

	// Of the block path: its rows of weight 1, up to where a probability is in the first bin for certain, and for
	// clearBin how far p·m must be from integers, and up to where.
	unit              classUnit
	edge, slack, last float64
}

// NewClassWise returns an empty one for k classes and m bins. It panics if either is below 1.
func NewClassWise(k, m int) *ClassWise {
	if k < 1 || m < 1 {
		panic("metric: class-wise bins need at least one class and one bin")
	}
	c := &ClassWise{k: k, m: m, bins: make([]Bin, k*m), edge: (1 - 2*kernel.EdgeTolerance) / float64(m)}
	c.slack = 2 * kernel.EdgeTolerance * float64(m)
	if m == 1 {
		c.slack = 1 // nothing is sure: all belongs to the first bin
	}
	c.last = float64(m) - 2*c.slack
	return c
}

// Add adds a row: p are its k probabilities and y its label. A probability of exactly 0 is in no bin.
func (c *ClassWise) Add(p []float64, y int) { c.AddWeighted(p, y, 1) }

// AddWeighted is Add of a row of weight w ≥ 0.
func (c *ClassWise) AddWeighted(p []float64, y int, w float64) {
	for k, pk := range p[:c.k] {
		c.prob(k, pk, w)
	}
	c.hit(y, p[y], w)
	c.n++
	c.w += w
}

// prob adds probability p of class k to its bin, without its outcome.
func (c *ClassWise) prob(k int, p, w float64) {
	if p > 0 {
		c.bins[k*c.m+BinIndex(p, c.m)].add(p, false, w)
	}
}

// hit adds the outcome of the label's class, whose probability is p.
func (c *ClassWise) hit(y int, p, w float64) {
	if p > 0 {
		c.bins[y*c.m+BinIndex(p, c.m)].SumA += w
	}
}

// Bins returns the m bins of class k; SumA counts the rows labelled k.
func (c *ClassWise) Bins(k int) []Bin {
	c.fold()
	return c.bins[k*c.m : (k+1)*c.m]
}

// Total returns the number of rows and their weight.
func (c *ClassWise) Total() (n int64, w float64) { return c.n, c.w }

// ECE returns the class-wise calibration error, the mean over all K classes, whether they occur or not:
//
//	cwece = 1/K Σ_k Σ_b W_kb/W · |acc_kb - conf_kb|
//
// W is that of all rows. It shrinks like 1/K, since most probabilities are small: compare only at equal K.
// NaN where there is no row.
// Reference: Kull et al., Beyond temperature scaling, NeurIPS 2019.
func (c *ClassWise) ECE() float64 {
	c.fold()
	var sum float64
	for _, b := range c.bins {
		sum += math.Abs(b.SumA - b.SumC)
	}
	return sum / c.w / float64(c.k)
}

// ECEL2 returns the L2 form, sqrt(1/K Σ_k Σ_b W_kb/W · (acc_kb - conf_kb)²); NaN where there is no row.
func (c *ClassWise) ECEL2() float64 {
	c.fold()
	var sum float64
	for _, b := range c.bins {
		if b.W > 0 {
			d := b.SumA - b.SumC
			sum += d * d / b.W
		}
	}
	return math.Sqrt(sum / c.w / float64(c.k))
}
