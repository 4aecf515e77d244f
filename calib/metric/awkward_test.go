package metric_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/testsize"
)

// awkwardRows are tables that metrics have been known to stumble over, of K classes, as float64.
func awkwardRows() map[string]metric.Rows {
	rng := rand.New(rand.NewPCG(5, 55))
	cases := map[string]metric.Rows{}
	add := func(name string, k, n int, probs bool, row func(i int) ([]float64, int)) {
		r := metric.Rows{K: k, Probs: probs}
		for i := range n {
			p, y := row(i)
			r.F64, r.Labels = append(r.F64, p...), append(r.Labels, int32(y))
		}
		cases[fmt.Sprintf("%s, K = %d", name, k)] = r
	}
	one := func(k, at int, v float64) []float64 {
		z := make([]float64, k)
		z[at] = v
		return z
	}
	for _, k := range []int{2, 3, 10} {
		random := func() []float64 {
			z := make([]float64, k)
			for j := range z {
				z[j] = 2 * rng.NormFloat64()
			}
			return z
		}
		for _, v := range []float64{80, 1e4, 1e30, math.MaxFloat32} {
			add(fmt.Sprintf("|z| = %g", v), k, 40, false, func(int) ([]float64, int) {
				z := random()
				for j := range z {
					z[j] = math.Copysign(v, z[j])
				}
				return z, rng.IntN(k)
			})
		}
		add("identical rows", k, 50, false, func(i int) ([]float64, int) { return one(k, 1, 1), i % k })
		add("uniform rows", k, 50, false, func(i int) ([]float64, int) { return make([]float64, k), i % k })
		add("ties", k, 90, false, func(i int) ([]float64, int) { return one(k, i%k, float64(i%3)), rng.IntN(k) })
		add("all right", k, 30, false, func(i int) ([]float64, int) { return one(k, i%k, .1+float64(i)), i % k })
		add("all wrong", k, 30, false, func(i int) ([]float64, int) { return one(k, i%k, .1+float64(i)), (i + 1) % k })
		add("all right and certain", k, 30, true, func(i int) ([]float64, int) { return one(k, i%k, 1), i % k })
		add("all wrong and certain", k, 30, true, func(i int) ([]float64, int) { return one(k, i%k, 1), (i + 1) % k })
		add("zeros and ones", k, 60, true, func(i int) ([]float64, int) { return one(k, i%k, 1), rng.IntN(k) })
		add("an absent class", k, 60, false, func(int) ([]float64, int) { return random(), rng.IntN(k - 1) })
		add("one label", k, 60, false, func(int) ([]float64, int) { return random(), k - 1 })
		for _, n := range []int{1, 2, 3, 14, 16, 21, 200} {
			add(fmt.Sprintf("%d rows", n), k, n, false, func(int) ([]float64, int) { return random(), rng.IntN(k) })
		}
		// j/m and 1 - (m-j)/m are not one number, which leaves ties to rounding: where there is a j there is no m-j.
		for _, edge := range []struct {
			name string
			at   func(i int) (j, m int)
		}{
			{"on the lower edges of 15", func(i int) (j, m int) { return 1 + i%7, 15 }},
			{"on the upper edges of 15", func(i int) (j, m int) { return 8 + i%7, 15 }},
			{"on the edges of 3600", func(i int) (j, m int) { return 1 + 28*i, 3600 }},
		} {
			add(edge.name, k, 120, true, func(i int) ([]float64, int) {
				p := make([]float64, k)
				j, m := edge.at(i)
				p[i%k] = float64(j) / float64(m)
				p[(i+1)%k] = 1 - p[i%k]
				return p, rng.IntN(k)
			})
		}
	}
	add("one score each", 1, 20, false, func(i int) ([]float64, int) { return []float64{float64(i)}, 0 })
	add("one row of many", 1000, 1, false, func(int) ([]float64, int) { return one(1000, 7, 3), 7 })
	add("few rows of many", 1000, 3, false, func(i int) ([]float64, int) { return one(1000, i, 9), 0 })
	return cases
}

