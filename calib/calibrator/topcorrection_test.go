package calibrator_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// plainly is a power of probabilities, by its formula.
func plainly(q []float64, power float64) []float64 {
	r, sum := make([]float64, len(q)), 0.0
	for k, v := range q {
		r[k] = math.Exp(power * (math.Log(v) - math.Log(slices.Max(q))))
		sum += r[k]
	}
	for k := range r {
		r[k] /= sum
	}
	return r
}

// TestCorrected: the probabilities get their power, the top class then Platt's map of its confidence, the others share
// what is left, every row keeps its class and its ranking, and probabilities sum to 1, at the edges of floats too.
func TestCorrected(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	base, err := calibrator.NewTemperature(1.5)
	if err != nil {
		t.Fatal(err)
	}
	rows := append([][]float64{}, hostile...)
	for range 500 {
		z := make([]float64, 4)
		for k := range z {
			z[k] = 3 * rng.NormFloat64()
		}
		rows = append(rows, z)
	}
	kept := 0
	one := calibrator.TopCorrection{Slope: 1}
	for i, top := range []calibrator.TopCorrection{{1, -1}, {1, 1}, {.5, .3}, {2, -2}, {0, .1}, {0, -1e6}, {1e6, 1e6},
		{1, -1}, one, {.5, .3}, one, {2, -2}, one, {0, -1e6}, one} {
		by := calibrator.Correction{TopCorrection: top}
		if i >= 7 { // 0 is none
			by.Power = []float64{.05, .05, .5, .7, 3, 3, 20, 20}[i-7]
		}
		c, err := calibrator.Correct(base, by)
		if err != nil {
			t.Fatal(err)
		}
		for _, z := range rows {
			q, p := make([]float64, 4), make([]float64, 4)
			base.Apply(q, z)
			c.Apply(p, z)
			if i >= 7 {
				q = plainly(q, by.Power)
			}
			sum, a, rest := 0.0, argmax(q), 0.0
			for k := range p {
				sum += p[k]
				if k != a {
					rest += q[k]
				}
				if p[k] < 0 || p[k] != p[k] || q[k] > q[a] {
					t.Fatalf("%v of %v: %v", top, z, p)
				}
				if k != a && p[k] > p[a] {
					t.Fatalf("%v of %v: %v has another class on top than %v", top, z, p, q)
				}
				for j := range p {
					if k != a && j != a && q[k] < q[j] && p[k] > p[j] {
						t.Fatalf("%v of %v: %v is ranked unlike %v", top, z, p, q)
					}
				}
			}
			if math.Abs(sum-1) > 1e-12 {
				t.Fatalf("%v of %v: the sum is %g", top, z, sum)
			}
			if rest == 0 {
				continue
			}
			l := math.Log(q[a] / rest)
			at := max(-math.Log(9999), min(math.Log(9999), l))
			want := 1 / (1 + math.Exp(-(top.Slope*at + top.Intercept + l - at))) // plainly
			second := 0.0
			for k := range q {
				if k != a {
					second = max(second, q[k]*(1-want)/rest)
				}
			}
			if want > 1.01*second {
				kept++
				if math.Abs(p[a]-want) > 1e-12 || math.Abs(top.Map(q[a])-want) > 1e-6 && q[a] < .999 {
					t.Fatalf("%v of %v: %v, by the formula %g", top, z, p, want)
				}
			}
		}
	}
	if kept < 1500 {
		t.Errorf("%d rows had the map's confidence", kept)
	}
	c, err := calibrator.Correct(base, calibrator.Correction{Power: 1, TopCorrection: one})
	if err != nil || c != calibrator.Calibrator(base) {
		t.Errorf("a correction that changes nothing: %v, %v", c, err)
	}
	for _, bad := range []calibrator.TopCorrection{{-.1, 0}, {math.NaN(), 0}, {1, math.Inf(1)}, {1e7, 0}, {1, -1e7}} {
		if _, err := calibrator.Correct(base, calibrator.Correction{TopCorrection: bad}); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	for _, bad := range []float64{-1, .04, 21, math.NaN(), math.Inf(1)} {
		if _, err := calibrator.Correct(base, calibrator.Correction{Power: bad, TopCorrection: one}); err == nil {
			t.Errorf("a power of %v was taken", bad)
		}
	}
	sized, _, err := calibrator.Fit("vector", calibrator.NewData(rows[20], 4, []int32{0}, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := calibrator.Correct(sized, calibrator.Correction{Power: 2, TopCorrection: one}); err != nil ||
		calibrator.Fits(c, 3) || !calibrator.Fits(c, 4) || calibrator.ClassesOf(c) != 4 {
		t.Errorf("a correction of a calibrator for 4 classes: %v, %v", c, err)
	}
}

// TestCorrectedByClass: rows of a predicted class that has its own correction have that, all others the common one.
func TestCorrectedByClass(t *testing.T) {
	common := calibrator.TopCorrection{Slope: .8, Intercept: .3}
	own := calibrator.TopCorrection{Slope: .5, Intercept: -.2}
	base := calibrator.Identity{}
	correct := func(top calibrator.TopCorrection, apart ...calibrator.ClassCorrection) (calibrator.Calibrator, error) {
		return calibrator.Correct(base, calibrator.Correction{Power: .7, TopCorrection: top, Apart: apart})
	}
	both, err := correct(common, calibrator.ClassCorrection{Class: 0, TopCorrection: own},
		calibrator.ClassCorrection{Class: 2, TopCorrection: own})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	for range 200 {
		z, p, want := make([]float64, 4), make([]float64, 4), make([]float64, 4)
		for k := range z {
			z[k] = 3 * rng.NormFloat64()
		}
		top := common
		if a := argmax(z); a == 0 || a == 2 {
			top = own
		}
		c, err := correct(top)
		if err != nil {
			t.Fatal(err)
		}
		c.Apply(want, z)
		both.Apply(p, z)
		if !slices.Equal(p, want) {
			t.Fatalf("%v: %v, want %v", z, p, want)
		}
	}
	alone := calibrator.Correction{TopCorrection: calibrator.TopCorrection{Slope: 1},
		Apart: []calibrator.ClassCorrection{{Class: 1, TopCorrection: own}}}
	if c, err := calibrator.Correct(base, alone); err != nil || c == calibrator.Calibrator(base) {
		t.Errorf("a correction of one class alone: %v, %v", c, err)
	}
	for _, bad := range [][]calibrator.ClassCorrection{{{-1, own}}, {{1, own}, {1, own}}, {{2, own}, {1, own}},
		{{1, calibrator.TopCorrection{Slope: -1}}}} {
		if _, err := correct(common, bad...); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

// TestRaise: the slope and curvature that Newton's steps take are those of the loss.
func TestRaise(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for _, k := range []int{3, 10, 37} {
		q, z, p := make([]float64, k), make([]float64, k), make([]float64, k)
		for j := range z {
			z[j] = 2 * rng.NormFloat64()
		}
		calibrator.Identity{}.Apply(q, z)
		calibrator.LogRatios(z, q)
		loss := func(power float64) float64 { return -math.Log(plainly(q, power)[1]) }
		for _, power := range []float64{.05, .6, 1, 2.5, 20} {
			const h = 1e-4
			r := calibrator.Raise(p, z, power)
			slope := (loss(power+h) - loss(power-h)) / (2 * h)
			bend := (loss(power+h) - 2*loss(power) + loss(power-h)) / (h * h)
			if got := -math.Log(r.Top) - power*z[1]; math.Abs(got-loss(power)) > 1e-12*(1+loss(power)) ||
				math.Abs(r.Mean-z[1]-slope) > 1e-6*(1+math.Abs(slope)) || math.Abs(r.Var-bend) > 1e-5*(1+bend) {
				t.Errorf("K = %d, power %g: %+v, loss %g; want %g, its slope %g and curvature %g", k, power, r, got,
					loss(power), slope, bend)
			}
		}
	}
}

// TestOnlinePlattFollows: with a memory the map follows outcomes that change after very many rows; with all rows it
// hardly moves.
func TestOnlinePlattFollows(t *testing.T) {
	after := func(memory float64) float64 {
		o, err := calibrator.NewOnlinePlatt(calibrator.OnlineSettings{Calibeating: calibrator.Plain, Gamma: .5,
			Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(3, 3))
		rows := func(n int, right float64) {
			for range n {
				if err := o.Update(.9, rng.Float64() < right); err != nil {
					t.Fatal(err)
				}
			}
		}
		rows(50_000, .9)
		rows(1000, .6)
		return o.Predict(.9)
	}
	if all, some := after(0), after(300); all < .8 || math.Abs(some-.6) > .06 {
		t.Errorf("1,000 rows with .6 right after 50,000 with .9: with all rows %.3f, with 300 %.3f", all, some)
	}
	for _, bad := range []float64{-1, 5, math.NaN(), math.Inf(1)} {
		if _, err := calibrator.NewOnlinePlatt(calibrator.OnlineSettings{Memory: bad}); err == nil {
			t.Errorf("a memory of %g was taken", bad)
		}
	}
}
