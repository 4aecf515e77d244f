package loss

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func refNLL(z, _ []float64, y int) float64 { return nllOf(z, y) }

// streamCounts are counts as a stream would give them: another number of bins, not whole.
var streamCounts = []float64{0, 1.5, 2, 0, 7, 3, 11, 20, 31, 90}

// history is some correctness history, with equal neighbours.
func history(n int) []float64 {
	h := make([]float64, n)
	for i := range h {
		h[i] = float64(i*7%5/2) / 2
	}
	return h
}

type testCase struct {
	text string
	ref  func(n int) reference
	// cdf and history are passed in the batch.
	cdf     []float64
	history bool
}

func always(r reference) func(int) reference { return func(int) reference { return r } }

func cases() []testCase {
	row := func(f func(z, at []float64, y int) float64) func(int) reference { return always(perRow(f)) }
	list := []testCase{
		{text: "ce", ref: row(refNLL)},
		{text: "squared", ref: row(refSquared)},
		{text: "smoothing{epsilon:0.1}", ref: row(refSmoothing(0.1))},
		{text: "smoothing", ref: row(refSmoothing(0.05))},
		{text: "focal", ref: row(refFocal(3))},
		{text: "focal{gamma:1.5}", ref: row(refFocal(1.5))},
		{text: "focal{gamma:0}", ref: row(refNLL)},
		{text: "flsd53", ref: row(refFLSD)},
		{text: "inverse_focal", ref: row(refInverse(3))},
		{text: "inverse_focal{force:true,gamma:5}", ref: row(refInverse(5))},
		{text: "dual_focal", ref: row(refDual(5, "eq24"))},
		{text: "dual_focal{gamma:2,variant:released}", ref: row(refDual(2, "released"))},
		{text: "dual_focal{gamma:2,variant:eq25_26}", ref: row(refDual(2, "eq25_26"))},
		{text: "sbece", ref: always(refSBECE(15, 0.01, 2, false))},
		{text: "sbece{bins:10,temperature:0.05,norm:1}", ref: always(refSBECE(10, 0.05, 1, false))},
		{text: "sbece{variant:lb}", ref: always(refSBECE(15, 0.01, 2, true))},
		{text: "sbece{bins:7,temperature:0.001,norm:3,variant:lb}", ref: always(refSBECE(7, 0.001, 3, true))},
		{text: "avuc", ref: always(refAvUC(0.5, false))},
		{text: "avuc{kappa:1.2,stop:true}", ref: always(refAvUC(1.2, true))},
		{text: "savuc", ref: always(refSAvUC(0.5, 1, false))},
		{text: "savuc{kappa:0.3,temperature:0.2,tanh:unit}", ref: always(refSAvUC(0.3, 0.2, true))},
		{text: "mmce", ref: always(refMMCE(false))},
		{text: "mmce{root:true}", ref: always(refMMCE(true))},
		{text: "mbls{margin:2}", ref: row(refMbLS(0.1, 2, false))},
		{text: "mbls{lambda:0.3,margin:0.5,eq15:true}", ref: row(refMbLS(0.3, 0.5, true))},
		{text: "acls{margin:2}", ref: row(refACLS(0.1, 0.01, 2, false))},
		{text: "acls{margin:1,released:true}", ref: row(refACLS(0.1, 0.01, 1, true))},
		{text: "mdca", ref: always(refMDCA)},
		{text: "cpc", ref: row(refCPC(1, 1, false))},
		{text: "cpc{lambda1:0.5,lambda2:2,cals:true}", ref: row(refCPC(0.5, 2, true))},
		{text: "entropy", ref: row(func(z, _ []float64, _ int) float64 { return -entropyOf(z) })},
		{text: "kde", ref: always(refKDE(0.1, 1))},
		{text: "kde{bandwidth:0.3,norm:2}", ref: always(refKDE(0.3, 2))},
		{text: "kde_xe{lambda:0.2,bandwidth:0.2}", ref: always(perRow(refNLL).plus(0.2, refKDE(0.2, 1)))},
		{text: "classwise", ref: always(refClassWise(0, 1.5, false, refNLL))},
		{
			text: "classwise{alpha:0.4,beta:2,printed:true}(focal{gamma:2})",
			ref:  always(refClassWise(0.4, 2, true, refFocal(2))),
		},
		{
			text: "focal{gamma:2} + 0.5*mdca + 2*entropy",
			ref: always(perRow(refFocal(2)).plus(0.5, refMDCA).plus(-2,
				perRow(func(z, _ []float64, _ int) float64 { return entropyOf(z) }))),
		},
	}
	for _, csf := range []string{"msp", "margin", "negent"} {
		list = append(list, casesOf(csf)...)
	}
	return append(list, testCase{text: "aurc{csf:msp}(squared)", ref: always(refAURC("msp", refSquared))})
}

