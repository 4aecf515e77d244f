package unlabelled

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// ErrInput is for counts that are no histograms, or of different shape, or too few of them.
var ErrInput = errors.New("invalid input")

// Distance is a distance between two samples, with its value if both were of one distribution: sampling noise alone
// makes every distance positive.
type Distance struct {
	Value float64
	Null  float64 // its mean if nothing has changed, at these numbers of rows
	// exceeded with probability α at most (KS, Wasserstein) or about α (PSI, JensenShannon) if nothing has changed
	Threshold float64
	P         float64 // p-value, of KS and Wasserstein an upper bound; for one look, not for many
}

// Exceeds reports whether the distance is above its threshold.
func (d Distance) Exceeds() bool { return d.Value > d.Threshold }

// Distances are those of two histograms F (n rows) and G (m rows) over k equal bins of [0, 1], 1/N = 1/n + 1/m.
type Distances struct {
	KS            Distance // max |F - G| over the edges
	Wasserstein   Distance // ∫ |F - G|, over [0, 1]
	PSI           Distance // Σ (p - q) ln(p/q)
	JensenShannon Distance // ½ KL(p‖r) + ½ KL(q‖r), r = (p+q)/2, in nats (its root is the metric)
	Bins          int      // of PSI and JensenShannon, after neighbours with few rows were put together
}

// minExpected is the least number of rows that a bin of PSI and JensenShannon would have in the smaller sample.
const minExpected = 5

// Compare returns the distances between the histograms ref and cur, counts of rows in k equal bins of [0, 1], k ≥ 2,
// such as acc.Grid.CDFCounts. Weights are no counts. Thresholds are at level alpha in (0, 1):
//
//	KS           sqrt(-ln(α/2)/2 / N): Kolmogorov's limit by its first term; bins only make it smaller
//	Wasserstein  (sqrt(2/π) ∫ sqrt(H(1-H)) + sd·sqrt(2 ln 1/α)) / sqrt(N), H the pooled distribution, sd its deviation
//	PSI          χ²_{k-1}(1-α) / N
//	JS           χ²_{k-1}(1-α) / 8N
//
// that of Wasserstein from the Gaussian limit ∫|B(H)| by the Borell–TIS inequality: its largest variance is that of
// ∫B(H), as the bridge's covariances are all positive. PSI and JS are smoothed by half a row a bin, after neighbouring
// bins were put together until each expects 5 rows: their usual thresholds (.1, .25) mean nothing at small n, where
// noise alone is (k-1)/N.
//
// ErrInput where the shapes differ, a count is negative or not finite, or a sample has fewer than 10 rows.
// References: Kolmogorov's limit: van der Vaart, Asymptotic Statistics, 1998, section 19.3. PSI: Yurdakul, Statistical
// Properties of Population Stability Index, 2018. Borell–TIS: Adler, Taylor, Random Fields and Geometry, 2007, theorem
// 2.1.1.
func Compare(ref, cur []float64, alpha float64) (Distances, error) {
	if !(alpha > 0 && alpha < 1) {
		return Distances{}, fmt.Errorf("alpha is %v, allowed above 0 and below 1: %w", alpha, ErrInput)
	}
	if len(ref) != len(cur) || len(ref) < 2 {
		return Distances{}, fmt.Errorf("histograms of %d and %d bins, allowed 2 or more, the same: %w", len(ref),
			len(cur), ErrInput)
	}
	n, err := total("reference", ref)
	if err != nil {
		return Distances{}, err
	}
	m, err := total("current", cur)
	if err != nil {
		return Distances{}, err
	}
	scale := 1/n + 1/m
	d := curveDistances(ref, cur, n, m, alpha)
	p, q := pooled(ref, cur, minExpected*(n+m)/min(n, m))
	d.Bins = len(p)
	d.setShares(p, q, scale, alpha)
	return d, nil
}

// fewest is the least number of rows of a sample.
const fewest = 10

