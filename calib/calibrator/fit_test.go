package calibrator_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/realdata"
)

// meanNLL is the textbook mean NLL of softmax(z/T).
func meanNLL[T float32 | float64](z []T, k int, y []int32, w []float64, t float64) float64 {
	var sum, total float64
	for i, yi := range y {
		row := z[i*k : (i+1)*k]
		top := math.Inf(-1)
		for _, v := range row {
			top = max(top, float64(v)/t)
		}
		var s float64
		for _, v := range row {
			s += math.Exp(float64(v)/t - top)
		}
		wi := 1.0
		if w != nil {
			wi = w[i]
		}
		total += wi
		sum += wi * (top + math.Log(s) - float64(row[yi])/t)
	}
	return sum / total
}

// gridMinimum searches ln T by golden section between grid points, with nothing but values of the NLL.
func gridMinimum(nll func(t float64) float64) float64 {
	const steps = 30
	lo, hi := math.Log(calibrator.MinTemperature), math.Log(calibrator.MaxTemperature)
	at := func(i int) float64 { return lo + (hi-lo)*float64(i)/steps }
	best := 0
	for i := 1; i <= steps; i++ {
		if nll(math.Exp(at(i))) < nll(math.Exp(at(best))) {
			best = i
		}
	}
	a, b := at(max(0, best-1)), at(min(steps, best+1))
	const g = 0.6180339887498949
	for range 40 {
		x1, x2 := b-g*(b-a), a+g*(b-a)
		if nll(math.Exp(x1)) < nll(math.Exp(x2)) {
			b = x2
		} else {
			a = x1
		}
	}
	return math.Exp((a + b) / 2)
}

func synthetic(n, k int, trueT float64, seed uint64) ([]float64, []int32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	z, y := make([]float64, n*k), make([]int32, n)
	for i := range y {
		row := z[i*k : (i+1)*k]
		best := math.Inf(-1)
		for c := range row {
			row[c] = 4 * rng.NormFloat64()
			if g := row[c]/trueT - math.Log(rng.ExpFloat64()); g > best { // Gumbel maximum draws from softmax(z/T)
				best, y[i] = g, int32(c)
			}
		}
	}
	return z, y
}

// gridTol is what a search by values can resolve: the NLL is flat to 1e-16 within 1e-8 of ln T times curvature.
const gridTol = 3e-7

func TestFitAgainstGridSearch(t *testing.T) {
	for _, trueT := range []float64{0.2, 0.7, 1, 2.5, 9} {
		for _, k := range []int{2, 10} {
			z, y := synthetic(400, k, trueT, 7)
			w := make([]float64, len(y))
			for i := range w {
				w[i] = float64(i % 3)
			}
			for _, w := range [][]float64{nil, w} {
				got, r, err := calibrator.FitTemperature(calibrator.NewData(z, k, y, w), calibrator.Options{})
				if err != nil || r.OnBound || r.Flat {
					t.Fatalf("T=%g K=%d: %+v, %v", trueT, k, r, err)
				}
				want := gridMinimum(func(t float64) float64 { return meanNLL(z, k, y, w, t) })
				if math.Abs(math.Log(got.T()/want)) > gridTol {
					t.Errorf("T=%g K=%d: got %.9f, want %.9f", trueT, k, got.T(), want)
				}
				checkReport(t, r, meanNLL(z, k, y, w, 1), meanNLL(z, k, y, w, got.T()))
				checkStationary(t, got.T(), func(t float64) float64 { return meanNLL(z, k, y, w, t) })
			}
		}
	}
}

func checkReport(t *testing.T, r calibrator.FitReport, before, after float64) {
	t.Helper()
	if math.Abs(r.NLLBefore-before) > 1e-12 || math.Abs(r.NLLAfter-after) > 1e-12 || r.NLLAfter > r.NLLBefore {
		t.Errorf("NLL: got %.15f → %.15f, want %.15f → %.15f", r.NLLBefore, r.NLLAfter, before, after)
	}
	if r.Iterations > 15 {
		t.Errorf("iterations: got %d, want at most 15", r.Iterations)
	}
}

