package loss

import (
	"math"
	"slices"
	"testing"
)

// TestPrintedFormulas has S-AvUC (Eq. 15-16), CPC (the signs of the supplement's Eq. 5-6) and CRL on rows small enough
// to be worked out by hand, written as the papers print them.
func TestPrintedFormulas(t *testing.T) {
	ln := math.Log
	s := func(x float64) float64 { return ln(1 + math.Exp(x)) }
	// Two classes: p = 4/5 and right, p = 2/3 and wrong.
	pair := []float64{ln(4), 0, 0, ln(2)}
	entropy := func(p float64) float64 { return -p*ln(p) - (1-p)*ln(1-p) }
	h1, h2 := entropy(0.8), entropy(2.0/3)
	soft := func(h, kappa, temperature float64) float64 {
		e := h / ln(2)
		return 1 / (1 + math.Exp(-ln(e*(1-kappa)/((1-e)*kappa))/temperature))
	}
	savuc := func(kappa, temperature float64) float64 {
		t1, t2 := soft(h1, kappa, temperature), soft(h2, kappa, temperature)
		ac, au := (1-t1)*(1-math.Tanh(h1)), t1*math.Tanh(h1)
		ic, iu := (1-t2)*(1-math.Tanh(h2)), t2*math.Tanh(h2)
		return ln(1 + (au+ic)/(ac+iu))
	}
	three := []float64{2, 0, -1, 0.5}
	binary := (s(1) + s(-1) + s(-0.5) + s(0.5) + s(-1.5) + s(1.5)) / 2
	for _, c := range []struct {
		text    string
		z       []float64
		n, k    int
		y       []int32
		history []float64
		want    float64
	}{
		{"savuc", pair, 2, 2, []int32{0, 0}, nil, savuc(0.5, 1)},
		{"savuc{kappa:0.9,temperature:0.25}", pair, 2, 2, []int32{0, 0}, nil, savuc(0.9, 0.25)},
		{"cpc{lambda1:1,lambda2:0}", three, 1, 4, []int32{0}, nil, s(-2) + s(-3) + s(-1.5)},
		{"cpc{lambda1:0,lambda2:1}", three, 1, 4, []int32{0}, nil, 4 * binary},
		{"cpc{lambda1:0.3,lambda2:0.7}", three, 1, 4, []int32{0}, nil, 0.3*(s(-2)+s(-3)+s(-1.5)) + 2.8*binary},
		{"cpc{lambda1:1,lambda2:1,cals:true}", three, 1, 4, []int32{0}, nil,
			(s(-2)+s(-3)+s(-1.5))/3 + (binary+3*ln(2)/2)/6},
		// Row 0 was right oftener by .25 and is surer by .8 − 2/3: .25 − .1333 short. The pair is met twice, (0, 1) and
		// (1, 0).
		{"crl", pair, 2, 2, []int32{0, 0}, []float64{0.75, 0.5}, 0.25 - (0.8 - 2.0/3)},
		{"crl", pair, 2, 2, []int32{0, 0}, []float64{0.5, 0.75}, 0.25 + (0.8 - 2.0/3)},
		{"crl", pair, 2, 2, []int32{0, 0}, []float64{0.5, 0.5}, 0},
		{"crl", pair, 2, 2, []int32{0, 0}, []float64{0.6, 0.5}, 0}, // surer by more than the margin
		// Without a history, the batch's own hits: 1 and 0.
		{"crl", pair, 2, 2, []int32{0, 0}, nil, 1 - (0.8 - 2.0/3)},
	} {
		got, err := mustParse(t, c.text).Eval(c.z, Batch{N: c.n, K: c.k, Y: c.y, Correct: c.history}, nil)
		if err != nil || math.Abs(got-c.want) > 1e-14 {
			t.Errorf("%s: %.16g, %v; want %.16g", c.text, got, err, c.want)
		}
	}
}

// TestNoGradientWhereEquationsHaveNone has the predicted class of MbLS as printed, whose maximum is a constant, and the
// row of AU whose score is τ: five rows and κ = .5 put it at the middle one.
func TestNoGradientWhereEquationsHaveNone(t *testing.T) {
	grad := func(text string, z []float64, n, k int) []float64 {
		g := make([]float64, len(z))
		if _, err := mustParse(t, text).Eval(z, Batch{N: n, K: k, Y: make([]int32, n)}, g); err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := grad("mbls{lambda:0.5,margin:1,eq15:true}", []float64{3, 0, 2.5}, 1, 3)
	if want := []float64{0, -.5, 0}; !slices.Equal(g, want) {
		t.Errorf("mbls: gradient %v, want %v", g, want)
	}
	z := []float64{3, 0, 2, 0, 1, 0, .6, 0, .3, 0} // rows from the most to the least confident
	whole, part := grad("au{kappa:0.5,through:true}", z, 5, 2), grad("au{kappa:0.5}", z, 5, 2)
	if !slices.Equal(whole[:6], part[:6]) {
		t.Errorf("au: gradient %v from τ upwards, want %v, that of constant weights", whole[:6], part[:6])
	}
	if whole[6] == part[6] {
		t.Errorf("au: gradient %v below τ, want one with that of the weight", whole[6:])
	}
}

// TestUnitsOfSoftAvUC: as T falls, t becomes the threshold κ ln K on h in nats, and the loss the four sums of AvUC with
// a weight of 1 in place of c: the tanh is of nats in both, of h/ln K by option.
func TestUnitsOfSoftAvUC(t *testing.T) {
	const k = 10
	// Rows (s, 0, …, 0): surely right twice, unsurely right, surely wrong, unsurely wrong.
	sure, unsure := 6.0, 1.0
	z := make([]float64, 5*k)
	for i, s := range []float64{sure, sure, unsure, sure, unsure} {
		z[i*k] = s
	}
	y := []int32{0, 0, 0, 1, 1}
	entropy := func(s float64) float64 { // ln Σ e^z − Σ p z
		sum := math.Exp(s) + k - 1
		return math.Log(sum) - s*math.Exp(s)/sum
	}
	if a, b := entropy(sure)/math.Log(k), entropy(unsure)/math.Log(k); a > 0.1 || b < 0.9 {
		t.Fatalf("entropies %v and %v of ln K, want them far from the threshold", a, b)
	}
	for text, unit := range map[string]float64{
		"savuc{temperature:0.001}":           1,
		"savuc{temperature:0.001,tanh:unit}": math.Log(k),
	} {
		certain, uncertain := 1-math.Tanh(entropy(sure)/unit), math.Tanh(entropy(unsure)/unit)
		want := math.Log(1 + (uncertain+certain)/(2*certain+uncertain))
		got, err := mustParse(t, text).Eval(z, Batch{N: 5, K: k, Y: y}, nil)
		if err != nil || math.Abs(got-want) > 1e-14 {
			t.Errorf("%s: %.16g, %v; want %.16g", text, got, err, want)
		}
	}
}
