package shift

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// TestPauleMandel: the root is that of a scan, and 0 where the effects vary less than their noise.
func TestPauleMandel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		n := 2 + rng.IntN(30)
		r, v := make([]float64, n), make([]float64, n)
		spread := 2 * rng.Float64() * rng.Float64()
		for j := range r {
			v[j] = .05 + rng.Float64()
			r[j] = 1 + rng.NormFloat64()*math.Sqrt(spread+v[j])
		}
		sum := func(tau2 float64) (s float64) {
			for j := range r {
				s += (r[j] - 1) * (r[j] - 1) / (tau2 + v[j])
			}
			return s
		}
		const step = 1e-4
		want := 0.
		for sum(want) > float64(n-1) {
			want += step
		}
		if got := PauleMandel(r, v); math.Abs(got-want) > 2*step {
			t.Errorf("τ² = %v of %v with variances %v, by a scan %v", got, r, v, want)
		}
	}
	for name, r := range map[string][]float64{"none": nil, "one": {7}, "alike": {1, 1, 1}} {
		if got := PauleMandel(r, slices.Repeat([]float64{1}, len(r))); got != 0 {
			t.Errorf("%s: τ² = %v", name, got)
		}
	}
	for name, r := range map[string][]float64{"huge": {1e150, 1, 1}, "without information": {5, 5, 5}} {
		v := []float64{math.Inf(1), math.Inf(1), math.Inf(1)}
		if name == "huge" {
			v = []float64{1e-9, 1e-9, 1e-9}
		}
		if got := PauleMandel(r, v); math.IsNaN(got) || math.IsInf(got, 0) || got < 0 {
			t.Errorf("%s: τ² = %v", name, got)
		}
		Shrink(r, v, PauleMandel(r, v))
		if slices.ContainsFunc(r, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
			t.Errorf("%s: shrunk to %v", name, r)
		}
	}
}

// TestRatioVariance: shares that vary by a Gamma of variance τ² are found to, and shares that stay to vary by nothing,
// even with a row a class or less.
func TestRatioVariance(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const k, trials = 400, 20
	counts := func(q []float64, n float64) []float64 {
		out := make([]float64, k)
		for j := range out {
			out[j] = distuv.Poisson{Lambda: n * q[j], Src: rng}.Rand()
		}
		return out
	}
	for _, c := range []struct{ n, m, tau2, lo, hi float64 }{
		{20_000, 4_000, 0, 0, .02}, {400, 200, 0, 0, .3}, {40_000, 4_000, .25, .15, .35}, {40_000, 4_000, 1, .6, 1.2},
		{40_000, 400, 1, .5, 1.5},
	} {
		var mean float64
		for range trials {
			p, q := make([]float64, k), make([]float64, k)
			var sp, sq float64
			for j := range p {
				p[j] = .2 + rng.Float64()
				q[j] = p[j]
				if c.tau2 > 0 {
					q[j] *= distuv.Gamma{Alpha: 1 / c.tau2, Beta: 1 / c.tau2, Src: rng}.Rand()
				}
				sp, sq = sp+p[j], sq+q[j]
			}
			for j := range p {
				p[j], q[j] = p[j]/sp, q[j]/sq
			}
			mean += RatioVariance(counts(p, c.n), counts(q, c.m)) / trials
		}
		if mean < c.lo || mean > c.hi {
			t.Errorf("n = %v, m = %v, τ² = %v: estimated as %v on average, want %v to %v", c.n, c.m, c.tau2, mean, c.lo,
				c.hi)
		}
	}
	if got := RatioVariance(make([]float64, 5), []float64{1, 2, 3, 4, 5}); got != 0 {
		t.Errorf("τ² = %v without a reference", got)
	}
}

// TestShrinkIsPosteriorMean: with the variance of Poisson counts it is the mean of the posterior under a Gamma prior,
// (α + x)/(α + λ), α = 1/τ².
func TestShrinkIsPosteriorMean(t *testing.T) {
	for _, tau2 := range []float64{.1, 1, 7} {
		for _, lambda := range []float64{.5, 3, 40} {
			for _, x := range []float64{0, 1, 30} {
				r := []float64{x / lambda}
				Shrink(r, []float64{1 / lambda}, tau2)
				if want := (1/tau2 + x) / (1/tau2 + lambda); math.Abs(r[0]-want) > 1e-12 {
					t.Errorf("τ² = %v, %v rows of %v expected: %v, want %v", tau2, x, lambda, r[0], want)
				}
			}
		}
	}
	r := []float64{0, 5}
	if Shrink(r, []float64{0, 1}, 0); r[0] != 1 || r[1] != 1 {
		t.Errorf("%v where nothing varies, want ones", r)
	}
}

// drawTable is a table of k classes in four bands, the model right with .7, of n rows by p and m by q.
func drawTable(rng *rand.Rand, p, q []float64, n, m int) Table {
	const bands = 4
	k := len(p)
	t := Table{K: k, Joint: make([]float64, k*bands*k), Now: make([]float64, k*bands)}
	for i := range t.Now {
		t.Says = append(t.Says, i/bands)
	}
	for range n {
		s, b, y := manyClasses(rng, p, bands)
		t.Joint[(s*bands+b)*k+y]++
	}
	for range m {
		s, b, _ := manyClasses(rng, q, bands)
		t.Now[s*bands+b]++
	}
	return t
}