// weightings are those that every case is weighted by.
func weightings(n int) map[string][]float64 {
	rng := rand.New(rand.NewPCG(uint64(n), 56))
	out := map[string][]float64{}
	add := func(name string, f func(i int) float64) {
		w := make([]float64, n)
		for i := range w {
			w[i] = f(i)
		}
		out[name] = w
	}
	add("of 1", func(int) float64 { return 1 })
	add("whole, some 0", func(i int) float64 { return float64((i + 1) % 4) })
	add("real", func(int) float64 { return .1 + rng.Float64() })
	add("of 0.1", func(int) float64 { return .1 })
	add("of 1e-30", func(int) float64 { return 1e-30 })
	add("of 1e30", func(int) float64 { return 1e30 })
	add("1e-30 and 1e30", func(i int) float64 { return []float64{1e30, 1e-30}[i%2] })
	add("of 0", func(int) float64 { return 0 })
	return out
}

// narrow are the rows in float32.
func narrow(r metric.Rows) metric.Rows {
	out := metric.Rows{K: r.K, Probs: r.Probs, Labels: r.Labels, W: r.W, F32: []float32{}}
	for _, v := range r.F64 {
		out.F32 = append(out.F32, float32(v))
	}
	return out
}

// TestAwkwardRowsAgainstThePlainDefinitions computes every key of every awkward case, weighted and not, in float32 and
// float64, and compares with the definitions.
func TestAwkwardRowsAgainstThePlainDefinitions(t *testing.T) {
	testsize.Slow(t)
	options := []metric.Options{
		{Bins: 15, SoftBins: 15, SoftTemperature: .01, Norm: 2, CSF: metric.MSP, Resamples: 20},
		{Bins: 10, SoftBins: 7, SoftTemperature: .1, Norm: 1, CSF: metric.Margin, Resamples: 20},
		{Bins: 4, SoftBins: 20, SoftTemperature: 1e-3, Norm: 3.5, CSF: metric.NegEnt, Resamples: 20},
	}
	for name, r := range awkwardRows() {
		all := weightings(len(r.Labels))
		all["none"] = nil
		for kind, w := range all {
			r.W = w
			for i, o := range options {
				if i > 0 && kind != "none" && kind != "whole, some 0" && kind != "1e-30 and 1e30" {
					continue
				}
				what := fmt.Sprintf("%s, weights %s, options %d", name, kind, i)
				checkPlain(t, what, r, o, 1e-11)
				checkPlain(t, what+", float32", narrow(r), o, 2e-6)
			}
		}
	}
}

func checkPlain(t *testing.T, what string, r metric.Rows, o metric.Options, tol float64) {
	t.Helper()
	report := evaluate(t, r, o)
	rows := plainRows(r, o.CSF)
	if len(rows) == 0 {
		for _, v := range report.Values() {
			if !math.IsNaN(v.Value) {
				t.Errorf("%s: %s of no rows: got %g, want NaN", what, v.Key, v.Value)
			}
		}
		return
	}
	want := plainMetrics(rows, o)
	right := want["accuracy"]
	whole := true
	for _, row := range rows {
		whole = whole && row.w == math.Trunc(row.w) && row.w < 100
	}
	if whole {
		want["aurc"], want["eaurc"] = plainAURC(rows)
	}
	for _, v := range report.Values() {
		undefined := (v.Key == "auroc" || v.Key == "fpr95") && math.IsNaN(want[v.Key])
		if math.IsInf(v.Value, 0) || math.IsNaN(v.Value) != undefined {
			t.Errorf("%s: %s is %g (accuracy %g)", what, v.Key, v.Value, right)
			continue
		}
		if v.Value < 0 || v.Key != "nll" && v.Key != "brier" && v.Value > 1+1e-12 || v.Value > 2 && v.Key == "brier" {
			t.Errorf("%s: %s is %g, outside its range", what, v.Key, v.Value)
		}
		if ref, ok := want[v.Key]; ok {
			allowed := tol * max(1, math.Abs(ref))
			if v.Key == "debiased_l2" || v.Key == "ece_l2" || v.Key == "ace_l2" || v.Key == "sbece_bin" ||
				v.Key == "sbece_lb" || v.Key == "cwece_l2" {
				allowed = math.Sqrt(tol) * 10 // roots magnify rounding near 0
				if math.Abs(v.Value*v.Value-ref*ref) <= 10*tol {
					continue
				}
			}
			if !(math.Abs(v.Value-ref) <= allowed) && !math.IsNaN(ref) {
				t.Errorf("%s: %s is %.15g, want %.15g", what, v.Key, v.Value, ref)
			}
		}
	}
	if !(report.ECELo <= report.ECE && report.ECE <= report.ECEHi) {
		t.Errorf("%s: ece %g outside [%g, %g]", what, report.ECE, report.ECELo, report.ECEHi)
	}
}

