package metric

import "github.com/plumbline/plumbline/calib/kernel"

// BrierBin is a bin with what the exact decomposition of the Brier score needs beside: SumC2 = Σ w·c²,
// SumCA = Σ w·c·a.
type BrierBin struct {
	Bin
	SumC2, SumCA float64
}

// BrierParts are the terms of a Brier score Σ w (c - a)²/W of one probability c and its outcome a:
//
//	Brier = Reliability - Resolution + Uncertainty + WithinVariance - WithinCovariance
//
//	Reliability      = Σ_b W_b/W (conf_b - acc_b)²        0 for a calibrated model, up to noise; ece_l2²
//	Resolution       = Σ_b W_b/W (acc_b - acc)²           how far the bins' accuracies are apart; more is better
//	Uncertainty      = acc (1 - acc)                      of the outcome itself
//	WithinVariance   = 1/W Σ_b Σ_{i∈b} w_i (c_i - conf_b)²
//	WithinCovariance = 2/W Σ_b Σ_{i∈b} w_i (a_i - acc_b)(c_i - conf_b)
//
// The last two are the spread inside the bins, which the classical three terms leave out; the sum is exact up to
// rounding. Reliability is biased upward and Resolution too, each by the noise of the bins' accuracies.
// Reference: Murphy, A New Vector Partition of the Probability Score, J. Appl. Meteor. 12 (1973); Stephenson, Coelho
// and Jolliffe, Two Extra Components in the Brier Score Decomposition, Weather and Forecasting 23 (2008).
type BrierParts struct {
	Brier                            float64
	Reliability, Resolution          float64
	Uncertainty                      float64
	WithinVariance, WithinCovariance float64
}

// BrierBins sums rows of confidences c in [0,1], outcomes a and weights w (or nil) into the m bins (i/m, (i+1)/m];
// c = 0 counts in the first. It panics if the lengths differ or m < 1.
func BrierBins(c []float64, a []bool, w []float64, m int) []BrierBin {
	checkLengths(c, a, w)
	bins := make([]BrierBin, m)
	for i, ci := range c {
		bins[BinIndex(ci, m)].add(ci, a[i], weight(w, i))
	}
	return bins
}

func (b *BrierBin) add(c float64, a bool, w float64) {
	b.Bin.add(c, a, w)
	b.SumC2 += w * c * c
	if a {
		b.SumCA += w * c
	}
}

// DecomposeBrier returns the terms of the Brier score of the bins' rows, whatever the bins are; all NaN without rows.
func DecomposeBrier(bins []BrierBin) BrierParts {
	var all BrierBin
	for _, b := range bins {
		all.plus(b.Bin, 1)
		all.SumC2 += b.SumC2
		all.SumCA += b.SumCA
	}
	w, acc := all.W, all.Acc()
	p := BrierParts{Brier: (all.SumC2 - 2*all.SumCA + all.SumA) / w, Uncertainty: acc * (1 - acc)}
	var rel, res, variance, cov float64
	for _, b := range bins {
		if !(b.W > 0) {
			continue
		}
		gap, off := b.Conf()-b.Acc(), b.Acc()-acc
		rel += b.W * gap * gap
		res += b.W * off * off
		variance += max(0, b.SumC2-b.SumC*b.Conf())
		cov += 2 * (b.SumCA - b.SumA*b.Conf())
	}
	p.Reliability, p.Resolution, p.WithinVariance, p.WithinCovariance = rel/w, res/w, variance/w, cov/w
	return p
}

// DecomposeTopLabel returns the terms of the Brier score of the predicted class, mean (c - a)², over Options.Bins
// equal-width bins. It returns the errors of Evaluate.
func DecomposeTopLabel(rows Rows, opt Options) (BrierParts, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return BrierParts{}, err
	}
	opt.CSF = MSP
	s, err := rows.scan(opt, true)
	if err != nil {
		return BrierParts{}, err
	}
	return DecomposeBrier(BrierBins(s.c, s.a, s.w, opt.Bins)), nil
}

// DecomposeClasses returns the terms for every class k, of c = p_k and a = 1[y = k], over Options.Bins equal-width
// bins. Their Brier scores add up to `brier` of Evaluate. Here p_k = 0 counts in the first bin, since the sum would not
// be exact without it. It returns the errors of Evaluate.
func DecomposeClasses(rows Rows, opt Options) ([]BrierParts, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := rows.checkBins(opt.Bins); err != nil {
		return nil, err
	}
	m := opt.Bins
	bins := make([]BrierBin, rows.K*m)
	err = rows.each(func(_ kernel.Row, p []float64, y int, w float64) {
		for k, pk := range p {
			bins[k*m+BinIndex(pk, m)].add(pk, k == y, w)
		}
	})
	if err != nil {
		return nil, err
	}
	parts := make([]BrierParts, rows.K)
	for k := range parts {
		parts[k] = DecomposeBrier(bins[k*m : (k+1)*m])
	}
	return parts, nil
}
