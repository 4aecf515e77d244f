package metric

import (
	"math"
	"math/rand/v2"
	"testing"
)

const manyDraws = 200_000

// TestBinomialDistribution compares draws with the exact probabilities by a χ² test on all sampling methods.
func TestBinomialDistribution(t *testing.T) {
	for _, c := range []struct {
		n int64
		p float64
	}{{1, 0.3}, {10, 0.5}, {50, 0.1}, {40, 0.3}, {100, 0.5}, {100, 0.93}, {2000, 0.0101}, {1000, 0.4}, {30, 0.99}} {
		d := newBinomial(c.n, c.p)
		var table inversion
		table.of(&d, manyDraws)
		checkDistribution(t, c.n, c.p, d.draw)
		checkDistribution(t, c.n, c.p, table.one)
	}
}

// checkDistribution tests many draws.
func checkDistribution(t *testing.T, n int64, p float64, draw func(*rand.PCG) float64) {
	t.Helper()
	rng := rand.NewPCG(11, uint64(n))
	count := make([]float64, n+1)
	for range manyDraws {
		count[int(draw(rng))]++
	}
	var chi2, cells, restE, restO float64
	for k, o := range count {
		e := manyDraws * pmf(float64(n), float64(k), p)
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
		t.Errorf("n=%d p=%g: χ² %.1f over %.0f cells, limit %.1f", n, p, chi2, cells, limit)
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
			var table inversion
			table.of(&d, manyDraws)
			want := 0.0
			if p > 0.5 {
				want = float64(n)
			}
			for range 100 {
				if got, by := d.draw(rng), table.one(rng); got != want || by != want {
					t.Fatalf("n=%d p=%g: got %g, by a table %g, want %g", n, p, got, by, want)
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

// TestTableOfDistribution compares the table of an inversion with the exact probabilities, entry by entry.
func TestTableOfDistribution(t *testing.T) {
	for _, n := range []int64{1, 2, 21, 80, 300, 2000, 100_000} {
		for _, p := range []float64{1e-9, .003, .11, .37, .5, .5001, .93, .999} {
			d := newBinomial(n, p)
			var table inversion
			table.of(&d, manyDraws)
			all, below := table.upTo[len(table.upTo)-1], 0.0
			for i, sum := range table.upTo {
				k := table.first + float64(i)
				got, want := (sum-below)/all, pmf(float64(n), k, d.p)
				if math.Abs(got-want) > 1e-14+1e-9*want { // the logarithms of pmf are of numbers up to 1e6
					t.Fatalf("n=%d p=%g: P(%v) = %v, want %v", n, p, k, got, want)
				}
				below = sum
			}
		}
	}
}

func (t *inversion) one(rng *rand.PCG) float64 {
	var x [1]float64
	t.draw(x[:], rng)
	return x[0]
}
