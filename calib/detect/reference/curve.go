package reference

import (
	"cmp"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/metric"
)

// curve compares the calibration curves bin by bin. The variance of a bin's mean a - c is that of the outcomes, with
// one row of each kind added, so that it is not 0 in a bin of right rows only; confidences inside the bin add at most
// (1/2M)² to v.
func curve(ref, cur []metric.Bin) []BinChange {
	out := make([]BinChange, len(ref))
	for j := range ref {
		b := BinChange{Change: unknown(), P: 1}
		if ref[j].EffectiveN() >= 2 && cur[j].EffectiveN() >= 2 {
			g0, v0 := gap(ref[j])
			g1, v1 := gap(cur[j])
			d, se := g1-g0, math.Sqrt(v0+v1)
			b.Change = Change{g0, g1, d, d - z95*se, d + z95*se}
			b.P = math.Erfc(math.Abs(d) / se / math.Sqrt2)
		}
		out[j] = b
	}
	holm(out)
	return out
}

// gap returns the mean a - c of a bin and its variance.
func gap(b metric.Bin) (mean, variance float64) {
	n := b.EffectiveN()
	p := (min(1, max(0, b.Acc()))*n + 1) / (n + 2) // debiased moves Acc beyond 0 and 1
	return b.Acc() - b.Conf(), p * (1 - p) / n
}

// holm sets PHolm: p_(k)·(M - k + 1), made non-decreasing, at most 1. Bins without rows count too.
func holm(bins []BinChange) {
	order := make([]int, len(bins))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bins[a].P, bins[b].P) })
	last := 0.0
	for k, i := range order {
		last = min(1, max(last, bins[i].P*float64(len(bins)-k)))
		bins[i].PHolm = last
	}
}
