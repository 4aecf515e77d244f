package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// tol is what separates two orders of float64 summation over the K used here.
const tol = 1e-13

// reference is the textbook softmax of a row in 200-bit sums of float64 exponentials.
func reference(z []float64) (p []float64, lse, entropy, sumP2 float64) {
	top := z[0]
	for _, v := range z {
		top = max(top, v)
	}
	sum := new(big.Float).SetPrec(200)
	for _, v := range z {
		sum.Add(sum, big.NewFloat(math.Exp(v-top)))
	}
	s, _ := sum.Float64()
	lse = top + math.Log(s)
	for _, v := range z {
		pk := math.Exp(v-top) / s
		p = append(p, pk)
		sumP2 += pk * pk
		if pk > 0 {
			entropy -= pk * (v - lse)
		}
	}
	return p, lse, entropy, sumP2
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tol*max(1, math.Abs(want)) {
		t.Errorf("%s: got %.17g, want %.17g", what, got, want)
	}
}

func TestLogitsAgainstReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{1, 2, 3, 10, 100, 1000} {
		for _, scale := range []float64{0, 0.1, 3, 80} {
			z := make([]float64, k)
			for i := range z {
				z[i] = scale * (2*rng.Float64() - 1)
			}
			p := make([]float64, k)
			r, ok := Logits(z, p)
			if !ok {
				t.Fatalf("K=%d scale %g: refused", k, scale)
			}
			wp, lse, h, p2 := reference(z)
			for i := range p {
				near(t, "p", p[i], wp[i], tol)
			}
			near(t, "LSE", r.LSE, lse, tol)
			near(t, "entropy", r.Entropy, h, 10*tol)
			near(t, "sumP2", r.SumP2, p2, tol)
			if p[r.Arg] != r.Conf {
				t.Errorf("p[arg] = %g, conf = %g", p[r.Arg], r.Conf)
			}
		}
	}
}

func TestLogitsCertainRowKeepsItsEntropy(t *testing.T) {
	// One other class at e^-40: H = ln(1+x) + 40x/(1+x) with x = e^-40, far below the rounding of 1.
	p := make([]float64, 2)
	r, _ := Logits([]float64{40, 0}, p)
	x := math.Exp(-40)
	near(t, "entropy/x", r.Entropy/x, 41, 1e-12)
	if r.Conf != 1 {
		t.Errorf("conf: got %g, want 1", r.Conf)
	}
	near(t, "nll of the wrong class", NLL(r, []float64{40, 0}, 1, false), 40, tol)
}

func TestUniformRowIsExact(t *testing.T) {
	for k := 1; k <= 64; k++ {
		for _, v := range []float32{0, -3.25, 80, 3.4e38, -3.4e38} {
			z := make([]float32, k)
			for i := range z {
				z[i] = v
			}
			p := make([]float64, k)
			r, ok := Logits(z, p)
			if !ok || r.Conf != 1/float64(k) || r.Arg != 0 {
				t.Fatalf("K=%d z=%g: got ok %v conf %.17g arg %d", k, v, ok, r.Conf, r.Arg)
			}
			if k > 1 && (r.Second != r.Conf || r.Margin() != 0) {
				t.Errorf("K=%d: second %g, conf %g", k, r.Second, r.Conf)
			}
			near(t, "entropy", r.Entropy, math.Log(float64(k)), tol)
			near(t, "negent", NegEnt(r, k), map[bool]float64{true: 1, false: 0}[k == 1], tol)
		}
	}
}

func TestTiesGoToTheLowestIndex(t *testing.T) {
	p := make([]float64, 4)
	r, _ := Logits([]float32{-1, 2, 2, 0}, p)
	if r.Arg != 1 || r.Second != r.Conf {
		t.Errorf("logits: got arg %d second %g conf %g", r.Arg, r.Second, r.Conf)
	}
	r, ok := Probs([]float32{0.125, 0.375, 0.125, 0.375}, p)
	if !ok || r.Arg != 1 || r.Second != 0.375 || r.Margin() != 0 {
		t.Errorf("probs: got ok %v arg %d second %g", ok, r.Arg, r.Second)
	}
}

func TestHostileRowsAreRefused(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	p := make([]float64, 3)
	for _, z := range [][]float64{{}, {nan, 0, 0}, {0, 0, nan}, {0, inf, 0}, {-inf, 0, 0}, {inf, inf, inf}} {
		if _, ok := Logits(z, p); ok {
			t.Errorf("logits %v accepted", z)
		}
	}
	for _, q := range [][]float64{{}, {nan, .5, .5}, {-1e-9, .5, .5}, {1.0001, 0, 0}, {.3, .3, .3}, {.4, .4, .3},
		{0, 0, 0}, {inf, 0, 0}} {
		if _, ok := Probs(q, p); ok {
			t.Errorf("probs %v accepted", q)
		}
	}
}

