package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// Interval is the uncertainty of an ECE: what a perfectly calibrated model would show at the same counts and
// confidences (Null its mean, NullHi its 95 % quantile), and a 95 % interval [Lo, Hi] of the observed value.
type Interval struct{ Null, NullHi, Lo, Hi float64 }

// Resample returns the null expectation and the interval of ECE(bins) by resampling the hits of every bin:
//
//	null:     hits_b ~ Binomial(n_b, conf_b),  Null = mean ECE, NullHi = 95 % quantile
//	interval: hits_b ~ Binomial(n_b, acc_b),   [Lo, Hi] = 2.5 % and 97.5 % quantiles + (ECE - mean)
//
// The resampled ECE of the interval is biased upward by the noise that resampling adds, hence the shift by
// its mean: the interval is about the observed value, brackets it, and is cut to [0,1]. It speaks of sampling
// noise, not of the bias of the observed value itself: for that compare it with Null. Bins whose rows are all
// right or all wrong add no width. Weighted bins: n_b is Kish's effective number of rows, rounded, and the hits are
// scaled by W_b/n_b: copies of a row are not more rows.
// It is deterministic in (bins, resamples, seed). All four are NaN where there is no row or resamples < 1.
func Resample(bins []Bin, resamples int, seed uint64) Interval {
	nan := math.NaN()
	total := Total(bins)
	if !(total > 0) || resamples < 1 {
		return Interval{nan, nan, nan, nan}
	}
	s := resamplings.Get().(*resampling)
	defer resamplings.Put(s)
	s.null, s.boot = zeroed(s.null, resamples), zeroed(s.boot, resamples)
	s.ece(s.null, bins, total, rand.NewPCG(seed, 0), Bin.Conf)
	s.ece(s.boot, bins, total, rand.NewPCG(seed, 1), Bin.Acc)
	return newInterval(s.null, s.boot, ECE(bins))
}

// NullECE returns Null and NullHi of Resample, for half of its time.
func NullECE(bins []Bin, resamples int, seed uint64) (null, hi float64) {
	total := Total(bins)
	if !(total > 0) || resamples < 1 {
		return math.NaN(), math.NaN()
	}
	s := resamplings.Get().(*resampling)
	defer resamplings.Put(s)
	s.null = zeroed(s.null, resamples)
	s.ece(s.null, bins, total, rand.NewPCG(seed, 0), Bin.Conf)
	slices.Sort(s.null)
	return mean(s.null), quantile(s.null, 0.95)
}

// resampling is memory for resamples.
type resampling struct {
	null, boot, hits []float64
	draws            inversion
}

var resamplings = sync.Pool{New: func() any { return new(resampling) }}

// newInterval reads the interval of the observed value from its resamples, which it sorts.
func newInterval(null, boot []float64, observed float64) Interval {
	slices.Sort(null)
	slices.Sort(boot)
	shift := observed - mean(boot)
	return Interval{
		Null:   mean(null),
		NullHi: quantile(null, 0.95),
		Lo:     max(0, min(observed, quantile(boot, 0.025)+shift)),
		Hi:     min(1, max(observed, quantile(boot, 0.975)+shift)),
	}
}

// hits returns the distribution of the hits of a bin whose rows are right with probability p, and the weight of one.
func (b Bin) hits(p float64) (d binomial, each float64) {
	n := max(1, math.Round(b.EffectiveN()))
	return newBinomial(int64(n), p), b.W / n
}

func zeroed(x []float64, n int) []float64 {
	x = slices.Grow(x[:0], n)[:n]
	clear(x)
	return x
}

// ece adds the ECEs of resamples to eces.
func (s *resampling) ece(eces []float64, bins []Bin, total float64, rng *rand.PCG, p func(Bin) float64) {
	s.hits = zeroed(s.hits, len(eces))
	for _, b := range bins {
		if b.N == 0 || !(b.W > 0) {
			continue
		}
		dist, scale := b.hits(p(b))
		s.draws.of(&dist, len(eces))
		s.draws.draw(s.hits, rng)
		for r, h := range s.hits {
			eces[r] += math.Abs(h*scale - b.SumC)
		}
	}
	for r := range eces {
		eces[r] /= total
	}
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// quantile interpolates linearly between the order statistics of ascending x.
func quantile(x []float64, q float64) float64 {
	pos := q * float64(len(x)-1)
	i := min(int(pos), len(x)-1)
	j := min(i+1, len(x)-1)
	return x[i] + (pos-float64(i))*(x[j]-x[i])
}
