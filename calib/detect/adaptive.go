package detect

import "math"

// remembered are the sums of one bin of past panes, discounted by half in every half-life of rows: Σw, Σ w·c, Σ w·a.
type remembered struct{ n, c, a float64 }

// memory holds what past panes have shown, by half-life and bin. It is known before a pane, so bets may depend on it.
type memory [len(halfLives)][]remembered

// newMemory returns an empty memory. That of NullClass, which has no adaptive experts, is for evidence: one half-life.
func newMemory(d *dictionary) memory {
	var m memory
	for h := range m {
		if h == 0 || d.spec.Null != NullClass {
			m[h] = make([]remembered, len(d.bins)/d.spec.cells())
		}
	}
	return m
}

// add discounts by the rows of the pane and adds them.
func (m *memory) add(p Pane, rows float64) {
	for h, bins := range m {
		keep := math.Exp2(-rows / halfLives[h])
		for j := range bins {
			r, s := &bins[j], p[j]
			r.n = r.n*keep + s.N()
			r.c = r.c*keep + s.C1 + s.C0
			r.a = r.a*keep + s.N1
		}
	}
}

// residual returns r̄ = Σ(a - c - β)/(n + prior): shrunk to 0 where there are few rows.
func (r remembered) residual(bias, prior float64) float64 {
	return (r.a - r.c - bias*r.n) / (r.n + prior)
}

// means are for people; NaN without rows.
func (r remembered) means(bias float64) BinMemory {
	c, a := r.c/r.n, r.a/r.n
	return BinMemory{N: r.n, Confidence: c, Accuracy: a, Gap: a - c - bias}
}

// shrink is the number of rows without any error that an adaptive expert imagines in every bin.
const shrink = 10

// adaptiveBin makes the chords of an adaptive expert of NullBin: in every bin the sign of r̄ and the stake that would
// have been best for a rate off by r̄. That of NullAccuracy bets on falls alone.
func (d *dictionary) adaptiveBin(bins []bin, chords []chord, past []remembered, active uint64) {
	for j := range chords {
		chords[j] = chord{}
		if active>>j&1 == 0 {
			continue
		}
		b := &bins[j]
		r := past[j].residual(b.bias, shrink)
		s := math.Copysign(1, r)
		if s > 0 && d.spec.Null == NullAccuracy {
			continue
		}
		chords[j] = b.newChord(b.stake(s, b.mid+b.bias+r), s, b.tol)
	}
}

// shyness lists what the adaptive experts of NullECE subtract from their estimate of the error, in units of its noise.
// The expert with 0 overestimates the error in small samples and is right in large ones.
var shyness = [...]float64{0, .4}

// aim is the bet of an adaptive expert of NullECE: one stake, and a direction by bin in [-1, 1].
type aim struct {
	theta float64
	g     [maxBins]float64
}

// aimECE chooses the bet from the past. With π_j the share of bin j among past rows, m its mean confidence,
// v = max(m(1-m), .005), sd_j = sqrt(v/(n_j+1)):
//
//	g_j = sign(r̄_j)·min(1, |r̄_j|/sd_j)
//	A = Σ π_j (g_j r̄_j - |g_j|·(shy·sd_j + slack_j))
//	θ = clip((A - ε)/Σ π_j g_j² v_j, 0, largest)
func (d *dictionary) aimECE(past []remembered, shy float64) aim {
	var x aim
	var growth, variance, total float64
	for _, r := range past {
		total += r.n
	}
	eps := d.spec.Epsilon + margin
	for j := range past {
		r, b := &past[j], &d.bins[j]
		if r.n <= 0 {
			continue
		}
		mean := r.c / r.n
		v := max(mean*(1-mean), .005)
		sd := math.Sqrt(v / (r.n + 1))
		resid := r.residual(b.bias, 1)
		g := math.Copysign(min(1, math.Abs(resid)/sd), resid)
		pi := r.n / total
		growth += pi * (g*resid - math.Abs(g)*(shy*sd+b.slack))
		variance += pi * g * g * v
		x.g[j] = g
	}
	if growth > eps && variance > 0 {
		x.theta = min((growth-eps)/variance, d.eceStake)
	}
	return x
}

// adaptiveECE makes the chords of an aim in the active bins.
func (d *dictionary) adaptiveECE(chords []chord, past []remembered, active uint64, shy float64) {
	x := d.aimECE(past, shy)
	for j := range chords {
		chords[j] = chord{}
		if active>>j&1 != 0 {
			chords[j] = d.eceChord(j, x.theta, x.g[j])
		}
	}
}

// eceChord returns the bet 1 + θ(g(a - c - β) - |g|·slack - ε) on bin j. Where g is 0 it loses θε a row: that the bin
// is calibrated counts against the null being wrong.
func (d *dictionary) eceChord(j int, theta, g float64) chord {
	b := &d.bins[j]
	return b.newChord(theta, g, d.spec.Epsilon+margin+math.Abs(g)*b.slack)
}
