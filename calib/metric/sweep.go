package metric

// Sweep returns the equal-mass bins of the monotonic sweep: the largest number of bins b in 2..n-1 for which the
// accuracies of the bins do not fall, stopping at the first b that fails (1 where b = 2 fails or n < 3). The row
// of rank r is in bin ⌊r·b/n⌋. ECE of these bins is the mean-sweep calibration error, ECEL2 its L2 form.
// Reference: Roelofs et al., Mitigating Bias in Calibration Error Estimation, AISTATS 2022.
func Sweep(s Sorted) []Bin {
	n := len(s.C)
	hits := make([]int, n+1) // hits[r]: right rows among the r of lowest confidence
	first, last := n, -1     // the first right and the last wrong row
	for r, a := range s.A {
		hits[r+1] = hits[r]
		if a {
			hits[r+1]++
			first = min(first, r)
		} else {
			last = r
		}
	}
	b := 1
	for b+1 < n && monotone(hits, first, last, b+1) {
		b++
	}
	bins := make([]Bin, b)
	for r, c := range s.C {
		bins[r*b/n].add(c, s.A[r], 1)
	}
	return bins
}

// monotone says whether the accuracies of b bins do not fall. Bins wholly before the first right row have
// accuracy 0 and those wholly after the last wrong row 1, so only the bins between need a look; without this
// a model whose confidence separates right from wrong would cost n² steps.
func monotone(hits []int, first, last, b int) bool {
	n := len(hits) - 1
	if first > last {
		return true
	}
	prevHits, prevSize := 0, 1
	for j := first * b / n; j <= last*b/n; j++ {
		lo, hi := binStart(j, b, n), binStart(j+1, b, n)
		h, size := hits[hi]-hits[lo], hi-lo
		if h*prevSize < prevHits*size {
			return false
		}
		prevHits, prevSize = h, size
	}
	return true
}

// binStart returns the lowest rank r with ⌊r·b/n⌋ = j, ⌈j·n/b⌉.
func binStart(j, b, n int) int { return (j*n + b - 1) / b }
