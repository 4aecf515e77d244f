package metric_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

func TestBinIndexOnEveryEdge(t *testing.T) {
	for _, m := range []int{1, 2, 7, 10, 12, 15, 24, 30, 50, 3600} {
		for i := range m {
			edge := float64(i+1) / float64(m)
			if got := metric.BinIndex(edge, m); got != i {
				t.Fatalf("M=%d: upper edge %v: got bin %d, want %d", m, edge, got, i)
			}
			if i+1 < m {
				if got := metric.BinIndex(math.Nextafter(edge, 2), m); got != i+1 {
					t.Fatalf("M=%d: above %v: got bin %d, want %d", m, edge, got, i+1)
				}
			}
		}
		for _, c := range []float64{0, -1, 5e-324} {
			if got := metric.BinIndex(c, m); got != 0 {
				t.Errorf("M=%d: %g: got bin %d, want 0", m, c, got)
			}
		}
		if got := metric.BinIndex(1.5, m); got != m-1 {
			t.Errorf("M=%d: 1.5: got bin %d", m, got)
		}
	}
}

func TestECEByHand(t *testing.T) {
	// Two bins: (0, ½] has .5 wrong; (½, 1] has .75 right, 1 right, 1 wrong.
	c, a := []float64{0.5, 0.75, 1, 1}, []bool{false, true, true, false}
	bins := metric.EqualWidth(c, a, nil, 2)
	want := []metric.Bin{{N: 1, W: 1, W2: 1, SumC: 0.5}, {N: 3, W: 3, W2: 3, SumC: 2.75, SumA: 2}}
	for i := range want {
		if bins[i] != want[i] {
			t.Errorf("bin %d: got %+v, want %+v", i, bins[i], want[i])
		}
	}
	near(t, "ece", metric.ECE(bins), (0.5+0.75)/4, tol)
	near(t, "ece_l2", metric.ECEL2(bins), math.Sqrt((0.25+0.75*0.75/3)/4), tol)
	near(t, "mce", metric.MCE(bins), 0.5, tol)
	near(t, "ks", metric.KS(metric.SortWeighted(c, a, nil)), 1.25/4, tol)
}

func TestWeightsAreRepetitions(t *testing.T) {
	c, a := randomRows(60, 0, 4)
	var c3, w []float64
	var a3 []bool
	for i := range c {
		w = append(w, float64(i%3))
		for range i % 3 {
			c3, a3 = append(c3, c[i]), append(a3, a[i])
		}
	}
	near(t, "ece", metric.ECE(metric.EqualWidth(c, a, w, 15)), metric.ECE(metric.EqualWidth(c3, a3, nil, 15)), tol)
	near(t, "smece", metric.SmECE(c, a, w), metric.SmECE(c3, a3, nil), 1e-8)
	s, s3 := metric.SoftBins(c, a, w, 15, .01), metric.SoftBins(c3, a3, nil, 15, .01)
	near(t, "sbece_bin", metric.SBECEBin(s, 2), metric.SBECEBin(s3, 2), tol)
	near(t, "sbece_lb", metric.SBECELBRows(c, a, w, metric.SoftNorm{Bins: 15, Temperature: .01, P: 3}),
		metric.SBECELBRows(c3, a3, nil, metric.SoftNorm{Bins: 15, Temperature: .01, P: 3}), tol)
}

func TestClassWise(t *testing.T) {
	// K = 3 with class 2 absent; .5 lies on the edge of two bins and belongs to the lower one.
	cw := metric.NewClassWise(3, 2)
	cw.AddWeighted([]float64{0.5, 0.5, 0}, 0, 1)
	cw.AddWeighted([]float64{0.25, 0.75, 0}, 1, 1)
	// Class 0: one bin with Σp .75, 1 hit; class 1: (.5, miss) and (.75, hit); class 2: p = 0 is in no bin.
	near(t, "cwece", cw.ECE(), (0.25+0.5+0.25)/2/3, tol)
	near(t, "cwece_l2", cw.ECEL2(), math.Sqrt((2*0.125*0.125+0.25+0.0625)/2/3), tol)
	for _, b := range cw.Bins(2) {
		if b.N != 0 {
			t.Errorf("class 2: p = 0 was counted: %+v", b)
		}
	}
}

