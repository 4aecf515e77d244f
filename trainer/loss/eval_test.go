package loss

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestEvalRefuses(t *testing.T) {
	l := mustParse(t, "au")
	ok, inf := []float64{1, 2, 3, 4}, math.Inf(1)
	for _, c := range []struct {
		name string
		z    []float64
		b    Batch
		want string
	}{
		{"label", ok, Batch{N: 2, K: 2, Y: []int32{0, 2}}, "row 1: label 2, allowed 0..1"},
		{"negative label", ok, Batch{N: 2, K: 2, Y: []int32{-1, 1}}, "row 0: label -1"},
		{"NaN", []float64{1, 2, math.NaN(), 4}, Batch{N: 2, K: 2, Y: []int32{0, 1}}, "row 1, class 0: logit NaN"},
		{"NaN last", []float64{1, 2, 3, math.NaN()}, Batch{N: 2, K: 2, Y: []int32{0, 1}}, "row 1, class 1: logit NaN"},
		{"infinite", []float64{inf, 2, 3, 4}, Batch{N: 2, K: 2, Y: []int32{0, 1}}, "row 0, class 0: logit +Inf"},
		{"minus infinite", []float64{1, -inf, 3, 4}, Batch{N: 2, K: 2, Y: []int32{0, 1}}, "row 0, class 1: logit -Inf"},
		{"one class", ok, Batch{N: 4, K: 1, Y: make([]int32, 4)}, "4 rows and 1 classes"},
		{"no row", nil, Batch{N: 0, K: 2}, "0 rows"},
		{"empty CDF", ok, Batch{N: 2, K: 2, Y: []int32{0, 1}, CDF: []float64{0, 0}}, "CDF of 2 bins"},
		{"negative CDF", ok, Batch{N: 2, K: 2, Y: []int32{0, 1}, CDF: []float64{1, -1}}, "CDF bin 1: count -1"},
	} {
		if _, err := l.Eval(c.z, c.b, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// TestFloat32 compares the two entries: the same float64 computation, the gradient rounded once.
func TestFloat32(t *testing.T) {
	for _, c := range cases() {
		l := mustParse(t, c.text)
		for _, in := range inputs() {
			z32, z64 := make([]float32, len(in.z)), make([]float64, len(in.z))
			for i, v := range in.z {
				z32[i] = float32(v)
				z64[i] = float64(z32[i])
			}
			g32, g64 := make([]float32, len(in.z)), make([]float64, len(in.z))
			v32, err := l.Eval32(z32, c.batch(in), g32)
			if err != nil {
				t.Fatal(err)
			}
			v64, err := l.Eval(z64, c.batch(in), g64)
			if err != nil {
				t.Fatal(err)
			}
			if v32 != v64 {
				t.Errorf("%s, %s: float32 value %v, float64 %v", c.text, in.name, v32, v64)
			}
			for i := range g32 {
				if g32[i] != float32(g64[i]) {
					t.Fatalf("%s, %s: gradient %d: %v, want %v", c.text, in.name, i, g32[i], float32(g64[i]))
				}
			}
		}
	}
}

// TestPathsAgree: cross-entropy in one pass, detached au in two, terms by blocks of rows and all rows at once give the
// same bits: adding a term of weight 0 takes another path.
func TestPathsAgree(t *testing.T) {
	inputs := append(inputs(), randomInput(3, 700, 6, 2), randomInput(4, 5, 1100, 3))
	for _, c := range []struct{ text, other string }{
		{"ce", "ce + 0*squared"}, {"ce", "ce + 0*mdca"}, {"0.7*ce", "0.7*ce + 0*mdca"}, {"focal", "focal + 0*mdca"},
		{"0.5*squared + smoothing + 2*entropy", "0.5*squared + smoothing + 2*entropy + 0*mdca"},
		{"au", "au + 0*mdca"}, {"0.7*au{csf:margin,kappa:0.9}", "0.7*au{csf:margin,kappa:0.9} + 0*mdca"},
		{"3*au{csf:negent,normalise:true}", "3*au{csf:negent,normalise:true} + 0*mdca"},
	} {
		a, b := mustParse(t, c.text), mustParse(t, c.other)
		for _, in := range inputs {
			batch := Batch{N: in.n, K: in.k, Y: in.y}
			g1, g2 := make([]float64, len(in.z)), make([]float64, len(in.z))
			v1, err1 := a.Eval(in.z, batch, g1)
			v2, err2 := b.Eval(in.z, batch, g2)
			if err1 != nil || err2 != nil || v1 != v2 {
				t.Fatalf("%s and %s, %s: %v, %v; %v, %v", c.text, c.other, in.name, v1, err1, v2, err2)
			}
			for i := range g1 {
				if g1[i] != g2[i] {
					t.Fatalf("%s and %s, %s: gradient %d: %v and %v", c.text, c.other, in.name, i, g1[i], g2[i])
				}
			}
			if !slices.Equal(a.Top(), b.Top()) {
				t.Errorf("%s and %s, %s: top classes differ", c.text, c.other, in.name)
			}
		}
	}
}

// TestErrorsNameTheRow: in blocks too.
func TestErrorsNameTheRow(t *testing.T) {
	for _, text := range []string{"ce", "focal", "mdca", "au"} {
		in := randomInput(5, 900, 4, 2)
		in.z[4*777+2] = math.Inf(-1)
		_, err := mustParse(t, text).Eval(in.z, Batch{N: in.n, K: in.k, Y: in.y}, nil)
		if err == nil || !strings.Contains(err.Error(), "row 777, class 2") {
			t.Errorf("%s: error %v, want one with row 777, class 2", text, err)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	big, small := randomInput(1, 20, 6, 2), randomInput(2, 11, 6, 2)
	for _, c := range cases() {
		l := mustParse(t, c.text)
		grad := make([]float32, len(big.z))
		z := make([]float32, len(big.z))
		bigBatch, smallBatch := c.batch(big), c.batch(small)
		run := func() {
			if _, err := l.Eval32(z, bigBatch, grad); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Eval32(z[:len(small.z)], smallBatch, grad[:len(small.z)]); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(5, run); n != 0 {
			t.Errorf("%s: %v allocations a batch, want 0", c.text, n)
		}
	}
}

// TestAfterOtherBatch: what an earlier batch left in the workspace has no effect.
func TestAfterOtherBatch(t *testing.T) {
	for _, c := range cases() {
		used := mustParse(t, c.text)
		for _, in := range inputs() {
			g1, g2 := make([]float64, len(in.z)), make([]float64, len(in.z))
			v1, err1 := used.Eval(in.z, c.batch(in), g1)
			fresh := mustParse(t, c.text)
			v2, err2 := fresh.Eval(in.z, c.batch(in), g2)
			if err1 != nil || err2 != nil || v1 != v2 {
				t.Fatalf("%s, %s: %v, %v; %v, %v", c.text, in.name, v1, err1, v2, err2)
			}
			for i := range g1 {
				if g1[i] != g2[i] {
					t.Fatalf("%s, %s: gradient %d: %v, fresh %v", c.text, in.name, i, g1[i], g2[i])
				}
			}
		}
	}
}

// TestCertainRowsKeepPrecision: where p_y is all but 1, loss and gradient are e⁻⁶⁰ and not 0.
func TestCertainRowsKeepPrecision(t *testing.T) {
	tiny := math.Exp(-60)
	l, grad := mustParse(t, "ce"), make([]float64, 2)
	v, err := l.Eval([]float64{80, 20}, Batch{N: 1, K: 2, Y: []int32{0}}, grad)
	near := func(got, want float64) bool { return math.Abs(got/want-1) <= 1e-12 }
	if err != nil || !near(v, tiny) || !near(grad[0], -tiny) || !near(grad[1], tiny) {
		t.Errorf("got %v %v, %v; want ±%v", v, grad, err, tiny)
	}
}

// TestTiesGoToTheLowestIndex: with tied maxima only the first takes the gradient of c.
func TestTiesGoToTheLowestIndex(t *testing.T) {
	for _, text := range []string{"mmce", "sbece", "crl", "mbls{margin:0.5,lambda:3}", "acls{margin:0.5}"} {
		l, grad := mustParse(t, text), make([]float64, 8)
		z := []float64{1, 0, 1, -1, 5, 0, 0, 0}
		if _, err := l.Eval(z, Batch{N: 2, K: 4, Y: []int32{1, 0}}, grad); err != nil {
			t.Fatal(err)
		}
		if grad[0] == grad[2] || math.Abs(grad[0]) <= math.Abs(grad[2]) {
			t.Errorf("%s: gradients of the tied classes 0 and 2: %v and %v, want the former larger",
				text, grad[0], grad[2])
		}
	}
}

// TestUniformRowsOfSoftAvUC: the limit t = 1 and no slope.
func TestUniformRowsOfSoftAvUC(t *testing.T) {
	for _, k := range []int{2, 3, 10, 1000} {
		l := mustParse(t, "savuc{temperature:0.3}")
		z, grad := make([]float64, 2*k), make([]float64, 2*k)
		v, err := l.Eval(z, Batch{N: 2, K: k, Y: []int32{0, 1}}, grad)
		// One row is right: n_AU = n_IU = tanh ln K.
		if err != nil || math.Abs(v-math.Log(2)) > 1e-12 {
			t.Errorf("K = %d: %v, %v; want ln 2", k, v, err)
		}
		for i, g := range grad {
			if math.Abs(g) > 1e-12 {
				t.Errorf("K = %d: gradient %d is %v, want 0", k, i, g)
			}
		}
	}
}

func BenchmarkEval32(b *testing.B) {
	in := randomInput(1, 128, 100, 2)
	z := make([]float32, len(in.z))
	for i, v := range in.z {
		z[i] = float32(v)
	}
	grad := make([]float32, len(z))
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			l := mustParse(b, name)
			for b.Loop() {
				if _, err := l.Eval32(z, Batch{N: in.n, K: in.k, Y: in.y}, grad); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
