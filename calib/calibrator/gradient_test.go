package calibrator

import (
	"math"
	"math/rand/v2"
	"testing"
)

// small returns a weighted sample of n rows.
func small(t testing.TB, n, k int) *sample {
	t.Helper()
	rng := rand.New(rand.NewPCG(21, 1))
	z, y, w := make([]float64, n*k), make([]int32, n), make([]float64, n)
	for i := range y {
		y[i], w[i] = int32(rng.IntN(k)), 0.5+rng.Float64()
		for j := range k {
			z[i*k+j] = 2 * rng.NormFloat64()
		}
		z[i*k+int(y[i])] += 2
	}
	s, err := newSample("test", NewData(z, k, y, w), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// differenceStep is what difference goes to each side.
const differenceStep = 1e-5

// difference is ∂f/∂x_i at x by central differences.
func difference(f objective, x []float64, i int) float64 {
	skip, at := make([]float64, len(x)), x[i]
	defer func() { x[i] = at }()
	x[i] = at + differenceStep
	up := f(skip, x)
	x[i] = at - differenceStep
	return (up - f(skip, x)) / (2 * differenceStep)
}

// affineLoss is f as an objective.
func affineLoss(f *classAffine) objective {
	return func(grad, x []float64) float64 {
		at := &affinePoint{x: x, grad: grad, blocks: make([][3]float64, f.k)}
		f.eval(at)
		return at.value
	}
}

// TestGradients compares every objective's gradient with central differences.
func TestGradients(t *testing.T) {
	s := small(t, 40, 3)
	ts, _ := NewTemperature(2.5)
	for name, c := range map[string]struct {
		f objective
		n int
	}{
		"class affine": {affineLoss(&classAffine{sample: s, ridge: 0.1, u: make([]float64, 3)}), 6},
		"matrix":       {newMatrixFit(s, s.z).loss(ODIR{OffDiagonal: 0.3, Intercept: 0.2, Diagonal: 0.1}), 12},
		"mixture":      {s.mixtureLoss(s.parts(ts)), 3},
	} {
		rng := rand.New(rand.NewPCG(5, 5))
		x, grad := make([]float64, c.n), make([]float64, c.n)
		for i := range x {
			x[i] = 0.3 + 0.5*rng.NormFloat64()
		}
		c.f(grad, x)
		for i := range x {
			if want := difference(c.f, x, i); math.Abs(grad[i]-want) > 1e-7*(1+math.Abs(want)) {
				t.Errorf("%s, %d: got %.10g, differences %.10g", name, i, grad[i], want)
			}
		}
	}
}

// TestEnsembleAgainstGrid looks for a better mixture on the simplex.
func TestEnsembleAgainstGrid(t *testing.T) {
	s := small(t, 300, 4)
	c, r, err := FitEnsemble(NewData(s.z, 4, s.y, s.w), Options{})
	if err != nil || !r.Converged {
		t.Fatalf("%+v, %v", r, err)
	}
	const steps = 50
	for a := 0; a <= steps; a++ {
		for b := 0; a+b <= steps; b++ {
			w := []float64{float64(a) / steps, float64(b) / steps, float64(steps-a-b) / steps}
			if nll := s.nll(&Ensemble{p: ensembleParams{T: c.T(), Weights: w}}); nll < r.NLLAfter-gapEnds {
				t.Errorf("weights %v have NLL %.9f, fit %v %.9f", w, nll, c.Weights(), r.NLLAfter)
			}
		}
	}
}

// TestClassTemperatureIsTheMinimum steps from the fit along every axis; in 1/T the objective is convex.
func TestClassTemperatureIsTheMinimum(t *testing.T) {
	s := small(t, 300, 3)
	c, r, err := FitClassTemperature(NewData(s.z, 3, s.y, s.w), Options{})
	if err != nil || !r.Converged || r.OnBound {
		t.Fatalf("%+v, %v", r, err)
	}
	for k := range 3 {
		for _, by := range []float64{0.5, 0.99, 1.01, 2} {
			other := &ClassTemperature{p: classTemperatureParams{T: c.Temperatures()}}
			other.p.T[k] *= by
			if nll := s.nll(other); nll < r.NLLAfter {
				t.Errorf("class %d × %g: NLL %.9f, fit %.9f", k, by, nll, r.NLLAfter)
			}
		}
	}
}

// TestSBECEIsTheGlobalMinimum compares with a grid ten times as fine, and what the report says of other minima with it.
func TestSBECEIsTheGlobalMinimum(t *testing.T) {
	s := small(t, 200, 3)
	for _, set := range []SoftBins{{}, {Bins: 4, Temperature: 0.1, Norm: 1}, {Bins: 30, Temperature: 1e-4, Norm: 3}} {
		c, r, err := FitTemperatureSBECE(NewData(s.z, 3, s.y, s.w), Options{SoftBins: set})
		if err != nil {
			t.Fatal(err)
		}
		set, _ = set.withDefaults()
		at := s.sbeceAt(set)
		got := at(math.Log(c.T()))
		if r.SBECE == nil || math.Abs(r.SBECE.Least-got) > 1e-12 || !(r.SBECE.Error > 0) || len(r.SBECE.Minima) == 0 {
			t.Fatalf("%+v: report %+v, SB-ECE %g at T %g", set, r.SBECE, got, c.T())
		}
		lo, hi := math.Log(MinTemperature), math.Log(MaxTemperature)
		inside := func(t float64) bool { return t > r.SBECE.Low*0.95 && t < r.SBECE.High/0.95 }
		for i := range 1201 {
			u := lo + (hi-lo)*float64(i)/1200
			v := at(u)
			if v < got-1e-9 {
				t.Errorf("%+v: T %.4f: %.9f, fit T %.4f %.9f", set, math.Exp(u), v, c.T(), got)
			}
			if set.Temperature > 1e-3 && v <= got+r.SBECE.Error && !inside(math.Exp(u)) {
				t.Errorf("%+v: T %.4f has %.6f, within %.2g of the least, but lies outside %+v", set, math.Exp(u), v,
					r.SBECE.Error, *r.SBECE)
			}
		}
		for _, m := range r.SBECE.Minima {
			if v := at(math.Log(m)); v > got+r.SBECE.Error || !inside(m) {
				t.Errorf("%+v: minimum at %g has %g, the least is %g ± %g", set, m, v, got, r.SBECE.Error)
			}
		}
	}
}
