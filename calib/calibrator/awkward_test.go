package calibrator_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// awkward is input that fits have been known to diverge on, and what must come of it.
type awkward struct {
	z []float64
	k int
	y []int32
	w []float64
	// want: "error"; "warn", an error or a warning; "fine", neither needed, but no error.
	want  string
	probs bool
}

func awkwardInputs() map[string]awkward {
	const n, k = 60, 4
	base, labels := synthetic(n, k, 2, 9)
	right, wrong, one, outside := make([]int32, n), make([]int32, n), make([]int32, n), append([]int32(nil), labels...)
	same, twice, probs := make([]float64, n*k), make([]float64, n*k), make([]float64, n*k)
	for i := range right {
		row := base[k*i : k*i+k]
		right[i] = int32(argmax(row))
		wrong[i] = (right[i] + 1) % k
		for j := range k {
			same[k*i+j] = float64(j)
			twice[k*i+j] = base[k*(i%3)+j]
		}
		probs[k*i+int(right[i])] = 1 // and zeros
		if i%3 == 0 {
			copy(probs[k*i:], []float64{0.5, 0.5, 0, 0})
		}
	}
	outside[7] = k
	each := func(f func(v float64) float64) []float64 {
		out := make([]float64, len(base))
		for i, v := range base {
			out[i] = f(v)
		}
		return out
	}
	far := each(func(v float64) float64 { return 80 * math.Copysign(1, v) })
	nan, inf := append([]float64(nil), base...), append([]float64(nil), base...)
	nan[17], inf[17] = math.NaN(), math.Inf(1)
	zero, negative, some := make([]float64, n), make([]float64, n), make([]float64, n)
	negative[3], some[5], some[9] = -1, 1, 2
	return map[string]awkward{
		"no row":             {nil, k, nil, nil, "error", false},
		"one row":            {base[:k], k, labels[:1], nil, "warn", false},
		"two rows":           {base[:2*k], k, labels[:2], nil, "warn", false},
		"three rows":         {base[:3*k], k, labels[:3], nil, "", false},
		"one class":          {base, k, one, nil, "warn", false},
		"all right":          {base, k, right, nil, "warn", false},
		"all wrong":          {base, k, wrong, nil, "warn", false},
		"identical rows":     {same, k, labels, nil, "fine", false},
		"equal scores":       {make([]float64, n*k), k, labels, nil, "fine", false},
		"duplicate rows":     {twice, k, labels, nil, "fine", false},
		"|z| = 80":           {far, k, labels, nil, "fine", false},
		"|z| = 80, right":    {each(func(v float64) float64 { return 40 * v }), k, right, nil, "warn", false},
		"tiny scores":        {each(func(v float64) float64 { return 1e-300 * v }), k, labels, nil, "fine", false},
		"large scores":       {each(func(v float64) float64 { return 1e4 * v }), k, labels, nil, "", false},
		"huge scores":        {each(func(v float64) float64 { return 1e305 * v }), k, labels, nil, "", false},
		"zero probabilities": {probs, k, labels, nil, "", true},
		"no distribution":    {base, k, labels, nil, "error", true},
		"NaN":                {nan, k, labels, nil, "error", false},
		"infinity":           {inf, k, labels, nil, "error", false},
		"label outside":      {base, k, outside, nil, "error", false},
		"no weight":          {base, k, labels, zero, "error", false},
		"negative weight":    {base, k, labels, negative, "error", false},
		"weight on two":      {base, k, labels, some, "warn", false},
		"two classes":        {base, 2, two(labels), nil, "fine", false},
		"one column":         {base, 1, make([]int32, n*k), nil, "error", false},
		"short labels":       {base, k, labels[:n-1], nil, "error", false},
		"short weights":      {base, k, labels, some[:n-1], "error", false},
	}
}

