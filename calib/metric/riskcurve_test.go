package metric_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

func TestRiskCoverage(t *testing.T) {
	// Scores .9 (right), .8 twice (right, wrong), .1 (wrong).
	curve := metric.RiskCoverage(metric.SortWeighted([]float64{.8, .1, .9, .8}, []bool{true, false, true, false}, nil))
	want := []metric.RiskPoint{{.9, .25, 0, 1}, {.8, .75, 1. / 3, 3}, {.1, 1, .5, 4}}
	for i, p := range curve {
		if p != want[i] {
			t.Errorf("point %d: got %+v, want %+v", i, p, want[i])
		}
	}
	if got := metric.RiskCoverage(metric.Sorted{}); len(got) != 0 || !math.IsNaN(metric.RiskArea(got)) {
		t.Errorf("no rows: %v", got)
	}
}

func TestAreaOfTheCurveIsAURC(t *testing.T) {
	for seed := range uint64(5) {
		for _, n := range []int{1, 2, 7, 200} {
			for _, levels := range []int{0, 1, 3, 30} {
				c, a := randomRows(n, levels, seed)
				s := metric.SortWeighted(c, a, nil)
				near(t, "area", metric.RiskArea(metric.RiskCoverage(s)), refAURC(c, a), tol)
			}
		}
	}
}

// TestSelectiveOfWeights compares with sums over pairs and thresholds, for weights that are no whole numbers.
func TestSelectiveOfWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, levels := range []int{0, 4} {
		c, a := randomRows(60, levels, 3)
		var w []float64
		for range c {
			w = append(w, 0.2+2*rng.Float64())
		}
		s := metric.SortWeighted(c, a, w)
		var pairs, wins, p, q float64
		fpr := math.Inf(1)
		for i := range c {
			p += w[i] * num(a[i])
			q += w[i] * num(!a[i])
			for j := range c {
				if a[i] && !a[j] {
					pairs += w[i] * w[j]
					wins += w[i] * w[j] * (num(c[i] > c[j]) + num(c[i] == c[j])/2)
				}
			}
		}
		for _, threshold := range c {
			var tp, fp float64
			for i := range c {
				tp += w[i] * num(a[i] && c[i] >= threshold)
				fp += w[i] * num(!a[i] && c[i] >= threshold)
			}
			if tp/p >= .95 {
				fpr = min(fpr, fp/q)
			}
		}
		near(t, "auroc", metric.AUROC(s), wins/pairs, tol)
		near(t, "fpr95", metric.FPR95(s), fpr, tol)
		near(t, "ks from cells", metric.KSCells(metric.Groups(s)), metric.KS(s), tol)
	}
}

func TestCells(t *testing.T) {
	c, a := randomRows(5000, 0, 1)
	for i := range c {
		if i%3 == 0 {
			c[i] = 1 // a tie of a third of the rows
		}
	}
	s := metric.SortWeighted(c, a, nil)
	if got := metric.Cells(s, 10000); len(got) != len(metric.Groups(s)) {
		t.Errorf("%d cells of %d groups", len(got), len(metric.Groups(s)))
	}
	for _, limit := range []int{1, 10, 1000} {
		cells := metric.Cells(s, limit)
		var n int64
		var hits float64
		last := 0.0
		for _, b := range cells {
			n, hits = n+b.N, hits+b.SumA
			if b.Conf() <= last {
				t.Errorf("cells are not ascending: %g after %g", b.Conf(), last)
			}
			last = b.Conf()
		}
		if n != 5000 || len(cells) > 2*limit+1 || limit > 1 && last != 1 {
			t.Errorf("limit %d: %d cells of %d rows, the last at %g", limit, len(cells), n, last)
		}
		near(t, "hits", hits, metric.EqualWidth(c, a, nil, 1)[0].SumA, 0)
	}
}

func TestCellFunctionsAgreeOnRows(t *testing.T) {
	// One cell a row is the rows themselves.
	for _, n := range []int{1, 2, 3, 50, 400} {
		c, a := randomRows(n, 0, uint64(n))
		s := metric.SortWeighted(c, a, nil)
		cells := metric.Groups(s)
		for _, m := range []int{1, 2, 15} {
			got, want := metric.EqualMassCells(cells, m), metric.EqualMass(s, m)
			for i := range got {
				if got[i].N != want[i].N {
					t.Fatalf("n = %d, bin %d of %d: %d rows, want %d", n, i, m, got[i].N, want[i].N)
				}
			}
			near(t, "ace", metric.ECE(got), metric.ECE(want), tol)
			near(t, "debiased", metric.DebiasedL2(got), metric.DebiasedL2(want), 1e-7)
		}
		if got, want := metric.SweepCells(cells), metric.Sweep(s); len(got) != len(want) ||
			math.Abs(metric.ECE(got)-metric.ECE(want)) > tol {
			t.Errorf("n = %d: sweep of %d bins, want %d", n, len(got), len(want))
		}
		near(t, "smece", metric.SmECECells(cells), metric.SmECE(c, a, nil), 1e-8)
	}
}
