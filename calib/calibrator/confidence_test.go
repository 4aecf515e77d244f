package calibrator

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// confidences returns n confidences with many ties, outcomes that follow truth, and weights.
func confidences(n int, seed uint64, truth func(c float64) float64) (c []float64, right []bool, w []float64) {
	rng := rand.New(rand.NewPCG(seed, 6))
	c, right, w = make([]float64, n), make([]bool, n), make([]float64, n)
	for i := range c {
		c[i] = 1 / (1 + math.Exp(-4*rng.NormFloat64()))
		if i%3 == 0 {
			c[i] = math.Round(40*c[i]) / 40 // 0 and 1 are among them
		}
		right[i], w[i] = rng.Float64() < truth(c[i]), float64(rng.IntN(4))
	}
	return c, right, w
}

func TestGroupsAgainstMaps(t *testing.T) {
	c, right, w := confidences(5000, 1, func(c float64) float64 { return c })
	c[7] = math.Copysign(0, -1)
	for _, w := range [][]float64{nil, w} {
		want := map[float64]group{}
		o := outcomes{c, right, w}
		for i, v := range c {
			g := want[v]
			g.c, g.w = v+0, g.w+o.weight(i)
			if right[i] {
				g.hits += o.weight(i)
			}
			want[v] = g
		}
		got := o.groups()
		ascending := func(a, b group) int { return int(math.Copysign(1, a.c-b.c)) }
		if len(got) != len(want) || !slices.IsSortedFunc(got, ascending) {
			t.Fatalf("%d groups, want %d in ascending order", len(got), len(want))
		}
		for _, g := range got {
			if g != want[g.c] {
				t.Errorf("got %+v, want %+v", g, want[g.c])
			}
		}
	}
}

// slowIsotonic pools any neighbours that are out of order until there are none.
func slowIsotonic(groups []group) map[float64]float64 {
	type run struct {
		c       []float64
		hits, w float64
	}
	runs := make([]run, len(groups))
	for i, g := range groups {
		runs[i] = run{[]float64{g.c}, g.hits, g.w}
	}
	for again := true; again; {
		again = false
		for i := 0; i+1 < len(runs); i++ {
			a, b := runs[i], runs[i+1]
			if a.hits*b.w > b.hits*a.w {
				runs[i] = run{append(a.c, b.c...), a.hits + b.hits, a.w + b.w}
				runs = slices.Delete(runs, i+1, i+2)
				again = true
			}
		}
	}
	out := map[float64]float64{}
	for _, r := range runs {
		for _, c := range r.c {
			out[c] = r.hits / r.w
		}
	}
	return out
}

func TestIsotonicConfidenceAgainstPooling(t *testing.T) {
	for seed := range uint64(20) {
		c, right, w := confidences(200, seed, func(c float64) float64 { return 0.3 + 0.4*math.Abs(c-0.4) })
		for _, w := range [][]float64{nil, w} {
			f, r, err := FitIsotonicConfidence(c, right, w)
			if err != nil {
				t.Fatal(err)
			}
			o, _, _ := newOutcomes("test", c, right, w)
			for v, want := range slowIsotonic(o.groups()) {
				if got := f.Map(v); math.Abs(got-want) > 1e-12 {
					t.Fatalf("Map(%g) = %g, want %g", v, got, want)
				}
			}
			if !(r.NLLAfter < r.NLLBefore) || r.Rows != len(o.c) {
				t.Errorf("report %+v", r)
			}
		}
	}
}

// TestConfidenceFitsAreTheLogitFits holds that a fit on confidences is the fit on two-class logits.
func TestConfidenceFitsAreTheLogitFits(t *testing.T) {
	c, right, w := confidences(600, 3, func(c float64) float64 { return 0.2 + 0.6*c })
	z, y := make([]float64, 2*len(c)), make([]int32, len(c))
	for i := range c {
		z[2*i] = logOdds(0.5 + c[i]/2)
		if !right[i] {
			y[i] = 1
		}
	}
	s, err := newSample("test", NewData(z, 2, y, w), Options{})
	if err != nil {
		t.Fatal(err)
	}
	top, hit := s.top()
	same := func(a, b Scalar, err1, err2 error, rows int) {
		t.Helper()
		if err1 != nil || err2 != nil || rows != s.n {
			t.Fatal(err1, err2, rows)
		}
		for v := range 1001 {
			if got, want := a.Map(float64(v)/1000),
				b.Map(float64(v)/1000); math.Float64bits(got) != math.Float64bits(want) {
				t.Fatalf("%s: Map(%d/1000) = %g on confidences, %g on logits", a.Method(), v, got, want)
			}
		}
	}
	iso, r, err := FitIsotonicConfidence(top, hit, s.w)
	iso2, _, err2 := FitIsotonic(NewData(z, 2, y, w), Options{})
	same(iso, iso2, err, err2, r.Rows)
	platt, r, err := FitPlattConfidence(top, hit, s.w)
	platt2, _, err2 := FitPlatt(NewData(z, 2, y, w), Options{})
	same(platt, platt2, err, err2, r.Rows)
}

