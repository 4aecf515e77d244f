package metric_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

func evaluate(t *testing.T, r metric.Rows, o metric.Options) metric.Report {
	t.Helper()
	report, err := metric.Evaluate(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestEvaluateByHand(t *testing.T) {
	// K = 2: confidences .75, .75, .5 (a tie: class 0), 1; right, wrong, right, right.
	r := evaluate(t, metric.Rows{
		K: 2, F64: []float64{.75, .25, .25, .75, .5, .5, 0, 1}, Probs: true, Labels: []int32{0, 0, 0, 1},
	}, metric.Options{Bins: 4})
	near(t, "accuracy", r.Accuracy, 0.75, tol)
	near(t, "nll", r.NLL, -(math.Log(.75)+math.Log(.25)+math.Log(.5))/4, tol)
	near(t, "brier", r.Brier, (2*.0625+2*.5625+2*.25)/4, tol)
	near(t, "ece", r.ECE, (.5+.5+0)/4, tol) // bins (¼,½], (½,¾], (¾,1]
	near(t, "mce", r.MCE, .5, tol)
	near(t, "auroc", r.AUROC, (0+.5+1)/3, tol)
	near(t, "fpr95", r.FPR95, 1, tol)
	// Descending: 1 (right), then the tied pair with half a wrong row each, then .5 (right).
	near(t, "aurc", r.AURC, (0+.5*.5+1./3+.25)/4, tol)
	near(t, "eaurc", r.EAURC, (.5*.5+1./3)/4, tol)
}

func TestEvaluateAwkwardCases(t *testing.T) {
	f := func(name string, k int, z []float64, y []int32, want map[string]float64) {
		t.Helper()
		got := map[string]float64{}
		for _, v := range evaluate(t, metric.Rows{K: k, F64: z, Labels: y}, metric.Options{}).Values() {
			got[v.Key] = v.Value
			if math.IsInf(v.Value, 0) || (math.IsNaN(v.Value) && v.Key != "auroc" && v.Key != "fpr95") {
				t.Errorf("%s: %s is %g", name, v.Key, v.Value)
			}
		}
		for key, w := range want {
			near(t, name+": "+key, got[key], w, 1e-9)
		}
	}
	nan := math.NaN()
	f("one row, right, certain", 3, []float64{1000, 0, 0}, []int32{0}, map[string]float64{
		"accuracy": 1, "ece": 0, "smece": 0, "nll": 0, "brier": 0, "aurc": 0, "auroc": nan, "ece_lo": 0, "ece_hi": 0,
		"debiased_l2": 0, "sweep": 0,
	})
	f("one row, wrong, certain", 3, []float64{1000, 0, 0}, []int32{1}, map[string]float64{
		// p = 0 of the label is in no bin
		"accuracy": 0, "ece": 1, "mce": 1, "ks": 1, "nll": 1000, "brier": 2, "aurc": 1, "eaurc": 0, "ece_null": 0,
		"cwece": 1. / 3,
	})
	// Uniform over 5 classes: c is .2 exactly, the upper edge of the third of 15 bins.
	f("uniform", 5, make([]float64, 10), []int32{0, 1}, map[string]float64{"accuracy": .5, "ece": .3, "brier": .8,
		"aurc": .5, "cwece": (.3 + .3 + .6) / 5})
	f("|z| = 80", 2, []float64{80, -80, -80, 80}, []int32{0, 0}, map[string]float64{"nll": 80, "accuracy": .5,
		"ece": .5})
	f("all right", 2, []float64{1, 0, 0, 1, 2, 0}, []int32{0, 1, 0}, map[string]float64{"accuracy": 1, "aurc": 0,
		"auroc": nan, "fpr95": nan})
	f("all wrong", 2, []float64{1, 0, 0, 1, 2, 0}, []int32{1, 0, 1}, map[string]float64{"accuracy": 0, "aurc": 1,
		"eaurc": 0, "auroc": nan})
	f("one class", 1, []float64{3, 4}, []int32{0, 0}, map[string]float64{"accuracy": 1, "ece": 0, "nll": 0})
}

func TestEvaluateEdgeConfidenceStaysInItsBin(t *testing.T) {
	r := evaluate(t, metric.Rows{K: 5, F32: make([]float32, 5), Labels: []int32{0}}, metric.Options{Detail: true})
	if b := r.Detail.Bins[2]; b.N != 1 || b.Hi != 0.2 || b.Conf != 0.2 {
		t.Errorf("got %+v, want the row in (2/15, 3/15]", b)
	}
}

func TestEvaluateUnlabelledRowsTakeNoPart(t *testing.T) {
	z := []float32{1, 2, 3, 0, 5, 5}
	with := evaluate(t, metric.Rows{K: 2, F32: z, Labels: []int32{0, -1, 1}}, metric.Options{})
	without := evaluate(t, metric.Rows{K: 2, F32: []float32{1, 2, 5, 5}, Labels: []int32{0, 1}}, metric.Options{})
	a, _ := json.Marshal(with)
	b, _ := json.Marshal(without)
	if string(a) != string(b) {
		t.Errorf("got %s, want %s", a, b)
	}
}

func TestEvaluateFloat64IsNotRounded(t *testing.T) {
	// In float32 both scores would be equal.
	r := evaluate(t, metric.Rows{K: 2, F64: []float64{1, 1 + 1e-12}, Labels: []int32{1}}, metric.Options{})
	if r.Accuracy != 1 {
		t.Errorf("accuracy: got %g, want 1", r.Accuracy)
	}
}

func TestEvaluateCSF(t *testing.T) {
	// Rows 0 (wrong) and 1 (right): msp ranks 0 higher, the margin and the entropy rank 1 higher.
	rows := metric.Rows{K: 3, F64: []float64{.52, .48, 0, .51, .245, .245}, Probs: true, Labels: []int32{1, 0}}
	for csf, want := range map[string]float64{"": 0, metric.MSP: 0, metric.Margin: 1, metric.NegEnt: 0} {
		r := evaluate(t, rows, metric.Options{CSF: csf})
		if r.AUROC != want {
			t.Errorf("csf %q: auroc %g, want %g", csf, r.AUROC, want)
		}
	}
	rows.F64 = []float64{.52, .24, .24, .51, .49, 0}
	if r := evaluate(t, rows, metric.Options{CSF: metric.NegEnt}); r.AUROC != 1 {
		t.Errorf("negent: auroc %g, want 1", r.AUROC)
	}
}

// TestSureRowsKeepTheirOrder holds that negent ranks rows whose 1 - H/ln K is 1 in float64.
func TestSureRowsKeepTheirOrder(t *testing.T) {
	rows := metric.Rows{K: 2, F64: []float64{45, 0, 60, 0, 50, 0, 0, 44}, Labels: []int32{1, 0, 0, 0}}
	single := metric.Rows{K: 2, F32: []float32{45, 0, 60, 0, 50, 0, 0, 44}, Labels: rows.Labels}
	for _, r := range []metric.Rows{rows, single} {
		got, err := metric.Evaluate(r, metric.Options{CSF: metric.NegEnt})
		if err != nil {
			t.Fatal(err)
		}
		if got.AUROC != 1 {
			t.Errorf("auroc %g, want 1: both right rows are surer than both wrong ones", got.AUROC)
		}
	}
}

func TestEvaluateNorm(t *testing.T) {
	c, a := randomRows(100, 0, 1)
	rows := metric.Rows{K: 2, Probs: true}
	for i := range c {
		c[i] = 0.5 + c[i]/2 // the top label of K = 2
		rows.F64 = append(rows.F64, c[i], 1-c[i])
		rows.Labels = append(rows.Labels, int32(1-num(a[i])))
	}
	for _, p := range []float64{1, 2, 3} {
		r := evaluate(t, rows, metric.Options{Norm: p, SoftBins: 10, SoftTemperature: 0.02})
		bin, lb := refSoft(c, a, 10, 0.02, p)
		near(t, "sbece_bin", r.SBECEBin, bin, 1e-10)
		near(t, "sbece_lb", r.SBECELB, lb, 1e-10)
	}
}

func TestEvaluateErrorsNameTheirCause(t *testing.T) {
	good := metric.Rows{K: 2, F32: []float32{0, 1, 1, 0}, Labels: []int32{0, 1}}
	f := func(want string, r metric.Rows, o metric.Options) {
		t.Helper()
		if _, err := metric.Evaluate(r, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	f("row 1: label 2, allowed 0..1", metric.Rows{K: 2, F32: good.F32, Labels: []int32{0, 2}}, metric.Options{})
	f("row 0: label -2", metric.Rows{K: 2, F32: good.F32, Labels: []int32{-2, 0}}, metric.Options{})
	f("row 1: score 0 is NaN, allowed are finite values", metric.Rows{K: 2, Labels: good.Labels,
		F32: []float32{0, 1, float32(math.NaN()), 0}}, metric.Options{})
	f("row 0: score 1 is -Inf, allowed are finite values", metric.Rows{K: 2, Labels: good.Labels,
		F64: []float64{0, math.Inf(-1), 1, 0}}, metric.Options{})
	f("row 0: probability 0 is 2, allowed are values in [0, 1]", metric.Rows{K: 2, F32: []float32{2, 1, 1, 0},
		Labels: good.Labels, Probs: true}, metric.Options{})
	f("row 1: probabilities sum to 1.5, allowed is within 0.05 of 1", metric.Rows{K: 2, F64: []float64{0, 1, 1, .5},
		Labels: good.Labels, Probs: true}, metric.Options{})
	f("4 scores for 1 labels", metric.Rows{K: 2, F32: good.F32, Labels: []int32{0}}, metric.Options{})
	f("0 classes", metric.Rows{}, metric.Options{})
	f("both", metric.Rows{K: 1, F32: []float32{1}, F64: []float64{1}, Labels: []int32{0}}, metric.Options{})
	f(`csf: "max"`, good, metric.Options{CSF: "max"})
	f("bins: -1", good, metric.Options{Bins: -1})
	f("bins: 65536 for each of 300 classes, allowed are 16777216 in all", metric.Rows{K: 300},
		metric.Options{Bins: 1 << 16})
	f("row 1: weight 1e+101, allowed are 0 and 1e-100..1e+100", metric.Rows{K: 2, F32: good.F32, Labels: good.Labels,
		W: []float64{1, 1e101}}, metric.Options{})
	f("soft bins: -3", good, metric.Options{SoftBins: -3})
	f("norm: 0.5", good, metric.Options{Norm: .5})
	f("soft temperature: -1", good, metric.Options{SoftTemperature: -1})
	f("cdf nu: NaN", good, metric.Options{CDFNu: math.NaN()})
	f("resamples: -1", good, metric.Options{Resamples: -1})
}

// evalKeys is the published list, in its order.
var evalKeys = strings.Fields(`n accuracy nll brier ece ece_l2 mce ece_null ece_lo ece_hi ace ace_l2 cwece cwece_l2
	debiased_l2 ks sweep sweep_l2 smece sbece_bin sbece_lb aurc eaurc auroc fpr95`)

func TestReportJSON(t *testing.T) {
	r := evaluate(t, metric.Rows{K: 2, F32: []float32{0, 1, 1, 0}, Labels: []int32{1, 0}}, metric.Options{})
	if got := keys(t, r); !slices.Equal(got, evalKeys) {
		t.Errorf("got %v, want %v", got, evalKeys)
	}
	b, _ := json.Marshal(r)
	if !strings.Contains(string(b), `"auroc":null`) {
		t.Errorf("an undefined metric must be null: %s", b)
	}
	empty := evaluate(t, metric.Rows{K: 2, F32: []float32{}}, metric.Options{Detail: true})
	for _, v := range empty.Values() {
		if !math.IsNaN(v.Value) {
			t.Errorf("no rows: %s is %g, want NaN", v.Key, v.Value)
		}
	}
	if got := keys(t, empty); !slices.Equal(got, append(slices.Clone(evalKeys), "bins", "soft_bins", "cdf")) {
		t.Errorf("with detail: got %v", got)
	}
	if _, err := json.Marshal([]metric.Report{empty, r}); err != nil {
		t.Error(err)
	}
}

// keys returns the top-level keys of v's JSON in order.
func keys(t *testing.T, v any) (out []string) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, k.(string))
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