// checkStationary compares the numeric slope at T with that a thousandth away, where it must have its sign.
func checkStationary(t *testing.T, temp float64, nll func(float64) float64) {
	t.Helper()
	slope := func(u float64) float64 {
		const h = 1e-4
		return (nll(math.Exp(u+h)) - nll(math.Exp(u-h))) / (2 * h)
	}
	u := math.Log(temp)
	at, left, right := slope(u), slope(u-1e-3), slope(u+1e-3)
	if !(left < 0 && right > 0) || math.Abs(at) > 0.01*(right-left) {
		t.Errorf("slope at T=%g: %g, left %g, right %g", temp, at, left, right)
	}
}

func TestFitOnRealLogits(t *testing.T) {
	for _, c := range []struct {
		file, scores string
		k            int
	}{
		{"c10jpeg_resnet_logits.npz", "resnet20", 10},
		{"c10jpeg_resnet_logits.npz", "resnet20_gauss_noise_s3", 10},
		{"c100_chenyaofo_logits.npz", "resnet56", 100},
	} {
		t.Run(c.scores, func(t *testing.T) {
			z, y := realdata.Scores(t, c.file, c.scores, "test_labels")
			n := 50_000 / c.k // of 10,000: the search by values is slow
			z, y = z[:n*c.k], y[:n]
			got, r, err := calibrator.FitTemperature(calibrator.NewData(z, c.k, y, nil), calibrator.Options{})
			if err != nil || r.OnBound || r.Rows != n || r.Classes != c.k {
				t.Fatalf("%+v, %v", r, err)
			}
			nll := func(t float64) float64 { return meanNLL(z, c.k, y, nil, t) }
			if want := gridMinimum(nll); math.Abs(math.Log(got.T()/want)) > gridTol {
				t.Errorf("got T %.9f, want %.9f", got.T(), want)
			}
			checkReport(t, r, nll(1), nll(got.T()))
		})
	}
}

func TestFitOnBounds(t *testing.T) {
	f := func(name string, z []float64, y []int32, want float64) {
		t.Helper()
		got, r, err := calibrator.FitTemperature(calibrator.NewData(z, 2, y, nil), calibrator.Options{})
		if err != nil || !r.OnBound || got.T() != want {
			t.Errorf("%s: got T %g, %+v, %v; want %g on the bound", name, got.T(), r, err, want)
		}
		if r.NLLAfter > r.NLLBefore || math.IsNaN(r.NLLAfter) {
			t.Errorf("%s: NLL %g → %g", name, r.NLLBefore, r.NLLAfter)
		}
	}
	f("all right", []float64{1, 0, 0, 2}, []int32{0, 1}, calibrator.MinTemperature)
	f("all right, |z|=80", []float64{80, -80, -80, 80}, []int32{0, 1}, calibrator.MinTemperature)
	f("all right, saturated", []float64{1e4, 0, 0, 1e4}, []int32{0, 1}, calibrator.MinTemperature)
	f("all right, one row", []float64{0.001, 0}, []int32{0}, calibrator.MinTemperature)
	f("all wrong", []float64{80, -80, -80, 80}, []int32{1, 0}, calibrator.MaxTemperature)
	f("all wrong, huge", []float64{3.4e38, 0}, []int32{1}, calibrator.MaxTemperature)
}

func TestFitSaturatedRowsDoNotStopIt(t *testing.T) {
	// One wrong row in four: p = σ(gap/T) must be 3/4. A gap of 20 gives T = 20/ln 3 = 18.2, from a start where
	// every row is saturated; a gap of 80 would need 72.8, beyond the bound.
	z := []float64{20, 0, 20, 0, 20, 0, 0, 20}
	got, r, err := calibrator.FitTemperature(calibrator.NewData(z, 2, []int32{0, 0, 0, 0}, nil), calibrator.Options{})
	if want := 20 / math.Log(3); err != nil || r.OnBound || math.Abs(math.Log(got.T()/want)) > 1e-7 {
		t.Errorf("got T %.9f, %+v, %v; want %.9f", got.T(), r, err, want)
	}
	if r.Classes != 1 || r.Rows != 4 {
		t.Errorf("one class: got %+v", r)
	}
	for i := range z {
		z[i] *= 4
	}
	if got, r, _ = calibrator.FitTemperature(calibrator.NewData(z, 2, []int32{0, 0, 0, 0}, nil),
		calibrator.Options{}); !r.OnBound || got.T() != calibrator.MaxTemperature {
		t.Errorf("got T %g, %+v; want the upper bound", got.T(), r)
	}
}

