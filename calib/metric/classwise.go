package metric

import "math"

// ClassWise holds the equal-width bins of every class's probability: m bins a class, over all rows.
type ClassWise struct {
	k, m int
	n    int64
	bins []Bin // k×m
}

// NewClassWise returns an empty one for k classes and m bins. It panics if either is below 1.
func NewClassWise(k, m int) *ClassWise {
	if k < 1 || m < 1 {
		panic("metric: class-wise bins need at least one class and one bin")
	}
	return &ClassWise{k: k, m: m, bins: make([]Bin, k*m)}
}

// Add adds a row: p are its k probabilities and y its label. A probability of exactly 0 is in no bin.
func (c *ClassWise) Add(p []float64, y int) {
	c.n++
	for k, pk := range p[:c.k] {
		if pk > 0 {
			c.bins[k*c.m+BinIndex(pk, c.m)].add(pk, k == y, 1)
		}
	}
}

// Bins returns the m bins of class k; SumA counts the rows labelled k.
func (c *ClassWise) Bins(k int) []Bin { return c.bins[k*c.m : (k+1)*c.m] }

// ECE returns the class-wise calibration error, the mean over all K classes, whether they occur or not:
//
//	cwece = 1/K Σ_k Σ_b n_kb/n · |acc_kb - conf_kb|
//
// n counts all rows. It shrinks like 1/K, since most probabilities are small: compare only at equal K.
// NaN where there is no row.
// Reference: Kull et al., Beyond temperature scaling, NeurIPS 2019.
func (c *ClassWise) ECE() float64 {
	var sum float64
	for _, b := range c.bins {
		sum += math.Abs(b.SumA - b.SumC)
	}
	return sum / float64(c.n) / float64(c.k)
}

// ECEL2 returns the L2 form, sqrt(1/K Σ_k Σ_b n_kb/n · (acc_kb - conf_kb)²); NaN where there is no row.
func (c *ClassWise) ECEL2() float64 {
	var sum float64
	for _, b := range c.bins {
		if b.W > 0 {
			d := b.SumA - b.SumC
			sum += d * d / b.W
		}
	}
	return math.Sqrt(sum / float64(c.n) / float64(c.k))
}
