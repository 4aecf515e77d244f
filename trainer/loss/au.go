package loss

import (
	"math"
	"slices"
)

// au is AU_{P_Xτ}, the risk reweighted towards rows of low confidence, for a row loss ℓ:
//
//	1/n Σ_i β_i ℓ_i,  β_i = −ln(1 − Ĝ_ν(min(g_i, τ)))
//
// g the CSF, Ĝ_ν the binned CDF of the batch or of a stream's counts, τ the κ-quantile of the batch's g by linear
// interpolation, a constant for the gradient. The factor 1/κ is left out, as in the paper's Eq. 12. β is detached
// unless through is set, which adds Σ ℓ_i ∂β_i (both terms of Eq. 27; on real features that fails). With normalise the
// weights are divided by their mean, a constant too; without, it is below 1, so the loss acts like more weight decay.
// Reference: Zhou et al., Revisiting Reweighted Risk for Calibration, Eq. 12, 16, 27. The released code applies
// softmax twice; here it is applied once.
type au struct {
	csf                string
	kappa              float64
	through, normalise bool
	inner              rowLoss
	cdf                binnedCDF

	g, sorted, counts []float64
	beta, slope       []float64
}

func (a *au) add(r *rows, scale float64, grad []float64) float64 {
	mean := a.weigh(r)
	if a.normalise {
		scale /= mean
	}
	var sum float64
	n := float64(r.n)
	for i := range r.n {
		g := r.part(grad, i)
		l := a.inner.row(r, i, scale*a.beta[i]/n, g)
		sum += a.beta[i] * l
		if g != nil && a.through && a.slope[i] != 0 {
			r.addScore(a.csf, g, i, scale*l*a.slope[i]/n)
		}
	}
	if a.normalise {
		sum /= mean
	}
	return sum / n
}

// weigh scores the rows and returns the mean of their weights.
func (a *au) weigh(r *rows) float64 {
	a.g = grow(a.g, r.n)
	for i := range r.n {
		a.g[i] = r.score(a.csf, i)
	}
	return a.weights(r.cdf)
}

// weights fills beta and slope (∂β/∂g) of the scores g, by the counts of a stream or, where they are nil, those of g,
// and returns the mean weight.
func (a *au) weights(cdf []float64) float64 {
	n := len(a.g)
	a.sorted, a.beta, a.slope = grow(a.sorted, n), grow(a.beta, n), grow(a.slope, n)
	if cdf != nil {
		a.cdf.ofCounts(cdf)
	} else {
		a.counts = grow(a.counts, a.cdf.bins)
		a.cdf.ofScores(a.g, a.counts)
	}
	copy(a.sorted, a.g)
	slices.Sort(a.sorted)
	tau := quantile(a.sorted, a.kappa)
	atTau, _ := a.cdf.at(tau)
	capped := -math.Log1p(-atTau)
	var sum float64
	for i, g := range a.g {
		// A score at τ has no gradient, as in Eq. 27.
		if g < tau {
			v, s := a.cdf.at(g)
			a.beta[i], a.slope[i] = -math.Log1p(-v), s/(1-v)
		} else {
			a.beta[i], a.slope[i] = capped, 0
		}
		sum += a.beta[i]
	}
	return sum / float64(n)
}

// quantile is that of sorted values by linear interpolation, at position q·(n − 1).
func quantile(sorted []float64, q float64) float64 {
	pos := q * float64(len(sorted)-1)
	k := min(int(pos), len(sorted)-1)
	if k == len(sorted)-1 {
		return sorted[k]
	}
	return sorted[k] + (pos-float64(k))*(sorted[k+1]-sorted[k])
}
