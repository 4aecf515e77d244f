package calibrator

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

func TestRowEntropy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for range 2000 {
		z := make([]float64, 2+rng.IntN(8))
		p := make([]float64, len(z))
		for k := range z {
			z[k] = 3 * rng.NormFloat64()
		}
		softmax(p, z, 1)
		var want float64
		for _, v := range p {
			want -= v * math.Log(v)
		}
		// The sum of p ln p loses what ln rounds off near p = 1, about 2⁻⁵².
		if got := rowEntropy(z); math.Abs(got-want) > 1e-14*(1+want) {
			t.Fatalf("%v: got %.17g, want %.17g", z, got, want)
		}
	}
	for _, g := range []float64{20, 40, 100, 300} { // ln(1+e^-g) + g e^-g/(1+e^-g), e^-2g and beyond left out
		if got, want := rowEntropy([]float64{3, 3 - g}), (1+g)*math.Exp(-g); math.Abs(got-want) > 1e-7*want {
			t.Errorf("gap %g: got %g, want %g", g, got, want)
		}
	}
	for _, z := range [][]float64{{80, 80, 80}, {-80, -80, -80}, {0, 0, 0}} {
		if got := rowEntropy(z); math.Abs(got-math.Log(3)) > 1e-15 {
			t.Errorf("%v: got %.17g, want ln 3", z, got)
		}
	}
}

func rankedRows(h []float64, wrong ...int) []rankedRow {
	rows := make([]rankedRow, len(h))
	for i, v := range h {
		rows[i] = rankedRow{h: v, w: 1, right: !slices.Contains(wrong, i)}
	}
	return rows
}

func TestMiscoverageThreshold(t *testing.T) {
	h := make([]float64, 20) // 0, 1, …, 19
	for i := range h {
		h[i] = float64(i)
	}
	s := &sample{}
	for _, c := range []struct {
		rows         []rankedRow
		alpha, delta float64
		want         float64
	}{
		{rankedRows(h[:19]), 0.05, 0, 18},        // ⌈20·0.95⌉ = 19, although 0.95 is rounded
		{rankedRows(h[:18]), 0.05, 0, acceptAll}, // ⌈19·0.95⌉ = 19 of 18
		{rankedRows(h), 0.05, 0, 19},             // ⌈21·0.95⌉ = 20
		{rankedRows(h), 0.1, 0, 18},              // ⌈21·0.9⌉ = 19
		{rankedRows(h), 0.5, 0, 10},              // ⌈21·0.5⌉ = 11
		{rankedRows(h, 0, 1, 2), 0.5, 0, 11},     // 17 right: ⌈18·0.5⌉ = 9, which is h = 11
		{rankedRows([]float64{1, 1, 1, 2}), 0.5, 0, 1},
		{nil, 0.5, 0, acceptAll},
		{rankedRows(h), 0.5, 0.05, 14},        // P(Bin(20, ½) ≤ 5) = 0.0207 but ≤ 6 is 0.0577: the 15th
		{rankedRows(h), 0.5, 0.06, 13},        // the 14th
		{rankedRows(h), 0.05, 0.1, acceptAll}, // 0.95^20 = 0.36
	} {
		if got := s.miscoverageThreshold(c.rows, c.alpha, c.delta); got != c.want {
			t.Errorf("%d rows, alpha %g, delta %g: got %g, want %g", len(c.rows), c.alpha, c.delta, got, c.want)
		}
	}
	heavy := rankedRows(h[:9])
	heavy[4].w = 4 // Σw + max w = 12 + 4, ½ of it 8: 1+1+1+1+4
	if got := s.miscoverageThreshold(heavy, 0.5, 0); got != 4 {
		t.Errorf("weighted: got %g, want 4", got)
	}
}

func TestGreatestKept(t *testing.T) {
	h := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct {
		rows []rankedRow
		risk float64
		want float64
		ok   bool
	}{
		{rankedRows(h, 8, 9), 0.1, 0, false},        // (0+1)/(8+1) > 0.1
		{rankedRows(h, 8, 9), 0.12, 8, true},        // 1/9
		{rankedRows(h, 8, 9), 0.3, acceptAll, true}, // 3/11
		{rankedRows(h, 0), 0.25, acceptAll, true},   // 2/11
		// 2/11 again, beyond a stretch where it is not reached
		{rankedRows(h, 7), 0.19, acceptAll, true},
		{rankedRows([]float64{1, 1, 1, 1, 1, 2, 2, 2, 2, 2}, 5, 6, 7), 0.2, 1, true}, // 1/6, the tie whole
		{rankedRows([]float64{1, 1, 1, 1}, 0, 1), 0.5, 0, false},
	} {
		if got, ok := greatestKept(c.rows, c.risk); got != c.want || ok != c.ok {
			t.Errorf("%v, risk %g: got %g %v, want %g %v", c.rows, c.risk, got, ok, c.want, c.ok)
		}
	}
}

