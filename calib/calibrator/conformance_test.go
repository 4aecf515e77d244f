package calibrator_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
)

// method is one fit that the conformance test runs.
type method struct {
	name string
	fit  func(z []float64, k int, y []int32, w []float64) (calibrator.Calibrator, calibrator.Report, error)
	keep bool // keeps the argmax
	nll  bool // improves the NLL of over-confident networks on held-out rows
}

func as[C calibrator.Calibrator](c C, r calibrator.Report, err error) (calibrator.Calibrator, calibrator.Report, error) {
	return c, r, err
}

var opts calibrator.Options

func methods() []method {
	type z = []float64
	type y = []int32
	type c = calibrator.Calibrator
	type r = calibrator.Report
	return []method{
		{"platt", func(z z, k int, y y, w z) (c, r, error) { return as(calibrator.FitPlatt(z, k, y, w, opts)) }, false, true},
		{"beta", func(z z, k int, y y, w z) (c, r, error) { return as(calibrator.FitBeta(z, k, y, w, opts)) }, false, true},
		{"isotonic", func(z z, k int, y y, w z) (c, r, error) { return as(calibrator.FitIsotonic(z, k, y, w, opts)) }, false, false},
		{"histogram, equal mass", func(z z, k int, y y, w z) (c, r, error) {
			return as(calibrator.FitHistogram(z, k, y, w, 15, calibrator.EqualMass, opts))
		}, false, false},
		{"histogram, equal width", func(z z, k int, y y, w z) (c, r, error) {
			return as(calibrator.FitHistogram(z, k, y, w, 15, calibrator.EqualWidth, opts))
		}, false, false},
		{"scaling-binning", func(z z, k int, y y, w z) (c, r, error) {
			return as(calibrator.FitScalingBinning(z, k, y, w, 15, opts))
		}, false, false},
		{"vector", func(z z, k int, y y, w z) (c, r, error) { return as(calibrator.FitVector(z, k, y, w, opts)) }, false, true},
		{"ensemble temperature", func(z z, k int, y y, w z) (c, r, error) { return as(calibrator.FitEnsemble(z, k, y, w, opts)) }, true, true},
		{"class temperature", func(z z, k int, y y, w z) (c, r, error) {
			return as(calibrator.FitClassTemperature(z, k, y, w, opts))
		}, false, true},
		{"dirichlet ODIR", func(z z, k int, y y, w z) (c, r, error) {
			return as(calibrator.FitDirichlet(z, k, y, w, calibrator.ODIR{}, opts))
		}, false, true},
		{"matrix", func(z z, k int, y y, w z) (c, r, error) {
			return as(calibrator.FitMatrix(z, k, y, w, calibrator.ODIR{}, opts))
		}, false, true},
		{"temperature by SB-ECE", func(z z, k int, y y, w z) (c, r, error) {
			return as(calibrator.FitTemperatureSBECE(z, k, y, w, opts))
		}, true, true},
	}
}

// hostile are rows of four classes at the edge of what Apply must take.
var hostile = [][]float64{
	{80, -80, 0, 1}, {-80, -80, -80, -80}, {80, 80, 80, 80}, {0, 0, 0, 0}, {1, 1, 0, 0}, {80, 80, -80, -80},
	{1, 2, 3, 4}, {1, 2, 3, 4}, {-80, 80, -80, 80}, {1e-300, 0, -1e-300, 0}, {0, math.Inf(-1), 1, 2},
}

func TestEveryMethodConforms(t *testing.T) {
	z, y := synthetic(400, 4, 2, 7)
	for _, m := range methods() {
		c, r, err := m.fit(z, 4, y, nil)
		if err != nil || !r.Converged {
			t.Errorf("%s: %+v, %v", m.name, r, err)
			continue
		}
		checkApply(t, m, c, z)
		checkRoundTrip(t, m.name, c)
	}
}

