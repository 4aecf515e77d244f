package calibrator

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// truncated returns the basis of natural cubic splines in truncated powers at t, for M equally spaced knots on [0, 1]:
// 1, t, and d_j - d_{M-1} with d_j = ((t-k_j)₊³ - (t-k_M)₊³)/(k_M - k_j).
func truncated(t float64, knots int) []float64 {
	knot := func(j int) float64 { return float64(j) / float64(knots-1) }
	cube := func(v float64) float64 { return math.Pow(max(0, v), 3) }
	d := func(j int) float64 { return (cube(t-knot(j)) - cube(t-1)) / (1 - knot(j)) }
	out := []float64{1, t}
	for j := range knots - 2 {
		out = append(out, d(j)-d(knots-2))
	}
	return out
}

// TestNaturalSplineAgainstTruncatedPowers fits the same points by QR in another basis.
func TestNaturalSplineAgainstTruncatedPowers(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 4))
	for _, knots := range []int{2, 3, 4, 6, 9} {
		const n = 200
		x, y, w := make([]float64, n), make([]float64, n), make([]float64, n)
		a, b := mat.NewDense(n, knots, nil), mat.NewVecDense(n, nil)
		for i := range x {
			x[i], w[i] = float64(i+1)/n, 0.5+rng.Float64()
			y[i] = math.Sin(6*x[i]) + 0.1*rng.NormFloat64()
			for j, v := range truncated(x[i], knots) {
				a.Set(i, j, v*math.Sqrt(w[i]))
			}
			b.SetVec(i, y[i]*math.Sqrt(w[i]))
		}
		var want mat.VecDense
		if err := want.SolveVec(a, b); err != nil {
			t.Fatal(err)
		}
		got, ok := fitNaturalSpline(x, y, w, knots)
		if !ok {
			t.Fatal("not fitted")
		}
		for i := range 1001 {
			at := float64(i) / 1000
			ref := mat.Dot(mat.NewVecDense(knots, truncated(at, knots)), &want)
			// The ridge moves the values by about 1e-9 times the condition number of the normal equations.
			if v := got.at(at); math.Abs(v-ref) > 1e-6 {
				t.Errorf("%d knots at %g: got %.9f, want %.9f", knots, at, v, ref)
			}
		}
	}
}

// TestNaturalSplineIsSmooth holds that slope and curvature have no jumps at the knots, and no curvature at the ends.
func TestNaturalSplineIsSmooth(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	const knots = 7
	s := naturalSpline{y: make([]float64, knots), m: make([]float64, knots)}
	for j := range s.y {
		s.y[j] = rng.NormFloat64()
	}
	g := curvature(knots)
	for j := range s.m {
		for c, v := range s.y {
			s.m[j] += g[j*knots+c] * v
		}
	}
	if s.m[0] != 0 || s.m[knots-1] != 0 {
		t.Errorf("second derivatives at the ends: %g, %g", s.m[0], s.m[knots-1])
	}
	const h = 1e-4
	slope := func(t float64) float64 { return (s.at(t+h/2) - s.at(t-h/2)) / h }
	for j := 1; j < knots-1; j++ {
		k := float64(j) / (knots - 1)
		if v := s.at(k); math.Abs(v-s.y[j]) > 1e-12 {
			t.Errorf("at knot %d: got %g, want %g", j, v, s.y[j])
		}
		before, after := slope(k-h), slope(k+h)
		curve := (after - before) / (2 * h)
		// The third derivative jumps at the knot: of order |m|/spacing, over steps of h.
		if math.Abs(curve-s.m[j]) > 1e-2*(1+math.Abs(s.m[j])) {
			t.Errorf("knot %d: second difference %g, want %g", j, curve, s.m[j])
		}
	}
}

// TestSplineAgainstReference builds the map from its definition: points, QR in truncated powers, mean slopes, clipping.
func TestSplineAgainstReference(t *testing.T) {
	for _, n := range []int{60, 300, 5000} {
		for _, residual := range []bool{false, true} {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			conf, hit := make([]float64, n), make([]float64, n)
			z, y := make([]float64, 2*n), make([]int32, n)
			for i := range conf {
				conf[i] = 0.5 + (float64(i)+rng.Float64())/float64(2*n+2) // rising, no ties
				if rng.Float64() < conf[i]*conf[i] {
					hit[i] = 1
				} else {
					y[i] = 1
				}
				z[2*i] = math.Log(conf[i] / (1 - conf[i]))
			}
			const knots = 6
			a, b := mat.NewDense(n+1, knots, nil), mat.NewVecDense(n+1, nil)
			a.SetRow(0, truncated(0, knots))
			var h float64
			for i := range conf {
				if h += hit[i] / float64(n); residual {
					h -= conf[i] / float64(n)
				}
				a.SetRow(i+1, truncated(float64(i+1)/float64(n), knots))
				b.SetVec(i+1, h)
			}
			var beta mat.VecDense
			if err := beta.SolveVec(a, b); err != nil {
				t.Fatal(err)
			}
			at := func(i int) float64 {
				return mat.Dot(mat.NewVecDense(knots, truncated(float64(i)/float64(n), knots)), &beta)
			}
			c, _, err := FitSpline(NewData(z, 2, y, nil), SplineSettings{Knots: knots, Residual: residual}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			tolerance := 1e-6 // the ridge
			if n > splineTable {
				tolerance = 2e-3 // runs of 1/1024 of the rows, each with a straight line between
			}
			for i, v := range conf {
				want := (at(i+1) - at(i)) * float64(n)
				if residual {
					want += v
				}
				least := 1 / float64(n+2)
				want = max(least, min(1-least, want))
				if got := c.Map(v); math.Abs(got-want) > tolerance {
					t.Errorf("%d rows, residual %v: Map(%g) = %.9f, want %.9f", n, residual, v, got, want)
				}
			}
			if len(c.p.C) > splineTable+1 {
				t.Errorf("table of %d", len(c.p.C))
			}
		}
	}
}