// casesOf are those of the losses that take a confidence score function.
func casesOf(csf string) []testCase {
	plain := refAU{csf: csf, nu: 0.1, kappa: 0.5, inner: refNLL}
	through := refAU{csf: csf, nu: 0.1, kappa: 0.7, through: true, inner: refNLL}
	stream := refAU{
		csf:       csf,
		nu:        0.03,
		kappa:     0.9,
		through:   true,
		normalise: true,
		counts:    streamCounts,
		inner:     refSquared,
	}
	return []testCase{
		{text: "aurc{csf:" + csf + "}", ref: always(refAURC(csf, refNLL))},
		{text: "crl{csf:" + csf + "}", ref: always(refCRL(csf, nil))},
		{text: "crl{csf:" + csf + "}", history: true, ref: func(n int) reference { return refCRL(csf, history(n)) }},
		{text: "au{csf:" + csf + "}", ref: always(plain.value)},
		{text: "au{csf:" + csf + ",kappa:0.7,through:true}", ref: always(through.value)},
		{
			text: "au{csf:" + csf + ",kappa:0.9,nu:0.03,through:true,normalise:true}(squared)",
			cdf:  streamCounts,
			ref:  always(stream.value),
		},
	}
}

type input struct {
	name string
	n, k int
	z    []float64
	y    []int32
	// smooth says that no two values tie, so that gradients are those of differences.
	smooth bool
}

func randomInput(seed uint64, n, k int, scale float64) input {
	rng := rand.New(rand.NewPCG(seed, 1))
	in := input{name: fmt.Sprintf("random %dx%d scale %g", n, k, scale), n: n, k: k, smooth: true}
	for range n * k {
		in.z = append(in.z, scale*rng.NormFloat64())
	}
	for i := range n {
		y := rng.IntN(k)
		if rng.Float64() < 0.6 {
			y = argmax(in.z[i*k : (i+1)*k])
		}
		in.y = append(in.y, int32(y))
	}
	return in
}

func (in input) each(v func(i, k int) float64) input {
	in.z = make([]float64, in.n*in.k)
	for i := range in.z {
		in.z[i] = v(i/in.k, i%in.k)
	}
	in.y = make([]int32, in.n)
	for i := range in.y {
		in.y[i] = int32(i % in.k)
	}
	return in
}

func inputs() []input {
	list := []input{
		randomInput(1, 9, 4, 1), randomInput(2, 14, 7, 2), randomInput(3, 17, 3, 0.3), randomInput(4, 5, 2, 1),
		randomInput(5, 1, 5, 1), randomInput(6, 13, 6, 5),
		input{name: "uniform rows", n: 6, k: 4}.each(func(int, int) float64 { return 0.25 }),
		input{name: "identical rows", smooth: true, n: 7, k: 3}.each(func(_, k int) float64 {
			return float64(k*k) / 3
		}),
		input{name: "tied maxima", n: 6, k: 5}.each(func(i, k int) float64 { return float64((k + i) / 2 % 2) }),
		input{name: "one uniform row", n: 1, k: 2}.each(func(int, int) float64 { return 0 }),
		input{name: "plus and minus 80", n: 8, k: 4}.each(func(i, k int) float64 {
			return []float64{80, -80}[(i/2+i*k)%2]
		}),
		input{name: "one class at 80", smooth: true, n: 8, k: 5}.each(func(i, k int) float64 {
			if k == i*3%5 {
				return 80
			}
			return -80
		}),
		input{name: "certain and right", smooth: true, n: 5, k: 3}.each(func(i, k int) float64 {
			if k == i%3 {
				return 40
			}
			return float64(-k)
		}),
		input{name: "certain and wrong", smooth: true, n: 4, k: 3}.each(func(i, k int) float64 {
			if k == (i+1)%3 {
				return 60
			}
			return float64(-k)
		}),
	}
	absent := randomInput(7, 12, 8, 2)
	absent.name = "one class only"
	for i := range absent.y {
		absent.y[i] = 3
	}
	return append(list, absent)
}

func (in input) matrix() (z [][]float64, y []int) {
	for i := range in.n {
		z = append(z, append([]float64(nil), in.z[i*in.k:(i+1)*in.k]...))
		y = append(y, int(in.y[i]))
	}
	return z, y
}

