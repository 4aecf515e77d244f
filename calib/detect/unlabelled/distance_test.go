package unlabelled

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func histogram(rng *rand.Rand, n, k int, shape float64) []float64 {
	h := make([]float64, k)
	for range n {
		h[int((1-math.Pow(rng.Float64(), shape))*float64(k)*(1-1e-12))]++
	}
	return h
}

// TestNull: on samples of one distribution, of several sizes, the thresholds are passed about as often as they say, and
// the mean is about Null.
func TestNull(t *testing.T) {
	const trials, alpha = 600, .05
	for _, size := range [][2]int{{2000, 2000}, {20_000, 300}, {100, 100}} {
		rng := rand.New(rand.NewPCG(1, uint64(size[1])))
		over, value, null, p := map[string]int{}, map[string]float64{}, map[string]float64{}, map[string]int{}
		for range trials {
			d, err := Compare(histogram(rng, size[0], 50, 2), histogram(rng, size[1], 50, 2), alpha)
			if err != nil {
				t.Fatal(err)
			}
			for name, x := range map[string]Distance{"ks": d.KS, "wasserstein": d.Wasserstein, "psi": d.PSI,
				"js": d.JensenShannon} {
				if x.Exceeds() {
					over[name]++
				}
				if x.P < alpha {
					p[name]++
				}
				value[name] += x.Value / trials
				null[name] += x.Null / trials
			}
		}
		t.Logf("%v rows: over the threshold %v of %d; means %v, said %v", size, over, trials, value, null)
		for name, n := range over {
			if n > trials*8/100 { // 5 % + 3.4 standard errors
				t.Errorf("%v rows, %s: %d of %d over the threshold, want at most about 5 %%", size, name, n, trials)
			}
			if p[name] != n {
				t.Errorf("%v rows, %s: %d over the threshold, %d with p < .05", size, name, n, p[name])
			}
		}
		for name, m := range value {
			if m > 1.15*null[name] || m < .7*null[name] {
				t.Errorf("%v rows, %s: mean distance %v, said %v", size, name, m, null[name])
			}
		}
		if over["psi"] < trials*2/100 {
			t.Errorf("%v rows: PSI passes its threshold %d times of %d: not its 5 %%", size, over["psi"], trials)
		}
	}
}

// TestShiftIsSeen: all four see a clear shift; Wasserstein and KS by hand on two bins.
func TestShiftIsSeen(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	d, err := Compare(histogram(rng, 5000, 50, 2), histogram(rng, 2000, 50, 1.5), .001)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]Distance{"ks": d.KS, "wasserstein": d.Wasserstein, "psi": d.PSI,
		"js": d.JensenShannon} {
		if !x.Exceeds() || x.P > .001 {
			t.Errorf("%s: %+v, want above the threshold", name, x)
		}
	}
	d, err = Compare([]float64{900, 100}, []float64{600, 400}, .05)
	if err != nil {
		t.Fatal(err)
	}
	p, q := []float64{900.5 / 1001, 100.5 / 1001}, []float64{600.5 / 1001, 400.5 / 1001}
	var psi, js float64
	for i := range p {
		psi += (p[i] - q[i]) * math.Log(p[i]/q[i])
		r := (p[i] + q[i]) / 2
		js += (p[i]*math.Log(p[i]/r) + q[i]*math.Log(q[i]/r)) / 2
	}
	for name, c := range map[string][2]float64{"ks": {d.KS.Value, .3}, "wasserstein": {d.Wasserstein.Value, .15},
		"psi": {d.PSI.Value, psi}, "js": {d.JensenShannon.Value, js}} {
		if math.Abs(c[0]-c[1]) > 1e-12 {
			t.Errorf("%s: got %v, want %v", name, c[0], c[1])
		}
	}
}

// TestKolmogorov against tables: P(K > 1.3581) = .05, P(K > 1.6276) = .01.
func TestKolmogorov(t *testing.T) {
	for x, want := range map[float64]float64{1.3581: .05, 1.6276: .01, 0: 1, .1: 1, 9: 0} {
		if got := kolmogorov(x); math.Abs(got-want) > 2e-5 {
			t.Errorf("P(K > %v) is %v, want %v", x, got, want)
		}
	}
}

// TestOneBin: all rows at one confidence, before and after.
func TestOneBin(t *testing.T) {
	h := make([]float64, 10)
	h[9] = 100
	d, err := Compare(h, h, .05)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]Distance{"ks": d.KS, "wasserstein": d.Wasserstein, "psi": d.PSI,
		"js": d.JensenShannon} {
		if x.Value != 0 || x.Exceeds() || x.P != 1 {
			t.Errorf("%s: %+v, want 0 and no alarm", name, x)
		}
	}
}

func TestCompareRefused(t *testing.T) {
	ok := []float64{50, 50}
	for name, c := range map[string]struct {
		ref, cur []float64
		alpha    float64
	}{
		"shape": {ok, []float64{1, 2, 50}, .05}, "one bin": {[]float64{50}, []float64{50}, .05},
		"few":      {ok, []float64{1, 2}, .05},
		"negative": {ok, []float64{100, -1}, .05}, "NaN": {[]float64{math.NaN(), 90}, ok, .05},
		"infinite": {[]float64{math.Inf(1), 1}, ok, .05},
		"alpha":    {ok, ok, 0}, "alpha 1": {ok, ok, 1},
	} {
		if _, err := Compare(c.ref, c.cur, c.alpha); !errors.Is(err, ErrInput) {
			t.Errorf("%s: error %v, want ErrInput", name, err)
		}
	}
}
