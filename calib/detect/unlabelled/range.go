package unlabelled

import (
	"math"
	"slices"
)

// Range is between what two estimates say of the same rows: each is right under an assumption of its own, and under
// many changes the truth lies between them.
type Range struct {
	Lo, Hi float64 // of the accuracy
	Margin float64 // what of that the past has added at each end
	Past   int     // blocks of labelled rows behind Margin
	// Known is whether the range says something: it is at most KnownWidth wide, has LeastPast blocks behind it, no
	// assumption is refuted (Rejected), and it is not Stale. Else the accuracy cannot be known without labels.
	Known    bool
	Rejected bool // the rows refute an assumption: the range has the end of [0, 1] to which that estimate points
	Stale    bool // 2 of the newest 20 blocks lay outside what both estimates said
}

// KnownWidth is the largest width of a range that says something.
const KnownWidth = .15

// LeastPast is how many past blocks the guarantee of RangeOf needs.
const LeastPast = 9

// Of the newestBlocks latest blocks staleBlocks outside are a change. A block is smaller than a window, so that its
// estimates are vaguer, and Excess allows for the noise of its labels, too: after a change that hurts a window many a
// block is inside. As the accuracy is between the estimates, one is outside by 2.4 standard errors or more where the
// noise of labels is at least a quarter of that of an estimate: two of 20 are by chance in about 1 %. What counts is
// the excess without the margin, which learns from the change itself.
const newestBlocks, staleBlocks = 20, 2

// rangeLevel is the share of future blocks that a range is to hold, if they are like past ones.
const rangeLevel = .9

// RangeOf returns the range of estimates of the same rows, at least one, widened by how far past ranges have missed:
//
//	[max(0, min Lo - m), min(1, max Hi + m)]    m the ⌈.9(n+1)⌉-th smallest of n past excesses, at most the largest
//
// past are those of Excess, oldest first, of blocks of labelled rows of the same model. Guarantee (split conformal
// prediction): if the excess of these rows and the past ones are exchangeable and n ≥ LeastPast, the range holds the
// accuracy, up to the noise that Excess allows, with a probability of at least .9, whatever the estimates assume. After
// a change unlike all before there is no guarantee: until its labels come, the width is all that warns.
// Reference: Lei, G'Sell, Rinaldo, Tibshirani, Wasserman, Distribution-Free Predictive Inference for Regression, JASA
// 2018, section 2.2.
func RangeOf(past []float64, estimates ...Estimate) Range {
	r := Range{Past: len(past)}
	r.Lo, r.Hi = hull(estimates)
	if n := len(past); n > 0 {
		sorted := slices.Sorted(slices.Values(past))
		r.Margin = sorted[min(n, int(math.Ceil(rangeLevel*float64(n+1))))-1]
	}
	r.Lo, r.Hi = max(0, r.Lo-r.Margin), min(1, r.Hi+r.Margin)
	outside := 0
	for _, x := range past[max(0, len(past)-newestBlocks):] {
		if x > 0 {
			outside++
		}
	}
	r.Stale = outside >= staleBlocks
	r.Rejected = slices.ContainsFunc(estimates, func(e Estimate) bool { return e.Rejected })
	r.Known = len(estimates) > 1 && r.Hi-r.Lo <= KnownWidth && r.Past >= LeastPast && !r.Rejected && !r.Stale
	return r
}

func hull(estimates []Estimate) (lo, hi float64) {
	lo, hi = 1, 0
	for _, e := range estimates {
		lo, hi = min(lo, e.Lo), max(hi, e.Hi)
	}
	return lo, hi
}

// Excess returns by how much the accuracy of n labelled rows, of which right are right, lies outside the hull of
// estimates that were made without their labels, beyond 1.96 standard errors of the accuracy of n rows; else 0.
func Excess(right, n float64, estimates ...Estimate) float64 {
	lo, hi := hull(estimates)
	smooth := (right + 1) / (n + 2)
	p, noise := right/n, z95*math.Sqrt(smooth*(1-smooth)/n)
	return max(0, lo-p-noise, p-hi-noise)
}