func checkApply(t *testing.T, m method, c calibrator.Calibrator, z []float64) {
	t.Helper()
	rows := append([][]float64(nil), hostile...)
	for i := 0; i < len(z); i += 4 {
		rows = append(rows, z[i:i+4])
	}
	p := make([]float64, 4)
	for _, row := range rows {
		c.Apply(p, row)
		var sum float64
		for _, v := range p {
			sum += v
			if !(v >= 0 && v <= 1) {
				t.Fatalf("%s %v: p %v", m.name, row, p)
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("%s %v: Σp - 1 = %g", m.name, row, sum-1)
		}
		for k := range p {
			for l := range p {
				if m.keep && row[k] > row[l] && p[k] < p[l] {
					t.Errorf("%s %v: p %v has another order", m.name, row, p)
				}
			}
		}
		alias := append([]float64(nil), row...)
		if c.Apply(alias, alias); !reflect.DeepEqual(alias, p) {
			t.Errorf("%s %v: aliased %v, apart %v", m.name, row, alias, p)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		c.Apply(p, []float64{0, bad, 1, 2})
		for _, v := range p {
			if !math.IsNaN(v) {
				t.Errorf("%s: %g gave %v", m.name, bad, p)
				break
			}
		}
	}
}

func checkRoundTrip(t *testing.T, name string, c calibrator.Calibrator) {
	t.Helper()
	text, err := calibrator.Encode(c)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	back, err := calibrator.Decode(text)
	if err != nil || !reflect.DeepEqual(back, c) { // equal parameters bit for bit, so equal Apply
		t.Errorf("%s: got %v, %v, want %v", name, back, err, c)
		return
	}
	p, q := make([]float64, 4), make([]float64, 4)
	for _, row := range hostile {
		c.Apply(p, row)
		back.Apply(q, row)
		for k := range p {
			if math.Float64bits(p[k]) != math.Float64bits(q[k]) {
				t.Errorf("%s %v: got %v, want %v", name, row, q, p)
			}
		}
	}
}

// TestAwkwardFits holds that a fit ends with an error or a warning, and never with a calibrator that is not finite.
func TestAwkwardFits(t *testing.T) {
	base, labels := synthetic(60, 4, 2, 9)
	right, wrong, one := make([]int32, 60), make([]int32, 60), make([]int32, 60)
	same := make([]float64, 240)
	for i := range right {
		row := base[4*i : 4*i+4]
		for k := range row {
			if row[k] > row[right[i]] {
				right[i] = int32(k)
			}
			same[4*i+k] = float64(k)
		}
		wrong[i] = (right[i] + 1) % 4
	}
	far := make([]float64, 240)
	for i := range far {
		far[i] = 80 * math.Copysign(1, base[i])
	}
	nan := append([]float64(nil), base...)
	nan[17] = math.NaN()
	cases := map[string]struct {
		z    []float64
		y    []int32
		want string // warn: error or warning, error: error, fine: neither needed
	}{
		"one row":        {base[:4], labels[:1], "warn"},
		"no row":         {nil, nil, "error"},
		"one class":      {base, one, "warn"},
		"all right":      {base, right, "warn"},
		"all wrong":      {base, wrong, "warn"},
		"identical rows": {same, labels, "fine"},
		"|z| = 80":       {far, labels, "fine"},
		"NaN":            {nan, labels, "error"},
	}
	for _, m := range methods() {
		for name, c := range cases {
			got, r, err := m.fit(c.z, 4, c.y, nil)
			if c.want == "error" && err == nil || c.want == "warn" && err == nil && len(r.Warnings) == 0 {
				t.Errorf("%s, %s: got %+v, %v, want %s", m.name, name, r, err, c.want)
			}
			if err != nil {
				if c.want == "fine" {
					t.Errorf("%s, %s: %v", m.name, name, err)
				}
				continue
			}
			if math.IsNaN(r.NLLAfter) || math.IsInf(r.NLLAfter, 0) {
				t.Errorf("%s, %s: NLL %g", m.name, name, r.NLLAfter)
			}
			checkApply(t, m, got, nil)
		}
	}
}

// score is the accuracy, NLL and ECE (15 bins, top label) of c on the rows.
func score(c calibrator.Calibrator, z []float64, k int, y []int32) (accuracy, nll, ece float64) {
	conf, right := make([]float64, len(y)), make([]bool, len(y))
	p := make([]float64, k)
	for i, yi := range y {
		c.Apply(p, z[i*k:(i+1)*k])
		a := 0
		for j, v := range p {
			if v > p[a] {
				a = j
			}
		}
		conf[i], right[i] = p[a], a == int(yi)
		if right[i] {
			accuracy++
		}
		nll -= math.Log(max(p[yi], math.SmallestNonzeroFloat64))
	}
	n := float64(len(y))
	return accuracy / n, nll / n, metric.ECE(metric.EqualWidth(conf, right, nil, 15))
}

func TestRealLogits(t *testing.T) {
	for _, set := range []struct {
		file, scores string
		k            int
	}{
		{"c10jpeg_resnet_logits.npz", "resnet20", 10},
		{"c100_chenyaofo_logits.npz", "resnet56", 100},
	} {
		if testing.Short() && set.k > 10 {
			continue // seconds
		}
		s, y := readScores(t, set.file, set.scores, "test_labels")
		n := len(y)
		z := make([]float64, n*set.k)
		for i := range z {
			z[i] = float64(s[i])
		}
		h := n / 2
		fitZ, fitY, testZ, testY := z[:h*set.k], y[:h], z[h*set.k:], y[h:n]
		acc0, nll0, ece0 := score(calibrator.Identity{}, testZ, set.k, testY)
		t.Logf("%-14s %-24s accuracy %.4f NLL %.4f ECE %.4f", set.scores, "identity", acc0, nll0, ece0)
		for _, m := range methods() {
			if set.k > 10 && strings.Contains("dirichlet ODIR, matrix", m.name) {
				continue // K² parameters: minutes
			}
			c, r, err := m.fit(fitZ, set.k, fitY, nil)
			if err != nil {
				t.Errorf("%s: %v", m.name, err)
				continue
			}
			acc, nll, ece := score(c, testZ, set.k, testY)
			t.Logf("%-14s %-24s accuracy %.4f NLL %.4f ECE %.4f, %d evaluations %v", set.scores, m.name, acc, nll, ece, r.Iterations, r.Warnings)
			if ece >= ece0/2 {
				t.Errorf("%s: ECE %.4f, identity %.4f", m.name, ece, ece0)
			}
			if m.nll && nll >= nll0 {
				t.Errorf("%s: NLL %.4f, identity %.4f", m.name, nll, nll0)
			}
			if m.keep && math.Abs(acc-acc0) > 0 {
				t.Errorf("%s: accuracy %g, identity %g", m.name, acc, acc0)
			}
		}
	}
}
