package calibrator_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// binary returns two-class logits whose top class is 0, with confidence c_i, and labels 0 where right.
func binary(c []float64, right []bool) ([]float64, []int32) {
	z, y := make([]float64, 0, 2*len(c)), make([]int32, len(c))
	for i, v := range c {
		z = append(z, math.Log(v/(1-v)), 0)
		if !right[i] {
			y[i] = 1
		}
	}
	return z, y
}

func draw(n int, seed uint64, truth func(c float64) float64) ([]float64, []bool) {
	rng := rand.New(rand.NewPCG(seed, 2))
	c, a := make([]float64, n), make([]bool, n)
	for i := range c {
		c[i] = 0.51 + 0.48*rng.Float64()
		a[i] = rng.Float64() < truth(c[i])
	}
	return c, a
}

func sig(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// TestScalarsFollowTheTruth fits maps that the parametric families contain.
func TestScalarsFollowTheTruth(t *testing.T) {
	truth := func(c float64) float64 { return sig(0.5*math.Log(c/(1-c)) - 0.2) }
	z, y := binary(draw(60000, 1, truth))
	platt, _, err := calibrator.FitPlatt(calibrator.NewData(z, 2, y, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	beta, _, err := calibrator.FitBeta(calibrator.NewData(z, 2, y, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	iso, _, _ := calibrator.FitIsotonic(calibrator.NewData(z, 2, y, nil), opts)
	for _, c := range []float64{0.55, 0.7, 0.9, 0.97} {
		for _, s := range []calibrator.Scalar{platt, beta, iso} {
			tol := 0.012 // three standard errors of a slope and an intercept from 60,000 rows
			if s == calibrator.Scalar(iso) {
				tol = 0.05 // n^(-1/3)
			}
			if got := s.Map(c); math.Abs(got-truth(c)) > tol {
				t.Errorf("%s(%g): got %.4f, want %.4f", s.Method(), c, got, truth(c))
			}
		}
	}
}

func TestPlattAgainstGrid(t *testing.T) {
	c, a := draw(300, 3, func(c float64) float64 { return c * c })
	z, y := binary(c, a)
	got, _, err := calibrator.FitPlatt(calibrator.NewData(z, 2, y, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	var pos float64
	for _, v := range a {
		if v {
			pos++
		}
	}
	loss := func(f func(float64) float64) float64 {
		var sum float64
		for i, v := range c {
			target := 1 / (300 - pos + 2)
			if a[i] {
				target = (pos + 1) / (pos + 2)
			}
			p := f(v)
			sum -= target*math.Log(p) + (1-target)*math.Log(1-p)
		}
		return sum / 300
	}
	best := math.Inf(1)
	for slope := -1.0; slope < 3; slope += 0.05 {
		for icpt := -2.0; icpt < 2; icpt += 0.05 {
			best = min(best, loss(func(c float64) float64 { return sig(slope*math.Log(c/(1-c)) + icpt) }))
		}
	}
	if l := loss(got.Map); l > best+1e-9 || l < best-1e-3 {
		t.Errorf("loss %.9f, grid %.9f", l, best)
	}
}

func TestBetaDropsNegativeCoefficients(t *testing.T) {
	z, y := binary(draw(4000, 5, func(c float64) float64 { return 1.3 - c })) // falls with c: both are negative
	c, r, err := calibrator.FitBeta(calibrator.NewData(z, 2, y, nil), opts)
	if err != nil || len(r.Warnings) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for v, last := 0.5, 0.0; v < 1; v += 0.01 {
		if got := c.Map(v); got < last {
			t.Errorf("Map(%g) = %g falls", v, got)
		} else {
			last = got
		}
	}
}

// TestIsotonicAgainstMinimax uses the min-max formula: v_i = max over a ≤ i of min over b ≥ i of the mean of a..b.
func TestIsotonicAgainstMinimax(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 50 {
		const n = 25
		c, a, w := make([]float64, n), make([]bool, n), make([]float64, n)
		for i := range c {
			c[i], a[i], w[i] = 0.55+0.03*float64(i/2), rng.IntN(3) > 0, 1+rng.Float64() // pairs are tied
		}
		z, y := binary(c, a)
		got, _, err := calibrator.FitIsotonic(calibrator.NewData(z, 2, y, w), opts)
		if err != nil {
			t.Fatal(err)
		}
		mean := func(from, to int) float64 {
			var s, m float64
			for i := from; i < min(to, n); i++ {
				m += w[i]
				if a[i] {
					s += w[i]
				}
			}
			return s / m
		}
		for i := 0; i < n; i += 2 {
			want := math.Inf(-1)
			for lo := 0; lo <= i; lo += 2 {
				least := math.Inf(1)
				for hi := i + 2; hi <= n+1; hi += 2 {
					least = min(least, mean(lo, hi))
				}
				want = max(want, least)
			}
			p := make([]float64, 2)
			got.Apply(p, z[2*i:2*i+2])
			if math.Abs(p[0]-want) > 1e-12 {
				t.Fatalf("row %d: got %g, want %g", i, p[0], want)
			}
		}
	}
}

func TestHistogramValues(t *testing.T) {
	c := []float64{0.55, 0.56, 0.57, 0.58, 0.91, 0.92}
	z, y := binary(c, []bool{true, false, false, false, true, true})
	h, _, err := calibrator.FitHistogram(calibrator.NewData(z, 2, y, nil), 5, calibrator.EqualWidth, opts)
	if err != nil {
		t.Fatal(err)
	}
	for conf, want := range map[float64]float64{0.1: 0.1, 0.2: 0.1, 0.5: 0.25, 0.7: 0.7, 0.95: 1, 1: 1, 0: 0.1} {
		if got := h.Map(conf); math.Abs(got-want) > 1e-12 {
			t.Errorf("equal width, %g: got %g, want %g", conf, got, want)
		}
	}
	h, _, _ = calibrator.FitHistogram(calibrator.NewData(z, 2, y, nil), 3, calibrator.EqualMass, opts)
	for conf, want := range map[float64]float64{0.3: 0.5, 0.56: 0.5, 0.575: 0, 0.6: 0, 0.92: 1} {
		if got := h.Map(conf); math.Abs(got-want) > 1e-12 {
			t.Errorf("equal mass, %g: got %g, want %g", conf, got, want)
		}
	}
	z, y = binary([]float64{.55, .6, .65, .7, .75, .8, .85, .9},
		[]bool{true, false, true, false, true, false, true, false})
	h, _, _ = calibrator.FitHistogram(calibrator.NewData(z, 2, y, nil), 5, calibrator.EqualMass, opts)
	for conf, want := range map[float64]float64{.55: .5, .7: .5, .75: .5, .8: .5, .85: 1, .9: 0} {
		if got := h.Map(conf); math.Abs(got-want) > 1e-12 {
			t.Errorf("eight rows in five bins, the larger first, %g: got %g, want %g", conf, got, want)
		}
	}
	for _, m := range []int{0, -1, 100_001} {
		if _, _, err := calibrator.FitHistogram(calibrator.NewData(z, 2, y, nil), m, calibrator.EqualMass,
			opts); err == nil {
			t.Errorf("%d bins accepted", m)
		}
	}
}

// TestScalingBinningHasBinMeans holds that few values come out, each near the truth.
func TestScalingBinningHasBinMeans(t *testing.T) {
	truth := func(c float64) float64 { return sig(0.5 * math.Log(c/(1-c))) }
	z, y := binary(draw(30000, 6, truth))
	s, _, err := calibrator.FitScalingBinning(calibrator.NewData(z, 2, y, nil), 10, opts)
	if err != nil {
		t.Fatal(err)
	}
	values := map[float64]bool{}
	for c := 0.51; c < 0.99; c += 0.001 {
		v := s.Map(c)
		values[v] = true
		if math.Abs(v-truth(c)) > 0.08 { // a bin is up to .1 wide
			t.Errorf("%g: got %g, want %g", c, v, truth(c))
		}
	}
	if len(values) != 10 {
		t.Errorf("%d values, want 10", len(values))
	}
}

// TestTopLabelVector holds the K-class vector to its definition.
func TestTopLabelVector(t *testing.T) {
	z, y := synthetic(500, 3, 2, 11)
	c, _, err := calibrator.FitPlatt(calibrator.NewData(z, 3, y, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	p, q := make([]float64, 3), make([]float64, 3)
	calibrator.Identity{}.Apply(q, []float64{1, 3, 2})
	c.Apply(p, []float64{1, 3, 2})
	conf := c.Map(q[1])
	for k, want := range []float64{(1 - conf) * q[0] / (1 - q[1]), conf, (1 - conf) * q[2] / (1 - q[1])} {
		if math.Abs(p[k]-want) > 1e-14 {
			t.Errorf("class %d: got %g, want %g", k, p[k], want)
		}
	}
}

// TestScalingBinningOfPeriodicRows: rows in an order of any period are shared out evenly.
func TestScalingBinningOfPeriodicRows(t *testing.T) {
	for period := 2; period <= 12; period++ {
		const n = 1200
		z, y := make([]float64, 2*n), make([]int32, n)
		for i := range y {
			z[2*i] = 1
			if i%period == 0 {
				y[i] = 1 // wrong
			}
		}
		s, _, err := calibrator.FitScalingBinning(calibrator.NewData(z, 2, y, nil), 10, opts)
		if err != nil {
			t.Fatal(err)
		}
		want := 1 - 1/float64(period)
		if got := s.Map(0.7310585786300049); math.Abs(got-want) > 0.03 {
			t.Errorf("period %d: got %g, want %g", period, got, want)
		}
	}
	if _, _, err := calibrator.FitScalingBinning(calibrator.NewData([]float64{1, 0, 0, 2, 3, 0}, 2, []int32{0, 1, 1},
		nil), 2, opts); err != nil {
		t.Error(err) // three rows, one in each third
	}
}