// two makes labels of twice as many rows of two classes.
func two(y []int32) []int32 {
	out := make([]int32, 0, 2*len(y))
	for _, v := range y {
		out = append(out, v%2, v/2)
	}
	return out
}

// TestAwkwardFits holds that every fit ends with an error or a finite calibrator, and says what makes it doubtful.
func TestAwkwardFits(t *testing.T) {
	for name, c := range awkwardInputs() {
		for _, m := range everyMethod() {
			got, r, err := calibrator.Fit(m.Name, calibrator.NewData(c.z, c.k, c.y, c.w),
				calibrator.Options{Probs: c.probs})
			switch {
			case err != nil && (c.want == "fine" || got != nil):
				t.Errorf("%s, %s: %v, %v", m.Name, name, got, err)
			case err == nil && c.want == "error", err == nil && c.want == "warn" && len(r.Warnings) == 0:
				t.Errorf("%s, %s: got %+v, want %s", m.Name, name, r, c.want)
			}
			if err != nil {
				base := strings.TrimSuffix(m.Name, calibrator.Suffix)
				if !strings.HasPrefix(err.Error(), "fit ") {
					t.Errorf("%s, %s: error %q does not say what was fitted (%s)", m.Name, name, err, base)
				}
				continue
			}
			if math.IsNaN(r.NLLAfter) || math.IsInf(r.NLLAfter, 0) || math.IsNaN(r.NLLBefore) {
				t.Errorf("%s, %s: NLL %g, before %g", m.Name, name, r.NLLAfter, r.NLLBefore)
			}
			if d := got.Describe(); strings.Contains(d, "NaN") || strings.Contains(d, "Inf") {
				t.Errorf("%s, %s: %s", m.Name, name, d)
			}
			if c.k == 4 {
				checkApply(t, m, got, hostile)
			}
		}
	}
}