// TestAwkwardRowsAgainstSlowMetrics compares the metrics that have no definition by sums over rows: smECE, the sweep,
// the null expectation of the ECE.
func TestAwkwardRowsAgainstSlowMetrics(t *testing.T) {
	testsize.Slow(t)
	const resamples = 1000
	for name, r := range awkwardRows() {
		report := evaluate(t, r, metric.Options{Resamples: resamples})
		var c []float64
		var a []bool
		for _, row := range plainRows(r, metric.MSP) {
			c, a = append(c, row.c), append(a, row.a)
		}
		if len(c) <= 60 && (r.K == 3 || r.K == 1000) {
			const least = 1e-3 // the least bandwidth of the slow one
			if want := refSmECE(c, a); want > 1.01*least || report.SmECE > 1.01*least {
				near(t, name+": smece", report.SmECE, want, 2e-5)
			}
		}
		bins, rank := refSweepBins(c, a), ascending(c)
		l1, l2, _, _ := gaps(c, a, func(i int) int { return rank[i] * bins / len(c) })
		near(t, name+": sweep", report.Sweep, l1, 1e-11)
		near(t, name+": sweep_l2", report.SweepL2, l2, 1e-11)
		null, deviation := refNull(c)
		near(t, name+": ece_null", report.ECENull, null, 5*deviation/math.Sqrt(resamples)+1e-12)
	}
}

// refNull is the mean of the ECE in 15 bins, and its deviation, where the hits of a bin are binomial with its mean
// confidence: sums over all numbers of hits.
func refNull(c []float64) (mean, deviation float64) {
	var n, sum [15]float64
	for _, v := range c {
		b := plainWidth(v, 15)
		n[b]++
		sum[b] += v
	}
	var variance float64
	for b := range n {
		if n[b] == 0 {
			continue
		}
		p := min(1, sum[b]/n[b])
		var m, m2 float64
		for k := 0.0; k <= n[b]; k++ {
			gap := math.Abs(k-sum[b]) / float64(len(c))
			m += gap * refPMF(int(n[b]), int(k), p)
			m2 += gap * gap * refPMF(int(n[b]), int(k), p)
		}
		mean += m
		variance += m2 - m*m
	}
	return mean, math.Sqrt(max(0, variance))
}