func (c testCase) batch(in input) Batch {
	b := Batch{N: in.n, K: in.k, Y: in.y, CDF: c.cdf}
	if c.history {
		b.Correct = history(in.n)
	}
	return b
}

func mustParse(t testing.TB, text string) *Loss {
	t.Helper()
	l, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// exact is the relative agreement of fast and slow sums of at most a few hundred terms.
const exact = 1e-11

func TestValuesMatchReference(t *testing.T) {
	for _, c := range cases() {
		l := mustParse(t, c.text)
		for _, in := range inputs() {
			z, y := in.matrix()
			if !in.smooth && uncertainReference(c.text) {
				continue
			}
			got, err := l.Eval(in.z, c.batch(in), nil)
			if err != nil {
				t.Fatalf("%s, %s: %v", c.text, in.name, err)
			}
			want := c.ref(in.n)(z, z, y)
			if !(math.Abs(got-want) <= exact*math.Max(1, math.Abs(want))) {
				t.Errorf("%s, %s: got %.15g, want %.15g", c.text, in.name, got, want)
			}
		}
	}
}

// uncertainReference says whether the plain formula is 0/0 or ∞ at hard inputs, which other tests cover.
func uncertainReference(text string) bool { return strings.HasPrefix(text, "savuc") }

// Steps and agreement of the central differences: truncation is step² times a third derivative of at most about
// 1/0.01², rounding 1e-16/step.
const (
	gradientStep = 2e-6
	gradientRel  = 1e-6
)

func TestGradientsMatchDifferences(t *testing.T) {
	for _, c := range cases() {
		l := mustParse(t, c.text)
		for _, in := range inputs() {
			if !in.smooth || in.name == "identical rows" && kinked(c.text) {
				continue
			}
			checkGradient(t, l, c, in)
		}
	}
}

// kinked says whether a loss has a kink where rows are identical, at which differences only converge with the step:
// |c_i − c_j| of mmce, and a logit exactly the margin below the largest.
func kinked(text string) bool {
	return strings.HasPrefix(text, "mmce") || text == "acls{margin:1,released:true}"
}

func checkGradient(t *testing.T, l *Loss, c testCase, in input) {
	t.Helper()
	grad := make([]float64, len(in.z))
	if _, err := l.Eval(in.z, c.batch(in), grad); err != nil {
		t.Fatal(err)
	}
	at, y := in.matrix()
	ref := c.ref(in.n)
	largest := 1e-3
	for _, g := range grad {
		largest = math.Max(largest, math.Abs(g))
	}
	z, _ := in.matrix()
	value := func(i, k int, v float64) float64 {
		z[i][k] = v
		defer func() { z[i][k] = at[i][k] }()
		return ref(z, at, y)
	}
	for i := range in.n {
		for k := range in.k {
			diff := func(h float64) float64 {
				return (value(i, k, at[i][k]+h) - value(i, k, at[i][k]-h)) / (2 * h)
			}
			// Richardson's step takes the h² term off.
			h := gradientStep * 100
			want := (4*diff(h/2) - diff(h)) / 3
			if got := grad[i*in.k+k]; !(math.Abs(got-want) <= gradientRel*largest) {
				t.Errorf("%s, %s: gradient of row %d, class %d: got %.12g, want %.12g",
					c.text, in.name, i, k, got, want)
				return
			}
		}
	}
}

func TestFiniteOnHardInputs(t *testing.T) {
	for _, c := range cases() {
		l := mustParse(t, c.text)
		for _, in := range inputs() {
			grad := make([]float64, len(in.z))
			v, err := l.Eval(in.z, c.batch(in), grad)
			if err != nil {
				t.Fatalf("%s, %s: %v", c.text, in.name, err)
			}
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s, %s: value %v", c.text, in.name, v)
			}
			var sums float64
			for i := range in.n {
				var sum, size float64
				for k, g := range grad[i*in.k : (i+1)*in.k] {
					if math.IsNaN(g) || math.IsInf(g, 0) {
						t.Fatalf("%s, %s: gradient of row %d, class %d: %v", c.text, in.name, i, k, g)
					}
					sum += g
					size += math.Abs(g)
				}
				if size > 0 {
					sums = math.Max(sums, math.Abs(sum)/math.Max(1, size))
				}
			}
			// Softmax does not see a constant added to a row. ACLS and MbLS as printed have detached parts.
			detached := strings.HasPrefix(c.text, "acls") || strings.Contains(c.text, "eq15:true")
			if !detached && sums > 1e-12 {
				t.Errorf("%s, %s: a row's gradient sums to %g, want 0", c.text, in.name, sums)
			}
		}
	}
}