// TestErrorsAt: they are what estimates scatter by where the shares are these, also of a class that is rare; Moved is
// as rare as its level where nothing has moved, few rows a class or not, and sees what has.
func TestErrorsAt(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const k, n, m, trials = 12, 6000, 300, 150
	p, q := make([]float64, k), make([]float64, k)
	var sum float64
	for j := range p {
		p[j] = float64(1 + j)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
		q[j] = p[j]
	}
	q[0] += .1
	q[k-1] -= .1
	var square, variance [k]float64
	false_, seen := 0, 0
	for range trials {
		still := drawTable(rng, p, p, n, m)
		e, err := BBSE(still)
		if err != nil {
			t.Fatal(err)
		}
		se, err := ErrorsAt(still, nil)
		if err != nil {
			t.Fatal(err)
		}
		for j := range square {
			d := e.Shares[j] - e.Reference[j]
			square[j] += d * d / trials
			variance[j] += se[j] * se[j] / trials
		}
		if moved, err := e.Moved(still, e.Reference, .05); err != nil {
			t.Fatal(err)
		} else if moved {
			false_++
		}
		there := drawTable(rng, p, q, n, m)
		if e, err = BBSE(there); err != nil {
			t.Fatal(err)
		}
		if moved, err := e.Moved(there, e.Reference, .05); err != nil {
			t.Fatal(err)
		} else if moved {
			seen++
		}
	}
	for j := range square {
		// q ≥ 0 cuts the scatter of the rarest; a variance of 150 draws is off by a quarter at two standard errors.
		if ratio := square[j] / variance[j]; ratio > 1.35 || ratio < .6 {
			t.Errorf("class %d of share %v: estimates scatter by %v of the errors", j, p[j], math.Sqrt(ratio))
		}
	}
	if false_ > trials/10 || seen < trials*9/10 {
		t.Errorf("%d of %d that stay are said to have moved, %d of %d that have", false_, trials, seen, trials)
	}
	one := drawTable(rng, p, p, n, m)
	for name, q := range map[string][]float64{"few": p[1:], "negative": append([]float64{-.1}, p[1:]...),
		"no number": append([]float64{math.NaN()}, p[1:]...)} {
		if _, err := ErrorsAt(one, q); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v, want ErrInput", name, err)
		}
	}
}

// TestContrast: its sum over two classes is Pearson's statistic of the table, but for the rows that are added; classes
// that are not in the reference are left out.
func TestContrast(t *testing.T) {
	ref, now := []float64{7000, 3000, 0}, []float64{500, 480, 20}
	got := Contrast(ref, now)
	var want float64
	n, m := 10_000., 1000.
	for j := range ref[:2] {
		for _, c := range []struct{ x, n float64 }{{ref[j], n}, {now[j], m}} {
			e := c.n * (ref[j] + now[j]) / (n + m)
			want += (c.x - e) * (c.x - e) / e
		}
	}
	if sum := got[0] + got[1]; math.Abs(sum/want-1) > .01 || got[2] != 0 {
		t.Errorf("%v, whose sum is %v, want %v and 0 of the last", got, sum, want)
	}
	if got := Contrast(ref, make([]float64, 3)); slices.Max(got) != 0 {
		t.Errorf("%v without rows now", got)
	}
}

// TestSpreadAndGather: probabilities corrected by spread weights have the sums that the pool's probabilities have,
// corrected by the weights, and their ratios within the rest; Gather is what weights do to a class's share.
func TestSpreadAndGather(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const k = 30
	rows, p, w := make([]float64, k), make([]float64, k), make([]float64, k)
	var sum float64
	for j := range p {
		rows[j], p[j] = float64(rng.IntN(50)), rng.ExpFloat64()
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	for _, most := range []int{2, 7, k, MaxClasses} {
		pool := NewPoolOf(rows, most)
		kp := pool.Classes()
		if kp != min(k, most) {
			t.Fatalf("%d classes of at most %d", kp, most)
		}
		pooled, sums, spread, got := make([]float64, kp), make([]float64, kp), make([]float64, k), make([]float64, k)
		for j := range pooled {
			pooled[j] = rng.ExpFloat64()
		}
		pool.Spread(spread, pooled)
		Correct(got, p, spread)
		pool.Sum(sums, p)
		Correct(sums, sums, pooled)
		want := make([]float64, kp)
		for j := range p {
			want[pool.Of(j)] += got[j]
			for l := range p {
				if pool.Of(l) == pool.Of(j) && math.Abs(got[l]*p[j]-got[j]*p[l]) > 1e-15 {
					t.Errorf("most %d: the ratio of classes %d and %d has changed", most, j, l)
				}
			}
		}
		for j := range want {
			if math.Abs(want[j]-sums[j]) > 1e-12 {
				t.Errorf("most %d: class %d of the pool has %v, want %v", most, j, want[j], sums[j])
			}
		}
		for j := range w {
			w[j] = rng.ExpFloat64()
		}
		means := make([]float64, kp)
		pool.Gather(means, w, rows)
		for i := range means {
			var share, moved float64
			for j := range w {
				if pool.Of(j) == i {
					share, moved = share+rows[j]+.5, moved+(rows[j]+.5)*w[j]
				}
			}
			if math.Abs(means[i]-moved/share) > 1e-12 {
				t.Errorf("most %d: weights change the share of class %d by %v, want %v", most, i, means[i], moved/share)
			}
		}
	}
}
