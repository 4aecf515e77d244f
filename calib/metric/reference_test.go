package metric_test

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

// The plain references below follow the definitions word by word, in n² steps where that is simpler.

const tol = 1e-12

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > tol {
		t.Errorf("%s: got %.15g, want %.15g", what, got, want)
	}
}

func num(a bool) float64 {
	if a {
		return 1
	}
	return 0
}

// gaps are Σ n_b/n |gap|, sqrt(Σ n_b/n gap²), max gap and debiased L2 of rows grouped by key.
func gaps(c []float64, a []bool, bin func(i int) int) (l1, l2, worst, debiased float64) {
	groups := map[int][]int{}
	for i := range c {
		groups[bin(i)] = append(groups[bin(i)], i)
	}
	n := float64(len(c))
	var variance float64
	for _, g := range groups {
		var acc, conf float64
		for _, i := range g {
			acc += num(a[i]) / float64(len(g))
			conf += c[i] / float64(len(g))
		}
		share, gap := float64(len(g))/n, math.Abs(acc-conf)
		l1 += share * gap
		l2 += share * gap * gap
		worst = max(worst, gap)
		if len(g) > 1 {
			variance += share * (gap*gap - acc*(1-acc)/float64(len(g)-1))
		}
	}
	return l1, math.Sqrt(l2), worst, math.Sqrt(max(0, variance))
}

// ascending returns the stable ascending rank of every row.
func ascending(c []float64) []int {
	order := make([]int, len(c))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(x, y int) bool { return c[order[x]] < c[order[y]] })
	rank := make([]int, len(c))
	for r, i := range order {
		rank[i] = r
	}
	return rank
}

func refWidthBin(c []float64, m int) func(int) int {
	return func(i int) int {
		for b := range m {
			if c[i] > float64(b)/float64(m) && c[i] <= float64(b+1)/float64(m) {
				return b
			}
		}
		return 0
	}
}

func refMassBin(c []float64, m int) func(int) int {
	rank, n := ascending(c), len(c)
	return func(i int) int {
		r := rank[i]
		for b, end := 0, 0; ; b++ {
			end += n / m
			if b < n%m {
				end++
			}
			if r < end {
				return b
			}
		}
	}
}

func refKS(c []float64, a []bool) float64 {
	var worst float64
	for _, t := range c {
		var sum float64
		for i := range c {
			if c[i] <= t {
				sum += num(a[i]) - c[i]
			}
		}
		worst = max(worst, math.Abs(sum)/float64(len(c)))
	}
	return worst
}

func refSweepBins(c []float64, a []bool) int {
	n, rank := len(c), ascending(c)
	best := 1
	for b := 2; b <= n-1; b++ {
		hits, size := make([]float64, b), make([]float64, b)
		for i, r := range rank {
			hits[r*b/n] += num(a[i])
			size[r*b/n]++
		}
		for j := 1; j < b; j++ {
			if hits[j]/size[j] < hits[j-1]/size[j-1] {
				return best
			}
		}
		best = b
	}
	return best
}

// refAURC sums the weights H_n - H_{n-r}; a tied row gets the mean over the ranks of its group.
func refAURC(c []float64, a []bool) float64 {
	n := len(c)
	h := func(k int) float64 {
		var s float64
		for j := 1; j <= k; j++ {
			s += 1 / float64(j)
		}
		return s
	}
	var sum float64
	for i := range c {
		var w, ties float64
		less, equal := 0, 0
		for _, x := range c {
			if x < c[i] {
				less++
			} else if x == c[i] {
				equal++
			}
		}
		for r := less + 1; r <= less+equal; r++ {
			w += h(n) - h(n-r)
			ties++
		}
		sum += w / ties * (1 - num(a[i]))
	}
	return sum / float64(n)
}

func refAUROC(c []float64, a []bool) float64 {
	var pairs, wins float64
	for i := range c {
		for j := range c {
			if a[i] && !a[j] {
				pairs++
				if c[i] > c[j] {
					wins++
				} else if c[i] == c[j] {
					wins += 0.5
				}
			}
		}
	}
	return wins / pairs
}

func refFPR95(c []float64, a []bool) float64 {
	best := math.NaN()
	for _, t := range c {
		var tp, fp, p, q float64
		for i := range c {
			if a[i] {
				p++
				tp += num(c[i] >= t)
			} else {
				q++
				fp += num(c[i] >= t)
			}
		}
		if tp/p >= 0.95 && q > 0 && !(fp/q >= best) {
			best = fp / q
		}
	}
	return best
}