// TestAwkwardRowsInEveryFunction holds that nothing panics, and that all is finite or NaN for the reason that is said.
func TestAwkwardRowsInEveryFunction(t *testing.T) {
	testsize.Slow(t)
	finite := func(what string, values ...float64) {
		t.Helper()
		for _, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s: got %v", what, values)
				return
			}
		}
	}
	o := metric.Options{Resamples: 8, CSF: metric.Margin}
	for name, wide := range awkwardRows() {
		for kind, w := range weightings(len(wide.Labels)) {
			if kind != "of 1" && kind != "whole, some 0" && kind != "1e-30 and 1e30" {
				continue
			}
			wide.W = w
			for _, r := range []metric.Rows{wide, narrow(wide)} {
				what := name + ", weights " + kind
				basics, err := metric.Basic(r, o)
				full := evaluate(t, r, o)
				if err != nil || basics.ECE != full.ECE || basics.CWECE != full.CWECE || basics.NLL != full.NLL ||
					basics.Brier != full.Brier || basics.Accuracy != full.Accuracy {
					t.Errorf("%s: basic %+v, %v, evaluate %+v", what, basics, err, full)
				}
				finite(what+": confidence", basics.Confidence)
				c, a, w := topLabels(r)
				awkwardPieces(what, metric.SortWeighted(c, a, w), finite)
			}
		}
	}
}

func awkwardPieces(what string, s metric.Sorted, finite func(string, ...float64)) {
	cells := metric.Cells(s, 16)
	finite(what+": cells", metric.KSCells(cells), metric.SmECECells(cells), metric.ECE(metric.SweepCells(cells)),
		metric.ECE(metric.EqualMassCells(cells, 15)))
	for _, p := range metric.RiskCoverage(s) {
		finite(what+": risk", p.Coverage, p.Risk, p.Threshold)
	}
	bins := metric.EqualWidth(s.C, s.A, s.W, 15)
	for _, b := range metric.Reliability(bins, metric.Wilson) {
		if b.W > 0 {
			finite(what+": reliability", b.Conf, b.Acc, b.AccLo, b.AccHi)
		}
	}
	_, g := metric.CDFCurve(metric.CDFWeights(s.C, nil, metric.CDFBins), .1)
	finite(what+": cdf", g...)
	for _, temperature := range []float64{1e-300, 1e-9, .01, 1e300} {
		sums := metric.SoftBins(s.C, s.A, s.W, 15, temperature)
		for _, p := range []float64{1, 2, 50, 1e300} {
			finite(what+": soft", metric.SBECEBin(sums, p), metric.SBECELBRows(s.C, s.A, s.W,
				metric.SoftNorm{Bins: 15, Temperature: temperature, P: p}))
		}
	}
}

// topLabels are the confidences, outcomes and weights of the rows that take part.
func topLabels(r metric.Rows) (c []float64, a []bool, w []float64) {
	for _, row := range plainRows(r, metric.MSP) {
		c, a, w = append(c, row.c), append(a, row.a), append(w, row.w)
	}
	return c, a, w
}

// TestUncertaintyOfEveryAwkwardRow asks for the interval of every key.
func TestUncertaintyOfEveryAwkwardRow(t *testing.T) {
	for name, r := range awkwardRows() {
		for _, kind := range []string{"of 1", "whole, some 0", "1e-30 and 1e30"} {
			r.W = weightings(len(r.Labels))[kind]
			report := evaluate(t, r, metric.Options{Resamples: 8, Uncertainty: true})
			got := values(report)
			if len(report.Intervals) != len(metric.UncertaintyKeys) {
				t.Errorf("%s, weights %s: %d intervals, want %d", name, kind, len(report.Intervals),
					len(metric.UncertaintyKeys))
			}
			for _, iv := range report.Intervals {
				if v := got[iv.Key]; !(iv.Lo <= v && v <= iv.Hi && iv.Null <= iv.NullHi+1e-15 && iv.Null >= 0) {
					t.Errorf("%s, weights %s: %s = %g has %+v", name, kind, iv.Key, v, iv.Interval)
				}
			}
		}
	}
}
func refPMF(n, k int, p float64) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	switch {
	case p <= 0:
		return num(k == 0)
	case p >= 1:
		return num(k == n)
	}
	return math.Exp(lg(n) - lg(k) - lg(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}
