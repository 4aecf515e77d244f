package acc

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/internal/testsize"
)

func newCurve() *TemperatureCurve { return &TemperatureCurve{} }

func curveRow(rng *rand.Rand) func(*TemperatureCurve) error {
	_, _, z := randRow(rng, 6)
	switch rng.IntN(12) {
	case 0:
		z[rng.IntN(6)] = 80
	case 1:
		z[rng.IntN(6)] = -math.MaxFloat32
	case 2:
		clear(z)
	}
	y, w := rng.IntN(6), randWeight(rng)
	return func(c *TemperatureCurve) error { return AddLogits(c, z, y, w) }
}

func TestTemperatureCurveLaws(t *testing.T) { testLaws(t, newCurve, curveRow) }
func FuzzTemperatureCurve(f *testing.F)     { fuzzDecoder(f, newCurve, curveRow) }
func curveOf(t testing.TB) *TemperatureCurve {
	return curveOfRows(t, 2, []float32{2, 0, 1, 3}, []int32{0, 0})
}

func curveOfRows[T kernel.Float](t testing.TB, k int, z []T, y []int32) *TemperatureCurve {
	t.Helper()
	c := newCurve()
	for i, y := range y {
		if err := AddLogits(c, z[i*k:(i+1)*k], int(y), 1); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestTemperatureCurvePoints compares value and slope at every point with the plain formula.
func TestTemperatureCurvePoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		_, _, z := randRow(rng, 2+rng.IntN(40))
		y, w := rng.IntN(len(z)), randWeight(rng)
		c := newCurve()
		if err := AddLogits(c, z, y, w); err != nil {
			t.Fatal(err)
		}
		for j := range CurvePoints {
			beta := curveBetas[j]
			top := math.Inf(-1)
			for _, v := range z {
				top = max(top, beta*float64(v))
			}
			var s, e float64
			for _, v := range z {
				x := math.Exp(beta*float64(v) - top)
				s += x
				e += x * float64(v)
			}
			nll, slope := math.Log(s)+top-beta*float64(z[y]), e/s-float64(z[y])
			// A unit of the fixed point, and the rounding of 1897 factors and of the plain formula.
			tol := unit + 1e-12*w*(math.Abs(top)+math.Abs(nll)+math.Abs(slope))
			if got := c.sums[j].nll.value(); math.Abs(got-w*nll) > tol {
				t.Fatalf("point %d: NLL got %v, want %v", j, got, w*nll)
			}
			if got := c.sums[j].slope.value(); math.Abs(got-w*slope) > tol {
				t.Fatalf("point %d: slope got %v, want %v", j, got, w*slope)
			}
		}
	}
}