func total(name string, h []float64) (float64, error) {
	var n float64
	for i, x := range h {
		if !(x >= 0 && x <= math.MaxInt64) {
			return 0, fmt.Errorf("%s bin %d has count %v, allowed 0 and above: %w", name, i, x, ErrInput)
		}
		n += x
	}
	if n < fewest {
		return 0, fmt.Errorf("%s has %v rows, allowed %d and more: %w", name, n, fewest, ErrInput)
	}
	return n, nil
}

// curveDistances computes KS and Wasserstein.
func curveDistances(ref, cur []float64, n, m, alpha float64) Distances {
	width := 1 / float64(len(ref))
	scale := math.Sqrt(1/n + 1/m)
	var f, g, h, ks, area, bridge, mean, square float64
	for i := range ref {
		f += ref[i] / n
		g += cur[i] / m
		share := (ref[i] + cur[i]) / (n + m)
		h += share
		x := (float64(i) + .5) * width
		mean += share * x
		square += share * x * x
		gap := math.Abs(f - g)
		ks = max(ks, gap)
		area += gap * width
		bridge += math.Sqrt(max(0, h*(1-h))) * width
	}
	sd := math.Sqrt(max(0, square-mean*mean))
	null := scale * math.Sqrt(2/math.Pi) * bridge
	d := Distances{
		KS: Distance{Value: ks, Null: scale * kolmogorovMean,
			Threshold: scale * math.Sqrt(-math.Log(alpha/2)/2), P: kolmogorov(ks / scale)},
		Wasserstein: Distance{Value: area, Null: null, Threshold: null + scale*sd*math.Sqrt(-2*math.Log(alpha)), P: 1},
	}
	if area > null {
		z := (area - null) / (scale * sd)
		d.Wasserstein.P = math.Exp(-z * z / 2)
	}
	return d
}

// kolmogorovMean is the mean of Kolmogorov's distribution, sqrt(π/2)·ln 2.
const kolmogorovMean = .8687311606

// kolmogorov returns P(K > x) = 2 Σ_k (-1)^(k-1) exp(-2k²x²).
func kolmogorov(x float64) float64 {
	if x < .2 {
		return 1 // to 1e-10, where the series is slow
	}
	var p float64
	sign := 1.
	for k := 1.; k < 100; k++ {
		term := math.Exp(-2 * k * k * x * x)
		p += sign * term
		if term < 1e-17 {
			break
		}
		sign = -sign
	}
	return min(1, max(0, 2*p))
}

// pooled puts neighbouring bins together until both samples together have at least so many rows in each.
func pooled(ref, cur []float64, least float64) (p, q []float64) {
	var a, b float64
	for i := range ref {
		a += ref[i]
		b += cur[i]
		if a+b >= least {
			p, q = append(p, a), append(q, b)
			a, b = 0, 0
		}
	}
	if len(p) == 0 {
		return []float64{a}, []float64{b}
	}
	p[len(p)-1] += a
	q[len(q)-1] += b
	return p, q
}

// setShares computes PSI and JensenShannon of counts p and q.
func (d *Distances) setShares(p, q []float64, scale, alpha float64) {
	var n, m float64
	for i := range p {
		n += p[i]
		m += q[i]
	}
	k := float64(len(p))
	var psi, js float64
	for i := range p {
		a, b := (p[i]+.5)/(n+k/2), (q[i]+.5)/(m+k/2)
		r := (a + b) / 2
		psi += (a - b) * math.Log(a/b)
		js += (a*math.Log(a/r) + b*math.Log(b/r)) / 2
	}
	js = max(js, 0)
	if k < 2 {
		d.PSI, d.JensenShannon = Distance{Value: 0, P: 1}, Distance{Value: 0, P: 1}
		return
	}
	chi := distuv.ChiSquared{K: k - 1}
	limit := chi.Quantile(1 - alpha)
	d.PSI = Distance{Value: psi, Null: (k - 1) * scale, Threshold: limit * scale, P: chi.Survival(psi / scale)}
	d.JensenShannon = Distance{Value: js, Null: (k - 1) * scale / 8, Threshold: limit * scale / 8,
		P: chi.Survival(8 * js / scale)}
}
