package detect

import "math"

// bin is one bin as bets see it, with everything widened by margin.
type bin struct {
	lo, hi, mid float64
	bias        float64 // β_j, subtracted from a - c
	slack       float64 // added to ε in this bin
	tol         float64 // ε + slack_j
}

func newBins(s Spec) []bin {
	if s.Null == NullAccuracy {
		return []bin{accuracyBin(s, 0)}
	}
	bins := make([]bin, s.Bins*s.cells())
	for j := range bins {
		b := &bins[j]
		lo, hi := s.edges(j)
		mid := (float64(j) + .5) / float64(s.Bins)
		*b = bin{lo: lo - margin, hi: hi + margin, mid: mid, tol: s.Epsilon + margin}
		if r := s.Reference; r != nil {
			b.bias = r.Bias[j]
			if r.Slack != nil {
				b.slack = r.Slack[j]
				b.tol += b.slack
			}
		}
	}
	return bins
}

// accuracyBin is the bin of NullAccuracy, at the level of the reference less lower.
func accuracyBin(s Spec, lower float64) bin {
	level, slack := s.Reference.Level()-lower, s.Reference.AccuracySlack
	return bin{lo: level - margin, hi: level + margin, mid: level, slack: slack, tol: s.Epsilon + margin + slack}
}

// fallChord bets that rows of the bin are right less often than its middle says, by ε and an excess.
func (b bin) fallChord(eps, excess float64) chord {
	return b.newChord(b.stake(-1, b.mid-eps-excess), -1, b.tol)
}

// chord holds the coefficients of a bin's log e-value, L = a1·N1 + b1·C1 + a0·N0 + b0·C0. The zero chord is no bet.
type chord struct{ a1, b1, a0, b0 float64 }

func (c chord) logE(s BinSums) float64 {
	return c.a1*s.N1 + c.b1*s.C1 + c.a0*s.N0 + c.b0*s.C0
}

// newChord returns the bet that multiplies by
//
//	1 + θ·(g·(a - c - β) - drift)
//
// at a row, from below: as a function of c its logarithm is concave, so that inside [lo, hi] it is nowhere under the
// chord between the ends. θ must leave all values positive there.
func (b bin) newChord(theta, g, drift float64) chord {
	if theta <= 0 {
		return chord{}
	}
	a1, b1 := b.line(1, theta, g, drift)
	a0, b0 := b.line(0, theta, g, drift)
	return chord{a1, b1, a0, b0}
}

// line returns the chord A + B·c of log(1 + θ(g(a - c - β) - drift)) over the bin.
func (b bin) line(a, theta, g, drift float64) (intercept, slope float64) {
	lo := math.Log1p(theta * (g*(a-b.lo-b.bias) - drift))
	hi := math.Log1p(theta * (g*(a-b.hi-b.bias) - drift))
	slope = (hi - lo) / (b.hi - b.lo)
	return lo - slope*b.lo, slope
}

// stakeShare is the largest share of its capital that a bet can lose at one row.
const stakeShare = .9

// minLoss keeps stakes finite where a reference curve leaves next to nothing that could be lost.
const minLoss = .05

// maxStake returns the largest θ of a bet of sign s (g = s) on the bin under its own tolerance.
func (b bin) maxStake(s float64) float64 {
	loss := b.hi + b.bias + b.tol // a = 0 at the upper end
	if s < 0 {
		loss = 1 - b.lo - b.bias + b.tol // a = 1 at the lower end
	}
	return stakeShare / max(loss, minLoss)
}

// clipRate keeps a rate off 0 and 1 where it is divided by its variance.
func clipRate(p float64) float64 { return min(max(p, .005), .995) }

// stake returns the θ that maximises the growth of a bet of sign s on the bin if the rate of right rows at its middle
// is p, against the boundary rate q = m + β + s·tol:
//
//	θ = s(p - q) / (q(1 - q)), at least 0 and at most maxStake
func (b bin) stake(s, p float64) float64 {
	q := clipRate(b.mid + b.bias + s*b.tol)
	theta := s * (p - q) / (q * (1 - q))
	return min(max(theta, 0), b.maxStake(s))
}
