package metric

import "math"

// EqualMass groups the rows, in ascending order, into m bins whose sizes differ by at most one, the larger
// ones first (as numpy.array_split does). Rows of equal confidence may fall into different bins, by their
// order in the input. Where n < m the last m-n bins are empty. It panics if m < 1.
//
// Weighted rows: a row of weight w is w equal rows, so it may be split between bins, and then counts in the N of
// each. If all weights are whole numbers the bins are those of the repeated rows; otherwise the bins have W/m each.
//
// ECE and ECEL2 of these bins are the adaptive calibration error, in L1 and in L2. Other code differs in the sizes of
// the bins, and some leaves out the row of the smallest confidence.
// Reference: Nixon et al., Measuring Calibration in Deep Learning, CVPR Workshops 2019.
func EqualMass(s Sorted, m int) []Bin {
	if m < 1 {
		panic("metric: fewer than one bin")
	}
	if w := unlessUnit(s.W); w != nil {
		return massOfRows(s, m)
	}
	n := len(s.C)
	bins := make([]Bin, m)
	i := 0
	for b := range bins {
		size := n / m
		if b < n%m {
			size++
		}
		for ; size > 0; size-- {
			bins[b].add(s.C[i], s.A[i], 1)
			i++
		}
	}
	return bins
}

func massOfRows(s Sorted, m int) []Bin {
	rows := make([]Bin, len(s.C))
	for i := range rows {
		rows[i] = s.sum(i, i+1)
	}
	return EqualMassCells(rows, m)
}

// EqualMassCells is EqualMass of rows that are known by cell, in ascending order of confidence: a cell over the
// end of a bin is split in proportion, as if its right and wrong rows were evenly mixed. Against the rows, with q_b
// the share of all weight in the cell over boundary b, and v_b that cell's width,
//
//	|ACE(cells) - ACE(rows)| ≤ Σ_b q_b (1 + v_b) / 2
//
// over the m-1 inner boundaries. It panics if m < 1.
func EqualMassCells(cells []Bin, m int) []Bin {
	if m < 1 {
		panic("metric: fewer than one bin")
	}
	return splitCells(cells, massEnds(cells, m))
}

// sliver is a share of a cell that is there by rounding alone.
const sliver = 1e-9

// splitCells sums cells into bins that end at the given amounts of weight, which ascend; the last takes the rest.
func splitCells(cells []Bin, ends []float64) []Bin {
	m := len(ends)
	bins := make([]Bin, m)
	b, low := 0, 0.0 // low: the weight below the cell
	unit := true
	for _, c := range cells {
		if !(c.W > 0) {
			continue
		}
		unit = unit && c.W == float64(c.N)
		high := low + c.W
		for at := low; at < high; {
			for b < m-1 && at >= ends[b] {
				b++
			}
			upTo := high
			if b < m-1 {
				upTo = min(high, ends[b])
			}
			share := (upTo - at) / c.W
			bins[b].plus(c, share)
			// A share of a row is a row; of n rows it is n times the share, and at least 1. Less is rounding of the
			// ends.
			if share > sliver {
				bins[b].N += max(1, int64(math.Round(share*float64(c.N))))
			}
			at = upTo
		}
		low = high
	}
	for i := range bins {
		if unit { // rounding of the shares may have missed a row
			bins[i].N = int64(math.Round(bins[i].W))
		}
	}
	return bins
}

// massEnds returns the ends of m bins in units of weight.
func massEnds(cells []Bin, m int) []float64 {
	var total float64
	whole := true
	for _, c := range cells {
		total += c.W
		whole = whole && c.W == math.Floor(c.W)
	}
	ends := make([]float64, m)
	size, rest := total/float64(m), 0.0
	if whole {
		size = math.Floor(size)
		rest = total - size*float64(m)
	}
	for b := range ends {
		ends[b] = size*float64(b+1) + min(rest, float64(b+1))
	}
	return ends
}

// DebiasedL2 returns the root of the debiased squared calibration error of (equal-mass) bins:
//
//	sqrt(max(0, Σ_b n_b/n · [(acc_b - conf_b)² - acc_b(1 - acc_b)/(n_b - 1)]))
//
// The subtracted term is the variance that finite bins add to the plug-in ECEL2; a bin of fewer than 2 rows
// gives 0. The root of a value cut at 0 is again biased upward near 0. NaN where there is no row.
// Weighted: n_b/n is W_b/W, and n_b - 1 is that of Kish's effective number of rows, since copies of a row are no
// independent rows; all weights times a factor give the same.
// Reference: Kumar, Liang and Ma, Verified Uncertainty Calibration, NeurIPS 2019.
func DebiasedL2(bins []Bin) float64 {
	const leastRows = 2 - 1e-9 // two rows of weight 0.1 are two but for rounding
	var sum float64
	for _, b := range bins {
		n := b.EffectiveN()
		if n < leastRows || b.W <= 0 {
			continue
		}
		acc := b.SumA / b.W
		gap := (b.SumA - b.SumC) / b.W
		sum += b.W * (gap*gap - acc*(1-acc)/(n-1))
	}
	mean := sum / Total(bins)
	if mean < 0 {
		return 0
	}
	return math.Sqrt(mean)
}