func TestExtremeLogitsStayFinite(t *testing.T) {
	for _, z := range [][]float64{
		{80, -80, 0}, {3.4e38, -3.4e38, 0}, {math.MaxFloat64, -math.MaxFloat64, 0}, {-80, -80, -80},
		{1e300, 1e300, -1e300},
	} {
		p := make([]float64, 3)
		r, ok := Logits(z, p)
		sum := p[0] + p[1] + p[2]
		if !ok || math.Abs(sum-1) > tol {
			t.Fatalf("%v: ok %v, Σp = %g", z, ok, sum)
		}
		for _, v := range []float64{r.LSE, r.Entropy, r.SumP2, r.Conf, r.Second, NegEnt(r, 3), Brier(r, p[1])} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%v: not finite: %+v", z, r)
			}
		}
	}
}

func TestProbsAgreeWithLogits(t *testing.T) {
	z := []float64{1.5, -0.25, 3, 0.125, 2.75}
	p, q := make([]float64, 5), make([]float64, 5)
	a, _ := Logits(z, p)
	b, ok := Probs(p, q)
	if !ok || a.Arg != b.Arg || b.LSE != 0 {
		t.Fatalf("got ok %v arg %d LSE %g", ok, b.Arg, b.LSE)
	}
	near(t, "conf", b.Conf, a.Conf, tol)
	near(t, "second", b.Second, a.Second, tol)
	near(t, "entropy", b.Entropy, a.Entropy, tol)
	near(t, "sumP2", b.SumP2, a.SumP2, tol)
	for y := range z {
		near(t, "nll", NLL(b, p, y, true), NLL(a, z, y, false), tol)
	}
}

func TestProbsSum(t *testing.T) {
	p := make([]float64, 3)
	r, _ := Probs([]float64{0.4, 0.4, 0.2 + 0x1p-21}, p) // taken as it is
	if p[0] != 0.4 || r.LSE != 0 {
		t.Errorf("got p %v LSE %g, want p untouched", p, r.LSE)
	}
	q := []float64{0.5, 0.48, 0}
	r, ok := Probs(q, p)
	if !ok || p[2] != 0 {
		t.Fatalf("got ok %v p %v", ok, p)
	}
	near(t, "p0", p[0], 0.5/0.98, tol)
	near(t, "conf", r.Conf, 0.5/0.98, tol)
	near(t, "nll", NLL(r, q, 1, true), -math.Log(0.48/0.98), tol)
}

func TestNLLOfZeroProbability(t *testing.T) {
	p := make([]float64, 2)
	r, _ := Probs([]float32{1, 0}, p)
	near(t, "float32", NLL(r, []float32{1, 0}, 1, true), 149*math.Ln2, tol)
	near(t, "float64", NLL(r, []float64{1, 0}, 1, true), 1074*math.Ln2, tol)
	if got := NLL(r, []float32{1, 0}, 0, true); got != 0 {
		t.Errorf("nll of certainty: got %g, want 0", got)
	}
}

func TestBrierAgainstDefinition(t *testing.T) {
	z := []float32{0.3, -2, 1.7, 4}
	p := make([]float64, 4)
	r, _ := Logits(z, p)
	for y := range z {
		want := 0.0
		for k, v := range p {
			if k == y {
				v--
			}
			want += v * v
		}
		near(t, "brier", Brier(r, p[y]), want, tol)
	}
}

func TestNoAllocation(t *testing.T) {
	z, p := make([]float32, 100), make([]float64, 100)
	q := make([]float32, 100)
	q[3] = 1
	if n := testing.AllocsPerRun(100, func() {
		r, _ := Logits(z, p)
		_ = NLL(r, z, 3, false)
		r, _ = Probs(q, p)
		_ = NLL(r, q, 4, true)
	}); n != 0 {
		t.Errorf("got %g allocations, want 0", n)
	}
}

func BenchmarkLogits(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{10, 100} {
		z := make([]float32, 1024*k)
		for i := range z {
			z[i] = float32(4 * rng.NormFloat64())
		}
		p := make([]float64, k)
		b.Run(map[int]string{10: "K=10", 100: "K=100"}[k], func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				j := i % 1024
				Logits(z[j*k:(j+1)*k], p)
			}
		})
	}
}

func TestLogOfSubnormals(t *testing.T) {
	for e := -1074; e <= 0; e++ {
		near(t, "ln 2^e", Log(math.Ldexp(1, e)), float64(e)*math.Ln2, tol)
	}
	if !math.IsInf(Log(0), -1) || !math.IsNaN(Log(-1)) {
		t.Errorf("got Log(0) = %g, Log(-1) = %g", Log(0), Log(-1))
	}
}