// refSmECE smooths the raw residuals with explicitly reflected Gaussians and bisects the bandwidth.
func refSmECE(c []float64, a []bool) float64 {
	const grid = 1000
	ece := func(sigma float64) float64 {
		var sum float64
		for g := range grid {
			t := (float64(g) + 0.5) / grid
			var r float64
			for i := range c {
				for m := -3.0; m <= 3; m++ {
					for _, x := range [2]float64{2*m + c[i], 2*m - c[i]} {
						d := (t - x) / sigma
						r += (num(a[i]) - c[i]) * math.Exp(-d*d/2) / (sigma * math.Sqrt(2*math.Pi))
					}
				}
			}
			sum += math.Abs(r) / float64(len(c)) / grid
		}
		return sum
	}
	lo, hi := 1e-3, 1.0
	for hi-lo > 1e-6 {
		if mid := (lo + hi) / 2; ece(mid) > mid {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func randomRows(n int, levels int, seed uint64) (c []float64, a []bool) {
	rng := rand.New(rand.NewPCG(seed, 9))
	for range n {
		ci := 0.1 + 0.9*rng.Float64()
		if levels > 0 { // ties, and values on the edges
			ci = float64(1+rng.IntN(levels)) / float64(levels)
		}
		c = append(c, ci)
		a = append(a, rng.Float64() < 0.9*ci)
	}
	return c, a
}

func TestAgainstReferences(t *testing.T) {
	for seed := range uint64(5) {
		for _, n := range []int{1, 2, 3, 7, 50, 200} {
			for _, levels := range []int{0, 3, 15, 30} {
				c, a := randomRows(n, levels, seed)
				checkAgainstReferences(t, c, a)
			}
		}
	}
}

func checkAgainstReferences(t *testing.T, c []float64, a []bool) {
	t.Helper()
	for _, m := range []int{1, 10, 15} {
		l1, l2, worst, _ := gaps(c, a, refWidthBin(c, m))
		bins := metric.EqualWidth(c, a, nil, m)
		near(t, "ece", metric.ECE(bins), l1, tol)
		near(t, "ece_l2", metric.ECEL2(bins), l2, tol)
		near(t, "mce", metric.MCE(bins), worst, tol)
		l1, l2, _, debiased := gaps(c, a, refMassBin(c, m))
		bins = metric.EqualMass(metric.SortWeighted(c, a, nil), m)
		near(t, "ace", metric.ECE(bins), l1, tol)
		near(t, "ace_l2", metric.ECEL2(bins), l2, tol)
		// The root of a difference near 0 magnifies rounding: compare the squares.
		d := metric.DebiasedL2(bins)
		near(t, "debiased_l2²", d*d, debiased*debiased, tol)
	}
	s := metric.SortWeighted(c, a, nil)
	near(t, "ks", metric.KS(s), refKS(c, a), tol)
	near(t, "aurc", metric.AURC(s), refAURC(c, a), tol)
	near(t, "auroc", metric.AUROC(s), refAUROC(c, a), tol)
	near(t, "fpr95", metric.FPR95(s), refFPR95(c, a), tol)
	if got, want := len(metric.Sweep(s)), refSweepBins(c, a); got != want {
		t.Errorf("sweep of %d rows: got %d bins, want %d", len(c), got, want)
	}
	ideal := make([]float64, len(c))
	for i := range a {
		ideal[i] = num(a[i])*float64(2*len(c)) + c[i]
	}
	near(t, "eaurc", metric.EAURC(s), refAURC(c, a)-refAURC(ideal, a), tol)
}

func TestSmECEAgainstRawData(t *testing.T) {
	for seed := range uint64(3) {
		c, a := randomRows(25, 0, seed)
		near(t, "smece", metric.SmECE(c, a, nil), refSmECE(c, a), 2e-5)
	}
	// On the edge of [0,1], where the reflection matters.
	c, a := []float64{1, 1, 0.98, 1}, []bool{true, false, true, true}
	near(t, "smece at 1", metric.SmECE(c, a, nil), refSmECE(c, a), 2e-5)
}

func TestSweepOfSeparatedRowsIsFast(t *testing.T) {
	// Every number of bins is monotone; without the shortcut this takes n²/2 = 2e10 steps.
	n := 200_000
	c, a := make([]float64, n), make([]bool, n)
	for i := range c {
		c[i], a[i] = float64(i)/float64(n), i > n/3
	}
	if got := len(metric.Sweep(metric.SortWeighted(c, a, nil))); got != n-1 {
		t.Errorf("got %d bins, want %d", got, n-1)
	}
}