// TestBoundsAreReported holds that temperatures that end on a bound say so, in the flag and in words.
func TestBoundsAreReported(t *testing.T) {
	z, _ := synthetic(60, 4, 2, 9)
	right := make([]int32, 60)
	for i := range right {
		right[i] = int32(argmax(z[4*i : 4*i+4]))
	}
	for _, name := range []string{"temperature", "ensemble_temperature", "class_temperature",
		"parameterised_temperature", "temperature+cls"} {
		_, r, err := calibrator.Fit(name, calibrator.NewData(z, 4, right, nil), opts)
		if err != nil || !r.OnBound || !strings.Contains(strings.Join(r.Warnings, "; "), "a bound") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestTypesAndFormsAgree holds that float32 and float64 of the same values, and logits and their probabilities, give
// the same calibrated rows.
func TestTypesAndFormsAgree(t *testing.T) {
	z, y := synthetic(300, 4, 2, 12)
	z32, probs := make([]float32, len(z)), make([]float64, len(z))
	for i := range z {
		z32[i] = float32(z[i])
		z[i] = float64(z32[i])
	}
	if err := calibrator.ApplyRows(calibrator.Identity{}, probs, z, 4, false); err != nil {
		t.Fatal(err)
	}
	applyTo := func(c calibrator.Calibrator, z []float64) []float64 {
		p := make([]float64, len(z))
		if err := calibrator.ApplyRows(c, p, z, 4, false); err != nil {
			t.Fatal(err)
		}
		return p
	}
	apply := func(c calibrator.Calibrator) []float64 { return applyTo(c, z) }
	raised := make([]float64, len(z))
	for i, v := range z {
		raised[i] = v + 1
	}
	for _, m := range everyMethod() {
		a, _, err := calibrator.Fit(m.Name, calibrator.NewData(z, 4, y, nil), opts)
		b, _, err32 := calibrator.Fit(m.Name, calibrator.NewData(z32, 4, y, nil), opts)
		if err != nil || err32 != nil {
			t.Errorf("%s: %v, %v", m.Name, err, err32)
			continue
		}
		if pa, pb := apply(a), apply(b); !sameBits(pa, pb) && furthest(pa, pb) > 1e-6 {
			t.Errorf("%s: float32 differs by %g", m.Name, furthest(pa, pb))
		}
		if higher := applyTo(a, raised); furthest(apply(a), higher) > 1e-6 {
			// It sees a constant that is added to a row, and probabilities do not tell which was. Those that keep the
			// class, or map its confidence, must not, nor what is fitted to log-probabilities.
			if m.KeepsArgmax || m.TopLabel || strings.HasPrefix(m.Name, "dirichlet") {
				t.Errorf("%s: a constant added to a row changes it by %g", m.Name, furthest(apply(a), higher))
			}
			continue
		}
		c, _, err := calibrator.Fit(m.Name, calibrator.NewData(probs, 4, y, nil), calibrator.Options{Probs: true})
		if err != nil {
			t.Errorf("%s of probabilities: %v", m.Name, err)
			continue
		}
		p := make([]float64, len(z))
		if err := calibrator.ApplyRows(c, p, probs, 4, true); err != nil {
			t.Fatal(err)
		}
		// Optimisers stop where rounding of the logarithms leads them.
		const tol = 1e-4
		if d := furthest(apply(a), p); d > tol {
			t.Errorf("%s: fitted to probabilities and to the logits that they are of, it differs by %g", m.Name, d)
		}
	}
}

func furthest(a, b []float64) (d float64) {
	for i := range a {
		d = max(d, math.Abs(a[i]-b[i]))
	}
	return d
}

// TestClassesAreKept holds the methods that keep the argmax or the ranking to it on random rows of several K, with ties
// and near ties.
func TestClassesAreKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 7))
	for _, k := range []int{2, 3, 30} {
		z, y := synthetic(300, k, 3, 15)
		rows := make([]float64, 2000*k)
		for i := range rows {
			rows[i] = math.Exp(6*rng.Float64()-3) * rng.NormFloat64()
			switch rng.IntN(6) {
			case 0:
				rows[i] = math.Round(rows[i])
			case 1:
				rows[i] = rows[max(0, i-1)] + 1e-7*rng.NormFloat64()
			}
		}
		p := make([]float64, len(rows))
		for _, m := range everyMethod() {
			if !m.KeepsArgmax {
				continue
			}
			c, _, err := calibrator.Fit(m.Name, calibrator.NewData(z, k, y, nil), opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := calibrator.ApplyRows(c, p, rows, k, false); err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(rows); i += k {
				from, to := rows[i:i+k], p[i:i+k]
				if to[argmax(from)] < to[argmax(to)] {
					t.Fatalf("%s, K %d: %v became %v", m.Name, k, from, to)
				}
				for a := range from {
					for b := range from {
						if m.KeepsRanking && from[a] > from[b] && to[a] < to[b] {
							t.Fatalf("%s, K %d: classes %d and %d of %v became %v", m.Name, k, a, b, from, to)
						}
					}
				}
			}
		}
	}
}

// TestNLLBeforeHasNoFloor: what a report says of the rows as they were is by log-sum-exp with every method, also where
// the label's probability underflows.
func TestNLLBeforeHasNoFloor(t *testing.T) {
	const n, k, gap = 90, 3, 2000
	z, y := make([]float64, n*k), make([]int32, n)
	for i := range n {
		y[i] = int32(i % k)
		z[i*k+int(y[i])] = gap
		if i%5 == 0 {
			y[i] = (y[i] + 1) % k
		}
	}
	for _, m := range calibrator.Methods() {
		_, report, err := calibrator.Fit(m.Name, calibrator.NewData(z, k, y, nil), calibrator.Options{})
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if want := gap / 5.0; math.Abs(report.NLLBefore-want) > 1e-9 {
			t.Errorf("%s: NLL before the fit %v, want %v", m.Name, report.NLLBefore, want)
		}
	}
}