func TestFitFlat(t *testing.T) {
	got, r, err := calibrator.FitTemperature(calibrator.NewData(make([]float32, 12), 3, []int32{0, 1, 2, 0}, nil),
		calibrator.Options{})
	if err != nil || !r.Flat || r.OnBound || math.Abs(got.T()-1) > 0 {
		t.Errorf("got T %g, %+v, %v; want 1, flat", got.T(), r, err)
	}
}

func TestFitProbabilities(t *testing.T) {
	z, y := synthetic(300, 4, 2, 3)
	q := make([]float64, len(z))
	for i := range y {
		calibrator.Identity{}.Apply(q[i*4:(i+1)*4], z[i*4:(i+1)*4])
	}
	want, _, _ := calibrator.FitTemperature(calibrator.NewData(z, 4, y, nil), calibrator.Options{})
	got, _, err := calibrator.FitTemperature(calibrator.NewData(q, 4, y, nil), calibrator.Options{Probs: true})
	if err != nil || math.Abs(math.Log(got.T()/want.T())) > 2e-7 {
		t.Errorf("got T %.9f, %v; want %.9f", got.T(), err, want.T())
	}
	// A label of probability zero is finite: float32's smallest value.
	_, r, err := calibrator.FitTemperature(calibrator.NewData([]float32{1, 0, .5, .5, .75, .25}, 2, []int32{1, 0, 0},
		nil), calibrator.Options{Probs: true})
	if err != nil || math.IsInf(r.NLLBefore, 0) || math.IsNaN(r.NLLAfter) {
		t.Errorf("zero probability: %+v, %v", r, err)
	}
}

func TestFitErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, c := range map[string]struct {
		z    []float64
		k    int
		y    []int32
		w    []float64
		opts calibrator.Options
	}{
		"no rows":         {nil, 2, nil, nil, calibrator.Options{}},
		"one class":       {[]float64{1}, 1, []int32{0}, nil, calibrator.Options{}},
		"lengths":         {[]float64{1, 2, 3}, 2, []int32{0}, nil, calibrator.Options{}},
		"NaN":             {[]float64{1, nan}, 2, []int32{0}, nil, calibrator.Options{}},
		"infinite":        {[]float64{1, -inf}, 2, []int32{0}, nil, calibrator.Options{}},
		"label":           {[]float64{1, 2}, 2, []int32{2}, nil, calibrator.Options{}},
		"no label":        {[]float64{1, 2}, 2, []int32{-1}, nil, calibrator.Options{}},
		"weights":         {[]float64{1, 2}, 2, []int32{0}, []float64{1, 1}, calibrator.Options{}},
		"negative weight": {[]float64{1, 2}, 2, []int32{0}, []float64{-1}, calibrator.Options{}},
		"NaN weight":      {[]float64{1, 2}, 2, []int32{0}, []float64{nan}, calibrator.Options{}},
		"no weight":       {[]float64{1, 2}, 2, []int32{0}, []float64{0}, calibrator.Options{}},
		"not probs":       {[]float64{1, 2}, 2, []int32{0}, nil, calibrator.Options{Probs: true}},
	} {
		if _, _, err := calibrator.FitTemperature(calibrator.NewData(c.z, c.k, c.y, c.w), c.opts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkFit(b *testing.B) {
	z, y := synthetic(10000, 10, 2, 3)
	for b.Loop() {
		if _, _, err := calibrator.FitTemperature(calibrator.NewData(z, 10, y, nil), calibrator.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