// TestProvenBoundIsClopperPearson compares the decision with the binomial tail it inverts.
func TestProvenBoundIsClopperPearson(t *testing.T) {
	tail := func(n, e int, p float64) (sum float64) { // P(Bin(n, p) ≤ e)
		for i := range e + 1 {
			a, _ := math.Lgamma(float64(n + 1))
			b, _ := math.Lgamma(float64(i + 1))
			c, _ := math.Lgamma(float64(n - i + 1))
			sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
		}
		return sum
	}
	const n, delta = 400, 0.1
	h := make([]float64, n)
	for i := range h {
		h[i] = float64(i)
	}
	for errors := range 60 {
		wrong := make([]int, errors) // the last rows are wrong
		for i := range wrong {
			wrong[i] = n - 1 - i
		}
		for _, risk := range []float64{0.02, 0.05, 0.1} {
			want, ok := 0.0, false
			for level := 1; level <= coverageLevels; level++ {
				below, at := n*level/coverageLevels-1, math.Nextafter(float64(n*level/coverageLevels-1), -1)
				if level == coverageLevels {
					below, at = n, acceptAll
				}
				if e := max(0, below-(n-errors)); tail(below, e, risk) <= delta/coverageLevels {
					want, ok = at, true
				}
			}
			if got, is := greatestProven(rankedRows(h, wrong...), risk, delta); got != want || is != ok {
				t.Errorf("%d wrong, risk %g: got %g %v, want %g %v", errors, risk, got, is, want, ok)
			}
		}
	}
}

// population draws rows of two classes whose error rises with their entropy.
func population(rng *rand.Rand, n int) ([]float64, []int32) {
	z, y := make([]float64, 2*n), make([]int32, n)
	for i := range y {
		z[2*i] = 6 * rng.Float64()
		if rng.Float64() > sigmoid(z[2*i]/2) {
			y[i] = 1
		}
	}
	return z, y
}

// TestConstraintsOverDraws measures, over many draws of the fitted rows, what the threshold is promised to keep to.
// The truth is known: the gap g of a row is uniform on [0, 6] and it is right with probability σ(g/2).
func TestConstraintsOverDraws(t *testing.T) {
	testsize.Slow(t)
	area := func(from float64) float64 { return 2 * (softplus(3) - softplus(from/2)) } // ∫ σ(g/2) from..6
	const draws = 400
	for _, c := range []struct {
		set    MetaCalSettings
		target float64
		n      int
	}{
		{MetaCalSettings{RankEvery: 1, Target: 0.1}, 0.1, 150},
		{MetaCalSettings{RankEvery: 2, Target: 0.1}, 0.1, 150},
		{MetaCalSettings{RankEvery: 1, Target: 0.1, Delta: 0.2}, 0.1, 150},
		{MetaCalSettings{RankEvery: 1, Target: 0.82, Delta: 0.2, Constraint: CoverageAccuracy}, 0.82, 1000},
	} {
		rng := rand.New(rand.NewPCG(77, 5))
		var mean, squares float64
		broken, unreached := 0, 0
		for range draws {
			z, y := population(rng, c.n)
			m, _, err := FitMetaCal(NewData(z, 2, y, nil), c.set, Options{})
			if err != nil {
				unreached++ // no promise is made
				continue
			}
			// The kept rows have gaps from the one whose entropy is the threshold: bisection.
			from, to := 0.0, 6.0
			for range 60 {
				if mid := (from + to) / 2; m.Accepts([]float64{mid, 0}) {
					to = mid
				} else {
					from = mid
				}
			}
			value := 1 - area(to)/area(0)
			if c.set.Constraint == CoverageAccuracy {
				if value = area(to) / (6 - to); value < c.target {
					broken++
				}
			} else if value > c.target {
				broken++
			}
			mean += value / draws
			squares += value * value / draws
		}
		se := math.Sqrt((squares - mean*mean) / draws)
		t.Logf("%+v: mean %.4f ± %.4f, broken %d of %d, unreached %d", c.set, mean, se, broken, draws, unreached)
		if c.set.Delta == 0 && (mean > c.target+3*se || mean < c.target-3*se-2/float64(c.n/2)) {
			t.Errorf("%+v: mean miscoverage %.4f ± %.4f, want %.2f", c.set, mean, se, c.target)
		}
		if d := c.set.Delta; d > 0 && float64(broken) > d*draws+3*math.Sqrt(d*(1-d)*draws) {
			t.Errorf("%+v: broken in %d of %d draws", c.set, broken, draws)
		}
		if unreached > draws/2 {
			t.Errorf("%+v: unreached in %d of %d draws, so little was tested", c.set, unreached, draws)
		}
	}
}