func TestTemperatureCurveFloat64EqualsFloat32(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	a, b := newCurve(), newCurve()
	for range 100 {
		_, _, z := randRow(rng, 7)
		wide := make([]float64, len(z))
		for k, v := range z {
			wide[k] = float64(v)
		}
		if err := errors.Join(AddLogits(a, z, 3, 2), AddLogits(b, wide, 3, 2)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(encode(t, a), encode(t, b)) {
		t.Error("the same scores as float32 and as float64 give different sums")
	}
}

func TestTemperatureCurveBounds(t *testing.T) {
	f := func(name string, z []float64, y []int32, wantT float64, wantBound bool) {
		t.Helper()
		got, nll, onBound := curveOfRows(t, 2, z, y).Fit()
		if got != wantT || onBound != wantBound || !(nll >= 0) {
			t.Errorf("%s: got T %v, on bound %v, NLL %v, want T %v, %v", name, got, onBound, nll, wantT, wantBound)
		}
	}
	f("all right", []float64{1, 0, 0, 2}, []int32{0, 1}, 0.05, true)
	f("all right, |z| = 80", []float64{80, -80, -80, 80}, []int32{0, 1}, 0.05, true)
	f("all right, saturated", []float64{1e4, 0, 0, 1e4}, []int32{0, 1}, 0.05, true)
	f("all wrong", []float64{80, -80, -80, 80}, []int32{1, 0}, 20, true)
	f("all wrong, beyond float64", []float64{1e308, -1e308}, []int32{1}, 20, true)
	f("equal scores", []float64{3, 3, -1, -1}, []int32{0, 1}, 1, false)
	if tt, nll, _ := newCurve().Fit(); !math.IsNaN(tt) || !math.IsNaN(nll) {
		t.Errorf("no rows: got T %v, NLL %v, want NaN", tt, nll)
	}
	if got := curveOf(t).NLL(21); !math.IsNaN(got) {
		t.Errorf("NLL at T = 21: got %v, want NaN", got)
	}
}

func TestTemperatureCurveRejects(t *testing.T) {
	c := curveOf(t)
	want := encode(t, c)
	f := func(name string, err, is error) {
		t.Helper()
		if !errors.Is(err, is) || !bytes.Equal(encode(t, c), want) {
			t.Errorf("%s: got %v, want %v and no change", name, err, is)
		}
	}
	good := []float64{1, 2}
	for _, w := range []float64{0, -1, math.NaN(), 1 << 31} {
		f("weight", AddLogits(c, good, 0, w), ErrValue)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		f("score", AddLogits(c, []float64{0, x}, 0, 1), ErrValue)
		f("first score", AddLogits(c, []float32{float32(x), 0}, 0, 1), ErrValue)
	}
	f("label", AddLogits(c, good, 2, 1), ErrValue)
	f("negative label", AddLogits(c, good, -1, 1), ErrValue)
	f("one class", AddLogits(c, good[:1], 0, 1), ErrShape)
	f("overflow", errors.Join(AddLogits(c.Clone(), good, 0, 1), c.Merge(&TemperatureCurve{n: math.MaxInt64})), ErrOverflow)
	full := TemperatureCurve{}
	full.sums[5].nll = i128{math.MaxInt64, math.MaxUint64}
	f("overflow of a sum", c.Merge(&full), ErrOverflow)
}

func TestTemperatureCurveAllocatesNothing(t *testing.T) {
	_, _, z := randRow(rand.New(rand.NewPCG(1, 1)), 100)
	c := newCurve()
	if got := testing.AllocsPerRun(100, func() {
		if err := AddLogits(c, z, 1, 1); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("got %v allocations a row, want 0", got)
	}
}

// TestTemperatureCurveEncodedSize prints the sizes that docs/format.md quotes and fails where they grow by a tenth.
func TestTemperatureCurveEncodedSize(t *testing.T) {
	for rows, want := range map[int]int{100: 350, 10_000: 399} {
		rng := rand.New(rand.NewPCG(8, 8))
		c := newCurve()
		for range rows {
			_, _, z := randRow(rng, 10)
			if err := AddLogits(c, z, rng.IntN(10), 1); err != nil {
				t.Fatal(err)
			}
		}
		got := len(encode(t, c))
		t.Logf("%d rows: %d bytes", rows, got)
		if got > want*11/10 || got < want*9/10 {
			t.Errorf("%d rows: got %d bytes, want about %d", rows, got, want)
		}
	}
}

func BenchmarkTemperatureCurve(b *testing.B) {
	for _, k := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint("K=", k), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			const rows = 1 << 10
			var zs [rows][]float32
			for i := range zs {
				_, _, zs[i] = randRow(rng, k)
			}
			c := newCurve()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := AddLogits(c, zs[i%rows], 0, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The agreement that the interpolation is held to: what a refit by interpolation may differ by without anyone noticing.
const (
	refitT   = 1e-3
	refitNLL = 1e-6
)

// checkRefit compares with the fit on rows, of the scores multiplied by scale: that moves the optimum across the range.
func checkRefit(t *testing.T, k int, z []float32, y []int32, scale float32) {
	t.Helper()
	scaled := make([]float32, len(z))
	for i, v := range z {
		scaled[i] = v * scale
	}
	want, report, err := calibrator.FitTemperature(scaled, k, y, nil, calibrator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, nll, onBound := curveOfRows(t, k, scaled, y).Fit()
	tol := refitT * max(1, want.T())
	if math.Abs(got-want.T()) > tol || math.Abs(nll-report.NLLAfter) > refitNLL || onBound != report.OnBound {
		t.Errorf("scale %v: got T %.6f, NLL %.9f, on bound %v, want %.6f, %.9f, %v",
			scale, got, nll, onBound, want.T(), report.NLLAfter, report.OnBound)
	}
	t.Logf("scale %v: T %.6f off by %.1e, NLL %.6f off by %.1e", scale, want.T(), got-want.T(), report.NLLAfter, nll-report.NLLAfter)
}

func TestTemperatureCurveAgreesWithFitOnRealLogits(t *testing.T) {
	testsize.Slow(t)
	for _, f := range []struct {
		file string
		k    int
	}{{"c10_chenyaofo19_logits.npz", 10}, {"c100_chenyaofo_logits.npz", 100}} {
		arrays := realdata.Arrays(t, f.file)
		y := arrays["test_labels"].Int
		nets := 0
		for _, name := range slices.Sorted(maps.Keys(arrays)) {
			z := arrays[name].F32
			if z == nil {
				continue // the labels
			}
			first := nets == 0
			nets++
			t.Run(name, func(t *testing.T) {
				checkRefit(t, f.k, z, y, 1)
				const some = 2000 // rows are enough to move the optimum about
				for _, s := range []float32{.02, .05, .1, .2, .5, .7, 1.2, 1.5, 2, 3, 5, 8} {
					if first {
						checkRefit(t, f.k, z[:some*f.k], y[:some], s)
					}
				}
			})
		}
		if nets < 2 {
			t.Errorf("%s: %d networks, want several", f.file, nets)
		}
	}
}
