package detect

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// slowCurve is ReferenceCurve from rows, one formula after the other.
func slowCurve(rows []row, m int, z float64) (bias, slack []float64) {
	n, gap, right := make([]float64, m), make([]float64, m), make([]float64, m)
	var all, allGap float64
	for _, r := range rows {
		j := min(int(math.Ceil(r.c*float64(m)))-1, m-1)
		a := 0.0
		if r.a {
			a = 1
		}
		n[j] += r.w
		right[j] += r.w * a
		gap[j] += r.w * (a - r.c)
		all += r.w
		allGap += r.w * (a - r.c)
	}
	mean := allGap / all
	var within, squares, deviations float64
	s2 := make([]float64, m)
	for j := range n {
		if n[j] > 0 {
			rate := (right[j] + .5) / (n[j] + 1)
			s2[j] = rate * (1 - rate) / n[j]
			within += n[j] * n[j] * s2[j] / (all * all)
			squares += n[j] * n[j] / all
			off := gap[j]/n[j] - mean
			deviations += n[j] * (off*off - s2[j])
		}
	}
	tau := math.Max(0, (deviations+all*within)/(all-squares))
	for j := range n {
		if n[j] == 0 {
			bias, slack = append(bias, mean), append(slack, math.Min(1, z*math.Sqrt(tau+within)))
			continue
		}
		k := tau / (tau + s2[j])
		bias = append(bias, mean+k*(gap[j]/n[j]-mean))
		slack = append(slack, math.Min(1, z*math.Sqrt(k*s2[j]+(1-k)*(1-k)*within)))
	}
	return bias, slack
}

func TestReferenceCurveAgainstRows(t *testing.T) {
	const tolerance = 1e-7 // Σ w·c is rounded to 2^-32, and quotients of small bins are squared
	rng := rand.New(rand.NewPCG(11, 12))
	for trial := range 200 {
		rows := drawRows(rng, 2+rng.IntN(3000), []float64{0, -.1, .05, -.4}[trial%4])
		for i := range rows {
			rows[i].w = float64(1+rng.IntN(4)) / 4
		}
		z := float64(trial % 3)
		got, err := ReferenceCurve(paneOf(t, rows, 15), z)
		if err != nil {
			t.Fatal(err)
		}
		bias, slack := slowCurve(rows, 15, z)
		for j := range bias {
			// A variance of exactly 0 against one of rounding: their roots differ by its root.
			if math.Abs(got.Bias[j]-bias[j]) > tolerance || math.Abs(got.Slack[j]-slack[j]) > math.Sqrt(tolerance) {
				t.Fatalf("trial %d, bin %d: bias %v slack %v, from rows %v and %v", trial, j, got.Bias[j], got.Slack[j],
					bias[j], slack[j])
			}
		}
	}
}

// TestReferenceCurveShrinks: on calibrated rows the curve is much nearer to the truth than the means by bin; where the
// truth is a steep line, the worst case of shrinking towards one mean, it costs a quarter at most; and one standard
// deviation covers about what it should.
func TestReferenceCurveShrinks(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, c := range []struct {
		name string
		bend float64 // true bias is bend·(.5 - c)
		most float64 // of the error that the means have
	}{{"calibrated", 0, .5}, {"steep", .5, 1.25}} {
		var shrunk, plain, covered, bins float64
		for range 40 {
			rows := drawRows(rng, 5000, 0)
			for i := range rows {
				rows[i].a = rng.Float64() < rows[i].c+c.bend*(.5-rows[i].c)
			}
			p := paneOf(t, rows, 15)
			r, err := ReferenceCurve(p, 1)
			if err != nil {
				t.Fatal(err)
			}
			for j, b := range p {
				if b.N() == 0 {
					continue
				}
				truth := c.bend * (.5 - (b.C1+b.C0)/b.N())
				off, raw := r.Bias[j]-truth, (b.N1-b.C1-b.C0)/b.N()-truth
				shrunk += b.N() * off * off
				plain += b.N() * raw * raw
				bins++
				if math.Abs(r.Bias[j]-truth) <= r.Slack[j] {
					covered++
				}
			}
		}
		if !(shrunk <= c.most*plain) {
			t.Errorf("%s: mean squared error is %.2f of that of the means, want at most %.2f", c.name, shrunk/plain,
				c.most)
		}
		if share := covered / bins; share < .5 {
			t.Errorf("%s: one standard deviation covers %.2f of the bins, want about .68", c.name, share)
		}
	}
}

func TestReferenceCurveRefused(t *testing.T) {
	p := make(Pane, 15)
	if _, err := ReferenceCurve(p, 1); !errors.Is(err, ErrPane) {
		t.Errorf("no rows: %v, want ErrPane", err)
	}
	p[3] = BinSums{N1: 1, C1: .9}
	if _, err := ReferenceCurve(p, 1); !errors.Is(err, ErrPane) {
		t.Errorf("mean confidence outside its bin: %v, want ErrPane", err)
	}
	p[3] = BinSums{N1: 1, C1: .25}
	for _, z := range []float64{-1, math.NaN()} {
		if _, err := ReferenceCurve(p, z); !errors.Is(err, ErrSpec) {
			t.Errorf("slack %v: %v, want ErrSpec", z, err)
		}
	}
	r, err := ReferenceCurve(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Spec{Reference: r}); err != nil {
		t.Errorf("a curve of one row: %v", err)
	}
	p[3] = BinSums{N1: 3, C1: .75, N0: 1, C0: .25}
	if r, err = ReferenceCurve(p, 2); err != nil || r.Accuracy != .75 ||
		math.Abs(r.AccuracySlack-2*math.Sqrt(.75*.25/4)) > 1e-15 {
		t.Errorf("3 right of 4: accuracy %v, slack %v, error %v", r.Accuracy, r.AccuracySlack, err)
	}
}