func TestConfidenceErrors(t *testing.T) {
	yes := []bool{true, false}
	for name, f := range map[string]func() error{
		"NaN":    func() error { _, _, err := FitIsotonicConfidence([]float64{math.NaN(), 0}, yes, nil); return err },
		"above":  func() error { _, _, err := FitPlattConfidence([]float64{0.5, 1.01}, yes, nil); return err },
		"below":  func() error { _, _, err := FitPlattConfidence([]float64{0.5, -1e-9}, yes, nil); return err },
		"none":   func() error { _, _, err := FitIsotonicConfidence(nil, nil, nil); return err },
		"length": func() error { _, _, err := FitIsotonicConfidence([]float64{1}, yes, nil); return err },
		"weight": func() error {
			_, _, err := FitIsotonicConfidence([]float64{1, 1}, yes,
				[]float64{1, -1})
			return err
		},
		"zero": func() error {
			_, _, err := FitIsotonicConfidence([]float64{1, 1}, yes,
				[]float64{0, 0})
			return err
		},
	} {
		if f() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	one := []float64{1, 1}
	if _, r, err := FitPlattConfidence(one, []bool{true, true}, nil); err != nil || len(r.Warnings) == 0 ||
		r.Classes != 1 {
		t.Errorf("all right: %+v, %v", r, err)
	}
}

// TestLogisticIsTheMinimum checks value, gradient and Hessian by differences, and that the gradient ends at 0, where
// the optimum is far away and where the coefficients are tied, too.
func TestLogisticIsTheMinimum(t *testing.T) {
	c, right, w := confidences(400, 8, func(c float64) float64 { return 0.2 + 0.6*c*c })
	f := logistic{w: w}
	for i, v := range c {
		f.x, f.x2, f.t = append(f.x, lnC(v)), append(f.x2, -lnC(1-v)), append(f.t, 0)
		if right[i] {
			f.t[i] = 1
		}
	}
	th := [3]float64{0.4, 0.7, -0.3}
	at := f.at(th)
	const h = 1e-5
	for j := range th {
		up, down := th, th
		up[j] += h
		down[j] -= h
		a, b := f.at(up), f.at(down)
		if want := (a.value - b.value) / (2 * h); math.Abs(at.grad[j]-want) > 1e-8 {
			t.Errorf("gradient %d: got %g, want %g", j, at.grad[j], want)
		}
		for l := range j + 1 {
			if want := (a.grad[l] - b.grad[l]) / (2 * h); math.Abs(at.hess[j][l]-want) > 1e-7 {
				t.Errorf("Hessian %d, %d: got %g, want %g", j, l, at.hess[j][l], want)
			}
		}
	}
	for name, keep := range map[string][2]bool{"both": {true, true}, "a": {true, false}, "b": {false, true},
		"neither": {}} {
		f.keep = keep
		got, _, ok := f.fit([3]float64{})
		end := f.at(got)
		for j, free := range f.free() {
			if !ok || free && math.Abs(end.grad[j]) > 1e-9 || !free && got[j] != 0 {
				t.Errorf("%s: θ %v, gradient %v, converged %v", name, got, end.grad, ok)
			}
		}
	}
	far := logistic{x: f.x, x2: f.x2, t: make([]float64, len(f.t)), keep: [2]bool{true, true}}
	tied := logistic{x: []float64{2, 2, 2}, x2: []float64{1, 1, 1}, t: []float64{1, 0, 1}, keep: [2]bool{true, true}}
	for name, f := range map[string]logistic{"all wrong": far, "tied": tied} {
		got, _, ok := f.fit([3]float64{})
		if end := f.at(got); !ok || math.Abs(end.grad[0])+math.Abs(end.grad[1])+math.Abs(end.grad[2]) > 1e-7 {
			t.Errorf("%s: θ %v, gradient %v, converged %v", name, got, end.grad, ok)
		}
	}
}

func BenchmarkConfidence(b *testing.B) {
	c, right, _ := confidences(1_000_000, 1, func(c float64) float64 { return 0.2 + 0.6*c })
	for name, f := range map[string]func() error{
		"isotonic": func() error { _, _, err := FitIsotonicConfidence(c, right, nil); return err },
		"platt":    func() error { _, _, err := FitPlattConfidence(c, right, nil); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestPlattOfSmallWeights: weights that are shares of 1 fit what rows of weight 1 do.
func TestPlattOfSmallWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	const n = 2000
	c, right, one, share := make([]float64, n), make([]bool, n), make([]float64, n), make([]float64, n)
	for i := range c {
		c[i], one[i], share[i] = .5+rng.Float64()/2, 1, 1./n
		right[i] = rng.Float64() < c[i]*c[i]
	}
	want, _, err := FitPlattConfidence(c, right, one)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := FitPlattConfidence(c, right, share)
	if err != nil || math.Abs(got.p.Slope-want.p.Slope) > 1e-6 || math.Abs(got.p.Intercept-want.p.Intercept) > 1e-6 {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
