package metric

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBinomialDistribution compares draws with the exact probabilities by a χ² test on both sampling methods.
func TestBinomialDistribution(t *testing.T) {
	const draws = 200_000
	for _, c := range []struct {
		n int64
		p float64
	}{{1, 0.3}, {10, 0.5}, {50, 0.1}, {40, 0.3}, {100, 0.5}, {100, 0.93}, {2000, 0.0101}, {1000, 0.4}, {30, 0.99}} {
		rng := rand.NewPCG(11, uint64(c.n))
		d := newBinomial(c.n, c.p)
		count := make([]float64, c.n+1)
		for range draws {
			count[int(d.draw(rng))]++
		}
		var chi2, cells, restE, restO float64
		for k, o := range count {
			e := draws * pmf(float64(c.n), float64(k), c.p)
			if e < 10 {
				restE, restO = restE+e, restO+o
				continue
			}
			chi2 += (o - e) * (o - e) / e
			cells++
		}
		if restE > 5 {
			chi2 += (restO - restE) * (restO - restE) / restE
		}
		// Mean cells-1 and variance 2(cells-1): 5 deviations.
		if limit := cells + 5*math.Sqrt(2*cells); chi2 > limit {
			t.Errorf("n=%d p=%g: χ² %.1f over %.0f cells, limit %.1f", c.n, c.p, chi2, cells, limit)
		}
	}
}

func pmf(n, k, p float64) float64 {
	lg := func(x float64) float64 { v, _ := math.Lgamma(x + 1); return v }
	return math.Exp(lg(n) - lg(k) - lg(n-k) + k*math.Log(p) + (n-k)*math.Log1p(-p))
}

func TestBinomialEnds(t *testing.T) {
	rng := rand.NewPCG(1, 2)
	for _, n := range []int64{1, 5, 1e6, 1e12} {
		for _, p := range []float64{0, 1, -1e-17, 1 + 1e-15} {
			d := newBinomial(n, p)
			want := 0.0
			if p > 0.5 {
				want = float64(n)
			}
			for range 100 {
				if got := d.draw(rng); got != want {
					t.Fatalf("n=%d p=%g: got %g, want %g", n, p, got, want)
				}
			}
		}
	}
}

func TestBinomialOfManyRows(t *testing.T) {
	rng := rand.NewPCG(3, 4)
	n, p := int64(1e12), 0.3
	d := newBinomial(n, p)
	sd := math.Sqrt(float64(n) * p * (1 - p))
	var sum, sum2 float64
	const draws = 20_000
	for range draws {
		x := (d.draw(rng) - float64(n)*p) / sd
		sum += x / draws
		sum2 += x * x / draws
	}
	if math.Abs(sum) > 5/math.Sqrt(draws) || math.Abs(sum2-1) > 5*math.Sqrt(2.0/draws) {
		t.Errorf("standardised: mean %g, second moment %g", sum, sum2)
	}
}

// TestRatiosChangeNoDraw: with the ratios next to the mode the draws are the same.
func TestRatiosChangeNoDraw(t *testing.T) {
	var near ratios
	for _, n := range []int64{1, 21, 25, 80, 300, 2000, 5000, 100_000, 1e7, 1e12} {
		for _, p := range []float64{0, .003, .02, .11, .37, .5, .63, .93, .999, 1} {
			plain, quick := newBinomial(n, p), newBinomial(n, p)
			quick.with(&near)
			a, b := rand.NewPCG(uint64(n), 3), rand.NewPCG(uint64(n), 3)
			for i := range 3000 {
				if x, y := plain.draw(a), quick.draw(b); x != y {
					t.Fatalf("n=%d p=%g, draw %d: got %v, want %v", n, p, i, y, x)
				}
			}
		}
	}
}