func TestWilson(t *testing.T) {
	lo, hi := metric.Wilson(8, 10) // the textbook's 0.490, 0.943
	near(t, "lo", lo, 0.4901625, 1e-6)
	near(t, "hi", hi, 0.9433178, 1e-6)
	for n := 1.0; n < 1000; n *= 3 {
		for _, hits := range []float64{0, n} {
			lo, hi := metric.Wilson(hits, n)
			if !(0 <= lo && lo <= hits/n && hits/n <= hi && hi <= 1 && hi-lo > 0) {
				t.Errorf("%g of %g: [%g, %g]", hits, n, lo, hi)
			}
		}
	}
	if lo, hi := metric.Wilson(0, 0); lo != 0 || hi != 1 {
		t.Errorf("no rows: [%g, %g]", lo, hi)
	}
}

func calibratedBins(n int, m int, shift float64, rng *rand.Rand) []metric.Bin {
	c, a := make([]float64, n), make([]bool, n)
	for i := range c {
		c[i] = 0.3 + 0.7*rng.Float64()
		a[i] = rng.Float64() < c[i]-shift
	}
	return metric.EqualWidth(c, a, nil, m)
}

func TestResample(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var null, observed float64
	over := 0
	const runs = 200
	for range runs {
		bins := calibratedBins(2000, 15, 0, rng)
		iv := metric.Resample(bins, 400, 1)
		ece := metric.ECE(bins)
		if !(iv.Lo <= ece && ece <= iv.Hi && iv.Lo < iv.Hi && iv.Null < iv.NullHi) {
			t.Fatalf("ece %g: %+v", ece, iv)
		}
		null += iv.Null / runs
		observed += ece / runs
		if ece > iv.NullHi {
			over++
		}
	}
	// The null's mean is that of calibrated models, and they exceed its 95 % quantile in 5 % of the runs
	// (binomial: 10 ± 3.1 of 200; 4 deviations allowed).
	if math.Abs(null/observed-1) > 0.05 || over > 23 {
		t.Errorf("calibrated: mean ece %g, null %g, %d of %d above the quantile", observed, null, over, runs)
	}
}

func TestResampleIntervalCovers(t *testing.T) {
	// Far from 0 the bias is small, and the interval must cover the truth (.2, in every bin) in about 95 %.
	rng := rand.New(rand.NewPCG(7, 8))
	covered := 0
	const runs = 300
	for range runs {
		iv := metric.Resample(calibratedBins(3000, 10, 0.2, rng), 400, 2)
		if iv.Lo <= 0.2 && 0.2 <= iv.Hi {
			covered++
		}
	}
	if covered < 270 || covered > 298 { // 285 expected, deviation 3.8
		t.Errorf("covered %d of %d, want about 285", covered, runs)
	}
}

func TestResampleIsDeterministicAndSafe(t *testing.T) {
	bins := calibratedBins(500, 15, 0.1, rand.New(rand.NewPCG(1, 1)))
	if a, b := metric.Resample(bins, 100, 3), metric.Resample(bins, 100, 3); a != b {
		t.Errorf("same seed: %+v and %+v", a, b)
	}
	null, hi := metric.NullECE(bins, 100, 3)
	if all := metric.Resample(bins, 100, 3); null != all.Null || hi != all.NullHi {
		t.Errorf("NullECE is %v, %v, want those of %+v", null, hi, all)
	}
	if a, b := metric.Resample(bins, 100, 3), metric.Resample(bins, 100, 4); a == b {
		t.Error("another seed gave the same")
	}
	if iv := metric.Resample(make([]metric.Bin, 15), 100, 1); !math.IsNaN(iv.Null) || !math.IsNaN(iv.Hi) {
		t.Errorf("no rows: %+v", iv)
	}
	// All right at confidence 1, a billion rows, and one row.
	for _, b := range []metric.Bin{{N: 5, W: 5, SumC: 5, SumA: 5}, {N: 1e9, W: 1e9, SumC: 7e8, SumA: 6e8},
		{N: 1, W: 1, SumC: 0.4, SumA: 1}} {
		iv, ece := metric.Resample([]metric.Bin{b}, 100, 1), metric.ECE([]metric.Bin{b})
		if !(0 <= iv.Lo && iv.Lo <= ece && ece <= iv.Hi && iv.Hi <= 1 && iv.Null >= 0) {
			t.Errorf("%+v: ece %g, %+v", b, ece, iv)
		}
	}
}

func BenchmarkResample(b *testing.B) {
	bins := calibratedBins(10000, 15, 0.1, rand.New(rand.NewPCG(1, 1)))
	for b.Loop() {
		metric.Resample(bins, 200, 1)
	}
}
