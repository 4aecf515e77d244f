package calibrator

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func newOnline(t testing.TB, set OnlineSettings) *OnlinePlatt {
	t.Helper()
	o, err := NewOnlinePlatt(set)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// slowStep is the online Newton step by its definition: A⁻¹ from the adjugate, the projection by a search of the
// sphere, both in place of what step does.
func slowStep(theta [2]float64, a [3]float64, l, r float64, set OnlineSettings) ([2]float64, [3]float64) {
	g := [2]float64{r * l, r}
	a[0], a[1], a[2] = a[0]+g[0]*g[0], a[1]+g[0]*g[1], a[2]+g[1]*g[1]
	det := a[0]*a[2] - a[1]*a[1]
	to := [2]float64{
		theta[0] - (a[2]*g[0]-a[1]*g[1])/det/set.Gamma,
		theta[1] - (a[0]*g[1]-a[1]*g[0])/det/set.Gamma,
	}
	if math.Hypot(to[0], to[1]) <= set.Radius {
		return to, a
	}
	distance := func(angle float64) float64 {
		d0, d1 := set.Radius*math.Cos(angle)-to[0], set.Radius*math.Sin(angle)-to[1]
		return a[0]*d0*d0 + 2*a[1]*d0*d1 + a[2]*d1*d1
	}
	best := 0.0
	for width, lo, n := 2*math.Pi, -math.Pi, 2000; width > 1e-9; width /= 100 { // ever finer grids
		at := lo
		for i := range n + 1 {
			if x := lo + width*float64(i)/float64(n); distance(x) < distance(at) {
				at = x
			}
		}
		best, lo, n = at, at-width/200, 200
	}
	return [2]float64{set.Radius * math.Cos(best), set.Radius * math.Sin(best)}, a
}

func TestOnlineStepAgainstDefinition(t *testing.T) {
	projected := 0
	for _, radius := range []float64{100, 1.05} {
		o := newOnline(t, OnlineSettings{Calibeating: Plain, Radius: radius, Rho: 1, Gamma: 0.5})
		rng := rand.New(rand.NewPCG(3, 3))
		for i := range 200 {
			c := 1 / (1 + math.Exp(-3*rng.NormFloat64()))
			right := rng.Float64() < 0.7*c+0.2
			l, y := math.Log(c/(1-c)), 0.0
			if right {
				y = 1
			}
			p := o.Predict(c)
			if want := 1 / (1 + math.Exp(-o.theta[0]*l-o.theta[1])); math.Abs(p-want) > 1e-14 {
				t.Fatalf("forecast %g, want %g", p, want)
			}
			// The gradient of the log loss, by differences.
			loss := func(a, b float64) float64 { f := a*l + b; return softplus(f) - y*f }
			const h = 1e-6
			if want := (loss(o.theta[0]+h, o.theta[1]) - loss(o.theta[0]-h,
				o.theta[1])) / (2 * h); math.Abs((p-y)*l-want) > 1e-7 {
				t.Fatalf("gradient %g, want %g", (p-y)*l, want)
			}
			theta, a := slowStep(o.theta, o.a, l, p-y, o.set)
			if err := o.Update(c, right); err != nil {
				t.Fatal(err)
			}
			if math.Hypot(o.theta[0], o.theta[1]) > radius*(1-1e-9) {
				projected++
			}
			for j := range theta {
				if math.Abs(o.theta[j]-theta[j]) > 1e-5*radius || math.Abs(o.a[j]-a[j]) > 1e-9*(1+math.Abs(a[j])) {
					t.Fatalf("row %d, radius %g: θ %v, A %v, want %v, %v", i, radius, o.theta, o.a, theta, a)
				}
			}
		}
	}
	if projected < 10 {
		t.Errorf("%d projections: the test has none", projected)
	}
}

// TestOnlineTrackingIsTheMean keeps the outcomes by bin.
func TestOnlineTrackingIsTheMean(t *testing.T) {
	o := newOnline(t, OnlineSettings{Bins: 7})
	seen := map[int][]float64{}
	rng := rand.New(rand.NewPCG(4, 3))
	for range 500 {
		c := rng.Float64()
		p := sigmoid(o.theta[0]*o.logOdds(c) + o.theta[1])
		j := min(int(7*p), 6)
		want := p
		if len(seen[j]) > 0 {
			want = mean(seen[j])
		}
		if got := o.Predict(c); math.Abs(got-want) > 1e-12 {
			t.Fatalf("got %g, want %g", got, want)
		}
		right, y := rng.Float64() < c*c, 0.0
		if right {
			y = 1
		}
		seen[j] = append(seen[j], y)
		if err := o.Update(c, right); err != nil {
			t.Fatal(err)
		}
	}
}

func mean(v []float64) float64 {
	var s float64
	for _, x := range v {
		s += x / float64(len(v))
	}
	return s
}

// forecastError is Σ over the distinct forecasts of |Σ (y - forecast)| / n.
func forecastError(f []float64, y []bool) float64 {
	gaps := map[float64]float64{}
	for i, v := range f {
		gaps[v] -= v
		if y[i] {
			gaps[v]++
		}
	}
	var sum float64
	for _, g := range gaps {
		sum += math.Abs(g)
	}
	return sum / float64(len(f))
}

// TestOnlineHedgingAgainstAdversaries has outcomes that are made to hurt: they look at the forecast's distribution as
// far as one may, at the tracked forecast of before, or change their mind.
func TestOnlineHedgingAgainstAdversaries(t *testing.T) {
	const n, bins = 40_000, 10
	for name, outcome := range map[string]func(i int, tracked float64) bool{
		"against tracking": func(_ int, tracked float64) bool { return tracked < 0.5 },
		"switching":        func(i int, _ float64) bool { return i/(n/7)%2 == 0 },
		"alternating":      func(i int, _ float64) bool { return i%2 == 0 },
		"never":            func(int, float64) bool { return false },
	} {
		hedge := newOnline(t, OnlineSettings{Calibeating: Hedging, Bins: bins, Seed: 5})
		track := newOnline(t, OnlineSettings{Bins: bins})
		f, y := make([]float64, n), make([]bool, n)
		for i := range f {
			c := 0.5 + 0.5*float64(i%97)/97
			y[i] = outcome(i, track.Predict(c))
			f[i] = hedge.Predict(c)
			if err := errors.Join(hedge.Update(c, y[i]), track.Update(c, y[i])); err != nil {
				t.Fatal(err)
			}
			if v := track.Predict(c); !(v >= 0 && v <= 1) || math.IsNaN(hedge.Slope()+hedge.Intercept()) {
				t.Fatalf("%s: forecast %g, θ %v", name, v, hedge.theta)
			}
		}
		// ε/2, and the deviation of the counts of bins² bins in n rows.
		if e := forecastError(f, y); e > 0.5/bins+float64(bins)/math.Sqrt(n) {
			t.Errorf("%s: calibration error %.4f", name, e)
		}
	}
}

func TestOnlineState(t *testing.T) {
	for _, kind := range []Calibeating{Tracking, Hedging, Plain} {
		o := newOnline(t, OnlineSettings{Calibeating: kind, Seed: 1 << 63})
		rng := rand.New(rand.NewPCG(9, 3))
		for range 300 {
			if c := rng.Float64(); o.Update(c, rng.Float64() < c) != nil {
				t.Fatal(c)
			}
		}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		back := new(OnlinePlatt)
		if err := json.Unmarshal(b, back); err != nil || !reflect.DeepEqual(back, o) {
			t.Fatalf("got %+v, %v, want %+v", back, err, o)
		}
		for _, v := range []*OnlinePlatt{o, back} {
			if v.Update(0.7, true) != nil {
				t.Fatal("0.7")
			}
		}
		if a, b := o.Predict(0.8), back.Predict(0.8); math.Float64bits(a) != math.Float64bits(b) {
			t.Errorf("went on as %g, want %g", b, a)
		}
		for _, change := range [][2]string{
			{`"version":1`, `"version":2`}, {`"rows":300`, `"rows":299`}, {`"online_platt"`, `"platt"`},
			{`"theta":[`, `"theta":[1e9,`},
			{`"bins":10`, `"bins":11`}, {`"gamma":0.1`, `"gamma":2`}, {`"matrix":[`, `"matrix":[-`},
			{`"rows":300`, `"rows":300,"more":1`},
		} {
			bad := strings.Replace(string(b), change[0], change[1], 1)
			keep := *back
			if err := back.UnmarshalJSON([]byte(bad)); !errors.Is(err, ErrFormat) || bad == string(b) ||
				!reflect.DeepEqual(*back, keep) {
				t.Errorf("%s: got %v, want ErrFormat", change[1], err)
			}
		}
	}
	if _, err := json.Marshal(new(OnlinePlatt)); err == nil {
		t.Error("encoded one that was never made")
	}
}

func TestOnlineRefuses(t *testing.T) {
	for _, set := range []OnlineSettings{
		{Bins: 1}, {Bins: 1001}, {Gamma: -1}, {Gamma: 2}, {Rho: math.NaN()}, {Radius: 0.5}, {Clip: 0.5},
		{Calibeating: 3},
	} {
		if _, err := NewOnlinePlatt(set); err == nil {
			t.Errorf("%+v accepted", set)
		}
	}
	o := newOnline(t, OnlineSettings{})
	for _, c := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		if o.Update(c, true) == nil || o.Rows() != 0 {
			t.Errorf("confidence %g accepted", c)
		}
	}
	if !math.IsNaN(o.Predict(math.NaN())) {
		t.Error("a NaN has a forecast")
	}
	hedge := newOnline(t, OnlineSettings{Calibeating: Hedging, Bins: 20})
	if n := testing.AllocsPerRun(100, func() { _ = hedge.Update(0.9, true); hedge.Predict(0.8) }); n != 0 {
		t.Errorf("%g allocations a row", n)
	}
}

