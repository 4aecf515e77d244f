package acc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/testsize"
)

// awkwardTables are float32 rows that metrics have been known to stumble over.
func awkwardTables() map[string]metric.Rows {
	rng := rand.New(rand.NewPCG(7, 77))
	cases := map[string]metric.Rows{}
	for _, k := range []int{2, 3, 10} {
		add := func(name string, n int, probs bool, row func(i int, v []float32) int) {
			r := metric.Rows{K: k, Probs: probs, F32: make([]float32, n*k)}
			for i := range n {
				r.Labels = append(r.Labels, int32(row(i, r.F32[i*k:(i+1)*k])))
			}
			cases[fmt.Sprintf("%s, K = %d", name, k)] = r
		}
		random := func(_ int, v []float32) int {
			for j := range v {
				v[j] = float32(2 * rng.NormFloat64())
			}
			return rng.IntN(k)
		}
		for _, far := range []float64{80, 1e4, 1e30, math.MaxFloat32} {
			add(fmt.Sprintf("|z| = %g", far), 40, false, func(i int, v []float32) int {
				y := random(i, v)
				for j := range v {
					v[j] = float32(math.Copysign(far, float64(v[j])))
				}
				return y
			})
		}
		add("identical rows", 50, false, func(i int, v []float32) int { v[1] = 1; return i % k })
		add("uniform rows", 50, false, func(i int, _ []float32) int { return i % k })
		add("all right", 30, false, func(i int, v []float32) int { v[i%k] = 1 + float32(i)/7; return i % k })
		add("all wrong", 30, false, func(i int, v []float32) int { v[i%k] = 1 + float32(i)/7; return (i + 1) % k })
		add("zeros and ones", 60, true, func(i int, v []float32) int { v[i%k] = 1; return rng.IntN(k) })
		add("one label", 60, false, func(i int, v []float32) int { random(i, v); return k - 1 })
		for _, n := range []int{1, 2, 14, 300} {
			add(fmt.Sprintf("%d rows", n), n, false, random)
		}
	}
	return cases
}

// scored is a row of a table as a stream has it.
type scored struct {
	c [3]float64 // msp, margin, negent
	w float64
	a bool
}

// TestStreamOfAwkwardRowsIsEval compares every number of a set with the same number of the rows, weighted and not: the
// exact ones to what fixed point rounds, those of grids within their bounds.
func TestStreamOfAwkwardRowsIsEval(t *testing.T) {
	testsize.Slow(t)
	for name, r := range awkwardTables() {
		for kind, weigh := range map[string]func(i int) float64{
			"none": nil, "whole": func(i int) float64 { return float64(1 + i%3) },
			"real":    func(i int) float64 { return .3 + float64(i%7)/5 },
			"of 1e-6": func(int) float64 { return 1e-6 }, "of 1e6": func(int) float64 { return 1e6 },
		} {
			r.W = nil
			for i := range r.Labels {
				if weigh != nil {
					r.W = append(r.W, weigh(i))
				}
			}
			compareStream(t, name+", weights "+kind+": ", r)
		}
	}
}

func compareStream(t *testing.T, what string, r metric.Rows) {
	t.Helper()
	s, rows := must(New(Config{K: r.K})), []scored(nil)
	p := make([]float64, r.K)
	least, total := math.Inf(1), 0.0
	for i, y := range r.Labels {
		z := r.F32[i*r.K : (i+1)*r.K]
		row, _ := kernel.Logits(z, p)
		if r.Probs {
			row, _ = kernel.Probs(z, p)
		}
		w := 1.0
		if r.W != nil {
			w = r.W[i]
		}
		if err := s.Label(row, p, Truth{int(y), kernel.NLL(row, z, int(y), r.Probs), w, 0, math.NaN()}); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, scored{[3]float64{row.Conf, row.Margin(), kernel.NegEnt(row, r.K)}, w, row.Arg == int(y)})
		least, total = min(least, w), total+w
	}
	nll := math.NaN()
	if r.Probs { // a probability of 0 is the least float32 there, the least float64 below
		nll = evalOf(t, r, metric.MSP).NLL
	}
	r = widened(r)
	l := s.Labelled
	// A sum is off by 2^-33 a row, and a bin may hold the row of the least weight alone.
	mean, bin := 0x1p-32*float64(len(rows))/total+1e-12, 0x1p-32/least+1e-12
	for i, csf := range []string{metric.MSP, metric.Margin, metric.NegEnt} {
		want := evalOf(t, r, csf)
		g := []*Grid{&l.MSP, &l.Margin, &l.NegEnt}[i]
		compareRanks(t, what+csf+" ", g, rows, i)
		if csf != metric.MSP {
			continue
		}
		bins := must(g.Bins(15))
		cw, cw2 := l.ClassWise.ECE()
		near(t, what+"accuracy", l.Scores.Accuracy(), want.Accuracy, mean)
		if r.Probs {
			want.NLL = nll
		}
		if want.NLL < 1e8 { // a row's saturates at 2^62 of 2^-32
			near(t, what+"nll", l.Scores.NLL(), want.NLL, mean*(1+want.NLL))
		}
		near(t, what+"brier", l.Scores.Brier(), want.Brier, mean)
		near(t, what+"ece", metric.ECE(bins), want.ECE, mean)
		near(t, what+"mce", metric.MCE(bins), want.MCE, bin)
		near(t, what+"cwece", cw, want.CWECE, mean)
		squares := func(key string, got, want, tol float64) { near(t, what+key+"²", got*got, want*want, tol) }
		squares("ece_l2", metric.ECEL2(bins), want.ECEL2, 3*mean)
		squares("cwece_l2", cw2, want.CWECEL2, 3*mean)
		soft := l.Soft.Sums() // of bins that nothing is near, memberships below 2^-33 are lost
		squares("sbece_bin", metric.SBECEBin(soft, 2), want.SBECEBin, 100*mean)
		squares("sbece_lb", metric.SBECELB(soft), want.SBECELB, 100*mean)
	}
}

func evalOf(t *testing.T, r metric.Rows, csf string) metric.Report {
	t.Helper()
	report, err := metric.Evaluate(r, metric.Options{Resamples: 1, CSF: csf})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// compareRanks holds the grid to its bounds: AURC is that of rows whose scores are the numbers of their cells, ACE is
// within boundaryBound.
func compareRanks(t *testing.T, what string, g *Grid, rows []scored, csf int) {
	t.Helper()
	var c, cell, w []float64
	var a []bool
	var total float64
	for _, r := range rows {
		c, cell = append(c, r.c[csf]), append(cell, float64(cellOf(r.c[csf])))
		w, a = append(w, r.w), append(a, r.a)
		total += r.w
	}
	tied, s := metric.SortWeighted(cell, a, w), metric.SortWeighted(c, a, w)
	rounding := 0x1p-30*float64(len(rows))/total + 1e-11
	near(t, what+"aurc", g.AURC(), metric.AURC(tied), rounding)
	mass := metric.EqualMass(s, 15)
	var ends []float64
	end := 0.0
	for _, b := range mass[:14] {
		end += b.W
		ends = append(ends, end)
	}
	bound := boundaryBound(g, ends, total) + rounding + boundarySlack(w, total)
	near(t, what+"ace", metric.ECE(metric.EqualMassCells(g.Groups(), 15)), metric.ECE(mass), bound)
}

// boundarySlack is what an end that is off by rounding can move.
func boundarySlack(w []float64, total float64) float64 { return 15 * 0x1p-32 * float64(len(w)) / total }
