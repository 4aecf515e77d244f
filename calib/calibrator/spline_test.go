package calibrator_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/realdata"
)

func fitSpline(t *testing.T, z []float64, k int, y []int32, w []float64,
	set calibrator.SplineSettings) (*calibrator.Spline, calibrator.Report) {
	t.Helper()
	c, r, err := calibrator.FitSpline(calibrator.NewData(z, k, y, w), set, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func TestSplineFollowsTheTruth(t *testing.T) {
	truth := func(c float64) float64 { return 0.5 + (c-0.5)*(c-0.5)*1.6 } // half as sure as it says
	z, y := binary(draw(60000, 9, truth))
	for _, set := range []calibrator.SplineSettings{{}, {Residual: true}, {Knots: 12}} {
		s, r := fitSpline(t, z, 2, y, nil, set)
		if len(r.Warnings) > 0 || !r.Converged {
			t.Errorf("%+v: %+v", set, r)
		}
		for _, c := range []float64{0.52, 0.55, 0.7, 0.9, 0.97} {
			// A slope over a piece of 1/5 or 1/11 of the rows: sqrt(0.25·11/60000) = 0.007, three of them; more at the
			// ends.
			if got := s.Map(c); math.Abs(got-truth(c)) > 0.03 {
				t.Errorf("%+v: Map(%g): got %.4f, want %.4f", set, c, got, truth(c))
			}
		}
	}
}

// TestSplineStraightLine: with two knots every confidence has the mean accuracy; under Residual, c plus the mean gap.
func TestSplineStraightLine(t *testing.T) {
	c, a := draw(500, 4, func(c float64) float64 { return c * c })
	z, y := binary(c, a)
	var hits, sum float64
	for i := range c {
		sum += c[i] / 500
		if a[i] {
			hits += 1.0 / 500
		}
	}
	flat, _ := fitSpline(t, z, 2, y, nil, calibrator.SplineSettings{Knots: 2})
	shifted, _ := fitSpline(t, z, 2, y, nil, calibrator.SplineSettings{Knots: 2, Residual: true})
	for _, v := range []float64{slices.Min(c), 0.7, 0.8, slices.Max(c)} {
		// The line of least squares through cumulative sums is not the one through their end: it differs by their
		// noise, about 1/sqrt(500).
		if got := flat.Map(v); math.Abs(got-hits) > 0.05 {
			t.Errorf("Map(%g): got %.4f, want about %.4f", v, got, hits)
		}
		if got, want := shifted.Map(v)-shifted.Map(0.75), v-0.75; math.Abs(got-want) > 0.002 { // the table's spacing
			t.Errorf("Map(%g) - Map(0.75): got %.4f, want %.4f", v, got, want)
		}
	}
	if got := shifted.Map(0.75) - 0.75; math.Abs(got-(hits-sum)) > 0.05 {
		t.Errorf("shift: got %.4f, want about %.4f", got, hits-sum)
	}
}

// TestSplineTies holds that the order of rows is void, within ties too, and that a weight of m is m rows.
func TestSplineTies(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	const n = 600
	c, a, w := make([]float64, n), make([]bool, n), make([]float64, n)
	for i := range c {
		c[i] = []float64{0.6, 0.7, 0.71, 0.9, 0.99}[rng.IntN(5)]
		a[i], w[i] = rng.Float64() < c[i], float64(1+rng.IntN(3))
	}
	z, y := binary(c, a)
	want, _ := fitSpline(t, z, 2, y, w, calibrator.SplineSettings{})
	perm := rng.Perm(n)
	var pz, oz, pw []float64
	var py, oy []int32
	for _, i := range perm {
		pz, py, pw = append(pz, z[2*i:2*i+2]...), append(py, y[i]), append(pw, w[i])
		for range int(w[i]) {
			oz, oy = append(oz, z[2*i:2*i+2]...), append(oy, y[i])
		}
	}
	shuffled, _ := fitSpline(t, pz, 2, py, pw, calibrator.SplineSettings{})
	repeated, _ := fitSpline(t, oz, 2, oy, nil, calibrator.SplineSettings{})
	for _, v := range []float64{0.5, 0.6, 0.65, 0.7, 0.71, 0.8, 0.9, 0.95, 0.99, 1} {
		// where the points of a tie lie depends on the weights' order
		if got := shuffled.Map(v); math.Abs(got-want.Map(v)) > 1e-3 {
			t.Errorf("shuffled: Map(%g) = %.9f, want %.9f", v, got, want.Map(v))
		}
		if got := repeated.Map(v); math.Abs(got-want.Map(v)) > 0.01 { // three points of a third of the weight
			t.Errorf("repeated: Map(%g) = %.6f, want %.6f", v, got, want.Map(v))
		}
	}
	equal, _ := fitSpline(t, z, 2, y, nil, calibrator.SplineSettings{})
	again, _ := fitSpline(t, pz, 2, py, nil, calibrator.SplineSettings{})
	for _, v := range []float64{0.6, 0.7, 0.71, 0.9, 0.99} {
		if got := again.Map(v); math.Abs(got-equal.Map(v)) > 1e-12 {
			t.Errorf("unweighted, shuffled: Map(%g) = %.15f, want %.15f", v, got, equal.Map(v))
		}
	}
	one, _ := fitSpline(t, slices.Repeat([]float64{2, 0}, 40), 2,
		slices.Concat(make([]int32, 30), slices.Repeat([]int32{1}, 10)), nil, calibrator.SplineSettings{})
	if got := one.Map(0.9); math.Abs(got-0.75) > 1e-9 { // the ridge
		t.Errorf("one confidence: got %.12f, want its accuracy 0.75", got)
	}
}

func TestSplineReports(t *testing.T) {
	z, y := binary(draw(2000, 6, func(c float64) float64 { return 1.4 - c })) // the surer, the worse
	c, r := fitSpline(t, z, 2, y, nil, calibrator.SplineSettings{})
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "falls") || c.Map(0.55) < c.Map(0.95) {
		t.Errorf("%v, Map %g, %g", r.Warnings, c.Map(0.55), c.Map(0.95))
	}
	_, r = fitSpline(t, z[:40], 2, y[:20], nil, calibrator.SplineSettings{})
	if !slices.ContainsFunc(r.Warnings, func(s string) bool {
		return strings.Contains(s,
			"20 rows for 6 knots, 3 taken")
	}) {
		t.Errorf("%v", r.Warnings)
	}
	for _, knots := range []int{-1, 1, calibrator.MaxSplineKnots + 1} {
		if _, _, err := calibrator.FitSpline(calibrator.NewData(z, 2, y, nil), calibrator.SplineSettings{Knots: knots},
			opts); err == nil {
			t.Errorf("%d knots: no error", knots)
		}
	}
}

// ks is the largest |Σ (a - c)|/n over the groups of equal confidence, which the method is made to lower.
func ks(s calibrator.Scalar, c []float64, a []bool) float64 {
	order := make([]int, len(c))
	mapped := make([]float64, len(c))
	for i := range order {
		order[i], mapped[i] = i, s.Map(c[i])
	}
	slices.SortFunc(order, func(i, j int) int { return int(math.Copysign(1, mapped[i]-mapped[j])) })
	var sum, worst float64
	for _, i := range order {
		if sum -= mapped[i]; a[i] {
			sum++
		}
		worst = max(worst, math.Abs(sum))
	}
	return worst / float64(len(c))
}

func TestSplineOnRealLogits(t *testing.T) {
	for _, set := range realSets {
		if testing.Short() && set.k > 10 {
			continue
		}
		s, y := realdata.Scores(t, set.file, set.scores, "test_labels")
		z, k, h := widen(s), set.k, len(y)/2
		c, a := make([]float64, h), make([]bool, h)
		p := make([]float64, k)
		for i := range c {
			calibrator.Identity{}.Apply(p, z[(h+i)*k:(h+i+1)*k])
			c[i], a[i] = slices.Max(p), argmax(p) == int(y[h+i])
		}
		ts, _, err := calibrator.FitTemperature(calibrator.NewData(z[:h*k], k, y[:h], nil), opts)
		if err != nil {
			t.Fatal(err)
		}
		_, nll0, ece0 := score(ts, z[h*k:], k, y[h:])
		before := ks(identityScalar{}, c, a)
		t.Logf("%-12s T: NLL %.4f ECE %.4f; identity KS %.4f", set.scores, nll0, ece0, before)
		for _, set2 := range []calibrator.SplineSettings{{}, {Residual: true}} {
			m, r := fitSpline(t, z[:h*k], k, y[:h], nil, set2)
			_, nll, ece := score(m, z[h*k:], k, y[h:])
			after := ks(m, c, a)
			t.Logf("%-12s %+v: NLL %.4f ECE %.4f KS %.4f %v", set.scores, set2, nll, ece, after, r.Warnings)
			// The spread of the mean accuracy of two halves is sqrt(0.25·2/5000) = 0.01 at most.
			if after > before/2 || after > 0.03 {
				t.Errorf("%s %+v: KS %.4f, identity %.4f", set.scores, set2, after, before)
			}
		}
	}
}

type identityScalar struct{ calibrator.Identity }

func (identityScalar) Map(c float64) float64 { return c }