func BenchmarkOnlinePlatt(b *testing.B) {
	for name, kind := range map[string]Calibeating{"tracking": Tracking, "hedging": Hedging} {
		b.Run(name, func(b *testing.B) {
			o := newOnline(b, OnlineSettings{Calibeating: kind})
			for i := 0; b.Loop(); i++ {
				c := 0.3 + 0.7*float64(i%1009)/1009
				o.Predict(c)
				if err := o.Update(c, i%3 > 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzOnlinePlatt(f *testing.F) {
	for _, kind := range []Calibeating{Tracking, Hedging, Plain} {
		o := newOnline(f, OnlineSettings{Calibeating: kind, Bins: 2})
		for i := range 20 {
			_ = o.Update(float64(i)/20, i%3 == 0)
		}
		b, err := json.Marshal(o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"version":1,"method":"online_platt","settings":{"calibeating":2},"theta":[1,0],"matrix":[1e308,0,` +
		`1e-308],"rows":0}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		o := new(OnlinePlatt)
		if err := o.UnmarshalJSON(b); err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("%v does not wrap ErrFormat", err)
			}
			return
		}
		for _, c := range []float64{0, 0.3, 0.9, 1} {
			if err := o.Update(c, c < 0.5); err != nil {
				t.Fatal(err)
			}
			if p := o.Predict(c); !(p >= 0 && p <= 1) {
				t.Fatalf("forecast %g of %s", p, b)
			}
		}
	})
}

// softplus is ln(1 + eˣ).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// TestOnlineWeights: a weight of 1 is none, a small whole one is nearly as many rows, and none moves θ beyond what a
// certain outcome would.
func TestOnlineWeights(t *testing.T) {
	set := OnlineSettings{Calibeating: Plain, Gamma: .4, Memory: 400}
	one, same, twice, heavy := newOnline(t, set), newOnline(t, set), newOnline(t, set), newOnline(t, set)
	rng := rand.New(rand.NewPCG(8, 8))
	for i := range 2000 {
		c, right := .5+.5*rng.Float64(), rng.Float64() < .6
		err := errors.Join(one.Update(c, right), same.UpdateWeighted(c, right, 1), heavy.UpdateWeighted(c, right, 2))
		for range 2 {
			err = errors.Join(err, twice.Update(c, right))
		}
		if err != nil {
			t.Fatal(err)
		}
		if one.theta != same.theta || one.a != same.a {
			t.Fatalf("row %d: θ %v, A %v, with a weight of 1 %v, %v", i, one.theta, one.a, same.theta, same.a)
		}
		if d := math.Abs(twice.Predict(.9) - heavy.Predict(.9)); i > 100 && d > .03 {
			t.Fatalf("row %d: %.4f after every row twice, %.4f with a weight of 2", i, twice.Predict(.9),
				heavy.Predict(.9))
		}
	}
	if err := same.UpdateWeighted(.7, false, 1e12); err != nil || math.Hypot(same.theta[0], same.theta[1]) > 100 {
		t.Errorf("a weight of 1e12: %v, θ %v", err, same.theta)
	}
	keep := *one
	if err := one.UpdateWeighted(.7, true, 0); err != nil || one.theta != keep.theta || one.a != keep.a {
		t.Errorf("a weight of 0: %v, θ %v, was %v", err, one.theta, keep.theta)
	}
	for _, w := range []float64{-1, math.NaN(), math.Inf(1)} {
		if one.UpdateWeighted(.7, true, w) == nil {
			t.Errorf("a weight of %g is no error", w)
		}
	}
}
