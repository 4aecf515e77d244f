package metric

import (
	"math"
	"math/rand/v2"
	"slices"
)

// UncertaintyKeys are the calibration errors that Evaluate knows the uncertainty of, in the order of the output.
var UncertaintyKeys = []string{
	"ece", "ece_l2", "mce", "ace", "ace_l2", "cwece", "cwece_l2", "debiased_l2",
	"ks", "sweep", "sweep_l2", "smece", "sbece_bin", "sbece_lb",
}

// KeyInterval is the uncertainty of the metric of a key.
type KeyInterval struct {
	Key string
	Interval
}

// nanInterval is that of no rows.
var nanInterval = Interval{math.NaN(), math.NaN(), math.NaN(), math.NaN()}

// uncertainties returns the null expectation and the 95 % interval of the calibration errors of UncertaintyKeys; opt
// has its defaults. As for Resample, the null is what a perfectly calibrated model shows at the same confidences, and
// the interval is about the observed value and shifted by the resampling's own bias. What is redrawn:
//
//   - ece, ece_l2, mce and ace, ace_l2, debiased_l2: the hits of the bins, n_b·conf_b expected under the null,
//     n_b·acc_b for the interval (ResampleBins);
//   - ks, sweep, smece, sbece: under the null the hits of at most about 1,024 cells of equal weight, for the
//     interval the cells' rows with replacement (resampleCells). Up to 1,024 distinct confidences that is by row;
//   - cwece: labels row by row, y ~ p under the null, y ~ the accuracies of the row's bins, normalised, for the
//     interval. Above 2·10⁷ draws there are fewer resamples, 100 at least; above 10⁸ draws or 4 million bins times
//     resamples the bins are redrawn apart, which leaves the mean right and the quantiles only if K is large.
//
// Cost at the defaults and n = 10,000, K = 10: the bins a millisecond, cells 0.1 to 1 s, class-wise 0.5 s. NaN where
// there is no row.
func uncertainties(rows Rows, s Sorted, bins []Bin, classes *ClassWise, opt Options) ([]KeyInterval, error) {
	all := map[string]Interval{}
	width := func(key string, b []Bin, f func([]Bin) float64) {
		all[key] = ResampleBins(b, f, opt.Resamples, opt.Seed)
	}
	all["ece"] = Resample(bins, opt.Resamples, opt.Seed)
	width("ece_l2", bins, ECEL2)
	width("mce", bins, MCE)
	mass := EqualMass(s, opt.Bins)
	width("ace", mass, ECE)
	width("ace_l2", mass, ECEL2)
	width("debiased_l2", mass, DebiasedL2)
	cellUncertainties(all, Cells(s, resampleLimit), &s, opt, func(...string) bool { return true })
	l1, l2, err := classUncertainty(rows, classes, opt)
	if err != nil {
		return nil, err
	}
	all["cwece"], all["cwece_l2"] = l1, l2
	out := make([]KeyInterval, 0, len(UncertaintyKeys))
	for _, key := range UncertaintyKeys {
		out = append(out, KeyInterval{key, all[key]})
	}
	return out, nil
}

// ResampleBins is Resample for any function of the bins, such as ECEL2, MCE or DebiasedL2: only the hits of the bins
// are redrawn.
func ResampleBins(bins []Bin, f func([]Bin) float64, resamples int, seed uint64) Interval {
	if !(Total(bins) > 0) || resamples < 1 {
		return nanInterval
	}
	null := redrawHits(bins, f, resamples, rand.NewPCG(seed, 0), Bin.Conf)
	boot := redrawHits(bins, f, resamples, rand.NewPCG(seed, 1), Bin.Acc)
	return newInterval(null, boot, f(bins))
}

func redrawHits(bins []Bin, f func([]Bin) float64, resamples int, rng *rand.PCG, p func(Bin) float64) []float64 {
	work := slices.Clone(bins)
	dist, each := make([]binomial, len(bins)), make([]float64, len(bins))
	for i, b := range bins {
		if b.W > 0 {
			dist[i], each[i] = b.hits(p(b))
		}
	}
	out := make([]float64, resamples)
	for r := range out {
		for i, b := range bins {
			if b.W > 0 {
				work[i].SumA = dist[i].draw(rng) * each[i]
			}
		}
		out[r] = f(work)
	}
	return out
}

// resampleCells returns the null expectations and the intervals of calibration errors of cells in ascending order of
// confidence; f writes their values to out:
//
//	null:     hits of every cell ~ Binomial(n, mean confidence)
//	interval: right and wrong rows of all cells ~ multinomial, the rows drawn with replacement
//
// observed are the values that the intervals are about. n is Kish's effective number of rows. NaN where there is no row
// or resamples < 1.
func resampleCells(cells []Bin, observed []float64, f func(cells []Bin, out []float64), resamples int,
	seed uint64) []Interval {
	ivs := make([]Interval, len(observed))
	if !(Total(cells) > 0) || resamples < 1 {
		for i := range ivs {
			ivs[i] = nanInterval
		}
		return ivs
	}
	cells = slices.DeleteFunc(slices.Clone(cells), func(b Bin) bool { return !(b.W > 0) })
	out := make([]float64, len(observed))
	collect := func(draw func(work []Bin)) [][]float64 {
		values := make([][]float64, len(observed))
		work := slices.Clone(cells)
		for range resamples {
			draw(work)
			f(work, out)
			for i, v := range out {
				values[i] = append(values[i], v)
			}
		}
		return values
	}
	null := collect(nullDraw(cells, rand.NewPCG(seed, 2)))
	boot := collect(rowDraw(cells, rand.NewPCG(seed, 3)))
	for i := range ivs {
		ivs[i] = newInterval(null[i], boot[i], observed[i])
	}
	return ivs
}

func nullDraw(cells []Bin, rng *rand.PCG) func(work []Bin) {
	dist, each := make([]binomial, len(cells)), make([]float64, len(cells))
	for i, c := range cells {
		dist[i], each[i] = c.hits(c.Conf())
	}
	return func(work []Bin) {
		for i := range work {
			work[i].SumA = dist[i].draw(rng) * each[i]
		}
	}
}

// rowDraw draws as many rows as there are, with replacement: a multinomial of the cells' right and wrong weights, as a
// chain of binomials.
func rowDraw(cells []Bin, rng *rand.PCG) func(work []Bin) {
	var all Bin
	for _, c := range cells {
		all.N += c.N
		all.plus(c, 1)
	}
	n := int64(max(1, math.Round(all.EffectiveN())))
	each := all.W / float64(n)
	return func(work []Bin) {
		left, rest := n, all.W
		take := func(w float64) float64 {
			if left == 0 || !(w > 0) {
				return 0
			}
			d := newBinomial(left, min(1, w/rest))
			k := d.draw(rng)
			left -= int64(k)
			rest -= w
			return k
		}
		for i, c := range cells {
			right := take(c.SumA)
			rows := right + take(c.W-c.SumA)
			work[i] = Bin{N: int64(rows), W: rows * each, W2: rows * each * each, SumC: rows * each * c.Conf(),
				SumA: right * each}
		}
		if last := len(work) - 1; left > 0 { // rounding of rest can leave a row over
			w := float64(left) * each
			work[last].plus(Bin{W: w, W2: w * each, SumC: w * cells[last].Conf(), SumA: w * cells[last].Acc()}, 1)
			work[last].N += left
		}
	}
}
