package metric_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

func TestBasicIsEvaluate(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		for _, n := range []int{0, 1, 300} {
			r := randomLogits(n, 5, 4)
			rng := rand.New(rand.NewPCG(2, 9))
			for range r.Labels {
				if weighted {
					r.W = append(r.W, rng.Float64())
				}
			}
			if n == 0 {
				r.F64 = []float64{}
			}
			want := evaluate(t, r, metric.Options{Bins: 10})
			got, err := metric.Basic(r, metric.Options{Bins: 10, CSF: metric.Margin})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range [][2]float64{
				{got.Accuracy, want.Accuracy},
				{got.NLL, want.NLL},
				{got.Brier, want.Brier},
				{got.ECE, want.ECE},
				{got.ECEL2, want.ECEL2},
				{got.MCE, want.MCE},
				{got.CWECE, want.CWECE},
				{got.CWECEL2, want.CWECEL2},
				{float64(got.N), float64(want.N)},
			} {
				if v[0] != v[1] && (v[0] == v[0] || v[1] == v[1]) {
					t.Errorf("n = %d: got %v, want %v", n, v[0], v[1])
				}
			}
			var conf float64
			for _, b := range got.Bins {
				conf += b.SumC
			}
			if n > 0 {
				near(t, "confidence", got.Confidence, conf/got.W, 0)
			}
		}
	}
	if _, err := metric.Basic(metric.Rows{K: 0}, metric.Options{}); err == nil {
		t.Error("0 classes: want an error")
	}
}

// TestEvaluateManyFloat32Rows: the block kernel, which large input takes, gives the numbers of float64.
func TestEvaluateManyFloat32Rows(t *testing.T) {
	const n, k = 110_000, 10
	rng := rand.New(rand.NewPCG(11, 1))
	a := metric.Rows{K: k}
	b := metric.Rows{K: k}
	for range n {
		y := rng.IntN(k)
		for j := range k {
			z := float32(2 * rng.NormFloat64())
			if j == y {
				z += 3
			}
			a.F32, b.F64 = append(a.F32, z), append(b.F64, float64(z))
		}
		a.Labels = append(a.Labels, int32(y))
	}
	b.Labels = a.Labels
	o := metric.Options{Resamples: 10}
	got, want := evaluate(t, a, o).Values(), evaluate(t, b, o).Values()
	for i, v := range got {
		near(t, v.Key, v.Value, want[i].Value, 2e-7)
	}
}

func TestUncertaintyOfCells(t *testing.T) {
	// With one cell a distinct confidence the cells are the rows.
	c, a := randomRows(400, 30, 5)
	rows := metric.Rows{K: 2, Probs: true}
	for i := range c {
		c[i] = 0.5 + c[i]/2
		rows.F64 = append(rows.F64, c[i], 1-c[i])
		rows.Labels = append(rows.Labels, int32(1-num(a[i])))
	}
	cells := metric.Groups(metric.SortWeighted(c, a, nil))
	o := metric.Options{Resamples: 100}
	all := evaluate(t, rows, metric.Options{Resamples: 100, Uncertainty: true}).Intervals
	for i, key := range metric.UncertaintyKeys {
		got, err := metric.UncertaintyCells(cells, key, o)
		if key[:2] == "cw" || key[:2] == "ec" || key == "mce" {
			if err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: got %v, want an error with the key", key, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want := all[i]
		tol := 1e-5 // of smECE, whose observed value has a coarser grid here
		if key == "ace" || key == "ace_l2" || key == "debiased_l2" || key[:2] == "sw" {
			tol = 0.03 // ties are split by order, in cells in proportion
		}
		near(t, key+" null", got.Null, want.Null, tol)
		near(t, key+" lo", got.Lo, want.Lo, tol)
		near(t, key+" hi", got.Hi, want.Hi, tol)
	}
}

// TestZeroRows: rows whose label has the probability 0, of float32 and of float64, and what each adds to the NLL.
func TestZeroRows(t *testing.T) {
	double := []float64{1, 0, 1, 0, .5, .5, 1, 0, 1, 0, 1, 0}
	single := make([]float32, len(double))
	for i, q := range double {
		single[i] = float32(q)
	}
	labels, weights := []int32{1, 0, 1, -1, 1, 1}, []float64{1, 1, 1, 1, 0, 3}
	for _, rows := range []metric.Rows{
		{K: 2, F64: double, Probs: true, Labels: labels, W: weights},
		{K: 2, F32: single, Probs: true, Labels: labels, W: weights},
	} {
		r, err := metric.Evaluate(rows, metric.Options{})
		if err != nil || r.ZeroRows != 2 {
			t.Fatalf("got %d rows, %v, want 2", r.ZeroRows, err)
		}
		want := (4*metric.ZeroNLL(rows.F64 != nil) + math.Ln2) / 6
		if math.Abs(r.NLL-want) > 1e-12*want {
			t.Errorf("nll: got %v, want %v", r.NLL, want)
		}
	}
	logits := metric.Rows{K: 2, F64: []float64{0, -1000}, Labels: []int32{1}}
	if r, err := metric.Evaluate(logits, metric.Options{}); err != nil || r.ZeroRows != 0 || r.NLL != 1000 {
		t.Errorf("logits: got %d rows, nll %v, %v", r.ZeroRows, r.NLL, err)
	}
}
