package unlabelled

import (
	"cmp"
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
	Stale    bool // the newest blocks lay outside what both estimates said, too far for chance
}

// KnownWidth is the largest width of a range that says something.
const KnownWidth = .15

// LeastPast is how many past blocks the guarantee of RangeOf needs.
const LeastPast = 9

// Past is what a block of labelled rows says of the estimates that were made without their labels.
type Past struct {
	// Excess is by how much the accuracy lies outside the hull of the estimates' intervals, beyond 1.96 standard errors
	// of the block's accuracy; else 0.
	Excess float64
	// Miss is how far above all estimates the accuracy lies, or below them: then it is negative; 0 between them.
	Miss float64
	Rows float64 // 0: Miss is not known
}

// PastOf compares n labelled rows, of which right are right, with their estimates.
func PastOf(right, n float64, estimates ...Estimate) Past {
	out := Past{Rows: n}
	lo, hi := hull(estimates)
	smooth := (right + 1) / (n + 2)
	p, noise := right/n, z95*math.Sqrt(smooth*(1-smooth)/n)
	out.Excess = max(0, lo-p-noise, p-hi-noise)
	least, most := 1., 0.
	for _, e := range estimates {
		least, most = min(least, e.Accuracy), max(most, e.Accuracy)
	}
	out.Miss = max(0, p-most) + min(0, p-least)
	return out
}

// A single block shows little: after a change that hurts a window many a block is within the noise of its labels and
// estimates. So the newest staleBlocks are taken together, without the one farthest out: one bad block is no change.
const staleBlocks, staleErrors = 10, 3

// Stale reports whether the newest 10 blocks together lie outside what the estimates said:
//
//	|mean Miss| > 3·sqrt(A(1 - A)·(1/N + Σ 1/Rows / m²)),  over the m blocks but the one with the largest |Miss|
//
// with A the accuracy of the N rows of the reference, whose noise the estimates of all blocks share. While the accuracy
// is between what the estimates mean, that is by chance in at most about 1 block of 370 (normal approximation). The
// margin does not count, as it learns from the change itself.
func Stale(past []Past, right, rows float64) bool {
	newest := slices.Clone(past[max(0, len(past)-staleBlocks):])
	newest = slices.DeleteFunc(newest, func(p Past) bool { return p.Rows == 0 })
	if len(newest) < 2 || rows == 0 {
		return false
	}
	slices.SortFunc(newest, func(a, b Past) int { return cmp.Compare(math.Abs(a.Miss), math.Abs(b.Miss)) })
	newest = newest[:len(newest)-1]
	var miss, noise float64
	m := float64(len(newest))
	for _, p := range newest {
		miss += p.Miss / m
		noise += 1 / (p.Rows * m * m)
	}
	smooth := (right + 1) / (rows + 2)
	return math.Abs(miss) > staleErrors*math.Sqrt(smooth*(1-smooth)*(1/rows+noise))
}

// rangeLevel is the share of future blocks that a range is to hold, if they are like past ones.
const rangeLevel = .9

// RangeOf returns the range of estimates of the same rows, at least one, widened by how far past ranges have missed:
//
//	[max(0, min Lo - m), min(1, max Hi + m)]    m the ⌈.9(n+1)⌉-th smallest of n past excesses, at most the largest
//
// past are blocks of labelled rows of the same model, oldest first; stale is what Stale says of them. Guarantee (split
// conformal prediction): if the excess of these rows and the past ones are exchangeable and n ≥ LeastPast, the range
// holds the accuracy, up to the noise that Excess allows, with a probability of at least .9, whatever the estimates
// assume. After a change unlike all before there is no guarantee: until its labels come, the width is all that warns.
// Reference: Lei, G'Sell, Rinaldo, Tibshirani, Wasserman, Distribution-Free Predictive Inference for Regression, JASA
// 2018, section 2.2.
func RangeOf(past []Past, stale bool, estimates ...Estimate) Range {
	r := Range{Past: len(past), Stale: stale}
	r.Lo, r.Hi = hull(estimates)
	if n := len(past); n > 0 {
		sorted := make([]float64, n)
		for i, p := range past {
			sorted[i] = p.Excess
		}
		slices.Sort(sorted)
		r.Margin = sorted[min(n, int(math.Ceil(rangeLevel*float64(n+1))))-1]
	}
	r.Lo, r.Hi = max(0, r.Lo-r.Margin), min(1, r.Hi+r.Margin)
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
