package metric

import (
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// ClassReliability is how true the probability of one class is, over all rows: the problem "class k or not".
type ClassReliability struct {
	Class      int
	N          int64   // rows labelled with the class
	Share      float64 // their share of the weight
	Mean       float64 // mean probability of the class: above Share, the class is predicted too often
	Accuracy   float64 // share of rows for which "predicted k" and "labelled k" agree
	ECE, ECEL2 float64
	Interval   Interval         // of ECE
	Bins       []ReliabilityBin // with Wilson intervals
}

// PerClass returns the reliability of each of the K classes, from Options.Bins equal-width bins of its probability,
// Resamples and Seed. The mean of the ECEs is `cwece`. As there, a probability of exactly 0 is in no bin. An absent
// class has N = 0, and an ECE that is its mean probability. It returns the errors of Evaluate.
func PerClass(rows Rows, opt Options) ([]ClassReliability, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := rows.checkBins(opt.Bins); err != nil {
		return nil, err
	}
	c := NewClassWise(rows.K, opt.Bins)
	out := make([]ClassReliability, rows.K)
	err = rows.each(func(sum kernel.Row, p []float64, y int, w float64) {
		c.AddWeighted(p, y, w)
		out[y].N++
		out[y].Share += w
		if sum.Arg != y { // wrong for both, right for all others
			out[sum.Arg].Accuracy -= w
			out[y].Accuracy -= w
		}
	})
	if err != nil {
		return nil, err
	}
	for k := range out {
		r, bins := &out[k], c.Bins(k)
		var conf, l1, l2 float64
		for _, b := range bins {
			d := b.SumA - b.SumC
			conf += b.SumC
			l1 += math.Abs(d)
			if b.W > 0 {
				l2 += d * d / b.W
			}
		}
		r.Class, r.Share, r.Mean, r.Accuracy = k, r.Share/c.w, conf/c.w, 1+r.Accuracy/c.w
		r.ECE, r.ECEL2 = l1/c.w, math.Sqrt(l2/c.w)
		if binned := Total(bins); binned > 0 || c.w == 0 {
			// The rows with p_k = 0 are in c.w but in no bin.
			r.Interval = Resample(bins, opt.Resamples, opt.Seed).times(binned / c.w)
		}
		r.Bins = Reliability(bins, Wilson)
	}
	return out, nil
}
