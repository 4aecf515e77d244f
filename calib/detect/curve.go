package detect

import (
	"fmt"
	"math"
)

// ReferenceCurve measures the reference of the change mode on the n_j labelled rows by bin of a reference window: the
// mean of a - c by bin, shrunk towards that of all rows as far as the differences between bins are noise (parametric
// empirical Bayes), and a slack of z of its standard deviations. With r_j = Σ(a - c)/n_j, s_j² = ā_j(1-ā_j)/n_j, ā_j =
// (Σa + ½)/(n_j + 1), n = Σ n_j:
//
//	β̄ = Σ n_j r_j / n                 V = Σ n_j² s_j² / n²
//	τ² = max(0, (Σ n_j (r_j-β̄)² - Σ n_j s_j² + nV) / (n - Σ n_j²/n))
//	k_j = τ²/(τ² + s_j²)               β_j = β̄ + k_j (r_j - β̄)
//	sd_j² = k_j s_j² + (1-k_j)² V      slack_j = min(1, z·sd_j)
//
//	A = Σa/n, its slack z·sqrt(A(1-A)/n)
//
// A bin without rows has β̄ and sd² = τ² + V. The rows of a calibrated window differ by noise alone: then all β_j are
// near β̄, and the sum of their errors is .003 for 10,000 rows where that of the r_j is .009. z is 0 or more, else
// ErrSpec; ErrPane where p holds no rows or sums that no rows have. Reference: Morris, Parametric Empirical Bayes
// Inference, JASA 1983; τ² by moments as in DerSimonian, Laird 1986 with weights n_j.
func ReferenceCurve(p Pane, z float64) (*Reference, error) {
	if err := p.check(Spec{Bins: len(p)}); err != nil {
		return nil, err
	}
	if !(z >= 0) {
		return nil, fmt.Errorf("slack is %v standard deviations, allowed 0 or more: %w", z, ErrSpec)
	}
	n := p.N()
	if n == 0 {
		return nil, fmt.Errorf("reference window without labelled rows: %w", ErrPane)
	}
	raw, noise := make([]float64, len(p)), make([]float64, len(p))
	var mean, v float64
	for j, b := range p {
		if b.N() == 0 {
			continue
		}
		rate := (b.N1 + .5) / (b.N() + 1)
		raw[j] = (b.N1 - b.C1 - b.C0) / b.N()
		noise[j] = rate * (1 - rate) / b.N()
		mean += b.N() / n * raw[j]
		v += b.N() / n * b.N() / n * noise[j]
	}
	spread := between(p, raw, noise, estimate{mean, v})
	r := &Reference{Bias: make([]float64, len(p)), Slack: make([]float64, len(p))}
	for _, b := range p {
		r.Accuracy = min(1, r.Accuracy+b.N1/n)
	}
	r.AccuracySlack = min(1, z*math.Sqrt(r.Accuracy*(1-r.Accuracy)/n))
	for j, b := range p {
		r.Bias[j] = mean
		variance := spread + v
		if b.N() > 0 {
			k := spread / (spread + noise[j])
			r.Bias[j] += k * (raw[j] - mean)
			variance = k*noise[j] + (1-k)*(1-k)*v
		}
		r.Bias[j] = min(1, max(-1, r.Bias[j]))
		r.Slack[j] = min(1, z*math.Sqrt(variance))
	}
	return r, nil
}

// estimate is a mean and its variance.
type estimate struct{ mean, variance float64 }

// between is τ², the variance of the bins' true values: raw are the observed values, noise their variances, and all is
// their mean.
func between(p Pane, raw, noise []float64, all estimate) float64 {
	n := p.N()
	q, free := n*all.variance, n
	for j, b := range p {
		q += b.N() * ((raw[j]-all.mean)*(raw[j]-all.mean) - noise[j])
		free -= b.N() * b.N() / n
	}
	if q <= 0 || free <= 0 {
		return 0
	}
	return q / free
}
