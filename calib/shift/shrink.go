package shift

import (
	"fmt"
	"math"
)

// ErrorsAt are the standard errors that Estimate.Shares less Estimate.Reference have where the shares are q, which sum
// to 1; nil is those of the reference. 0 of a class that the reference lacks. Those of an Estimate are at its own
// shares: a class that came out as 0 by chance has hardly any there, and against one that came out large they are too
// many to say that it is not as it was. ErrInput where q has not K shares from 0 to 1, else as of BBSE.
func ErrorsAt(t Table, q []float64) ([]float64, error) {
	d, err := newModel(&t)
	if err != nil {
		return nil, err
	}
	at := d.prior()
	if q != nil {
		if len(q) != t.K {
			return nil, fmt.Errorf("%d shares of %d classes: %w", len(q), t.K, ErrInput)
		}
		for x, j := range d.classes {
			if at[x] = q[j]; !(q[j] >= 0 && q[j] <= 1) {
				return nil, fmt.Errorf("share %v of class %d, allowed 0 to 1: %w", q[j], j, ErrInput)
			}
		}
	}
	s, err := d.solve(d.noise(at))
	if err != nil {
		return nil, err
	}
	e, err := d.estimate("", at, s)
	return e.SE, err
}

// RatioVariance returns τ², by how much the ratios of the share of class j now to that of the reference vary over the
// classes, beyond what the sampling of these rows makes of them:
//
//	r_j = 1 + (now_j/m - ref_j/n)/a_j,   a_j = (ref_j + now_j)/(n + m)
//	v_j = (1/m + 1/n)/a_j,   τ² = PauleMandel(r, v)
//
// over the classes that have rows, n and m their sums. At τ² = 0 its sum is Pearson's of the table of two rows, so few
// rows of a class in either do not look like movement. It is rather too small than too large, as of m rows not far
// fewer than n no r_j is above 1 + (n+m)/m, and as confusions mix the shares of classes as predicted: what is shrunk by
// it is shrunk a little too much. 0 where a sample has no rows.
func RatioVariance(ref, now []float64) float64 {
	var n, m float64
	for j := range ref {
		n, m = n+ref[j], m+now[j]
	}
	if !(n > 0) || !(m > 0) {
		return 0
	}
	var r, v []float64
	for j := range ref {
		if a := (ref[j] + now[j]) / (n + m); a > 0 {
			r, v = append(r, 1+(now[j]/m-ref[j]/n)/a), append(v, (1/m+1/n)/a)
		}
	}
	return PauleMandel(r, v)
}

// pauleMandelSteps halve an interval to below any noise of τ².
const pauleMandelSteps = 50

// PauleMandel returns the variance τ² of effects about 1 of which r are estimates with variances v > 0: the root of
//
//	Σ_j (r_j - 1)²/(τ² + v_j) = n - 1
//
// which falls in τ²; 0 where it is below n - 1 at once.
// Reference: Paule, Mandel, Consensus values and weighting factors, Journal of Research of the NBS 87, 1982, with the
// mean known.
func PauleMandel(r, v []float64) float64 {
	beyond := func(tau2 float64) bool {
		var s float64
		for j, x := range r {
			s += (x - 1) * (x - 1) / (tau2 + v[j])
		}
		return s > float64(len(r)-1)
	}
	if len(r) < 2 || !beyond(0) {
		return 0
	}
	lo, hi := 0., 1.
	for ; beyond(hi) && hi < math.MaxFloat64/4; hi *= 2 {
		lo = hi
	}
	for range pauleMandelSteps {
		if mid := (lo + hi) / 2; beyond(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// Shrink draws ratios r, with the variances v, towards 1: the best linear predictor of effects that vary by τ² about 1,
//
//	r_j ← 1 + τ²/(τ² + v_j) (r_j - 1)
//
// so that few rows move nothing much, and none rules a class out. With v_j = 1/(rows expected of j) that is the mean of
// a Gamma prior of variance τ² after Poisson counts: shares of classes that were chosen for being far off need no other
// correction.
// Reference: Efron, Morris, Stein's Estimation Rule and Its Competitors: An Empirical Bayes Approach, JASA 68, 1973.
func Shrink(r, v []float64, tau2 float64) {
	for j := range r {
		b := 0.
		if tau2 > 0 {
			b = tau2 / (tau2 + v[j])
		}
		r[j] = 1 + b*(r[j]-1)
	}
}

// Contrast is how surely the shares of classes differ between two samples of rows by class: the squared two-sample
// score of each,
//
//	(now_j/m - ref_j/n)²/(a_j (1/m + 1/n)),   a_j = (ref_j + now_j + 1)/(n + m + K)
//
// By it NewPool keeps the classes that a correction has to tell apart. 0 of a class with less than a row in the
// reference, of which nothing is known, and where a sample has no rows.
func Contrast(ref, now []float64) []float64 {
	var n, m float64
	for j := range ref {
		n, m = n+ref[j], m+now[j]
	}
	out := make([]float64, len(ref))
	if !(n > 0) || !(m > 0) {
		return out
	}
	for j := range out {
		if ref[j] < 1 {
			continue
		}
		a := (ref[j] + now[j] + 1) / (n + m + float64(len(ref)))
		d := now[j]/m - ref[j]/n
		out[j] = d * d / (a * (1/m + 1/n))
	}
	return out
}
