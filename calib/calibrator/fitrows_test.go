package calibrator_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/internal/testsize"
)

const (
	// nllTol is how far the NLL at the fitted T may be above the least one, and logTol how far ln T may be off.
	nllTol = 1e-9
	logTol = 1e-6
	// meanTol is what the means of the report may be off, relatively, on float32 rows: the kernel's accuracy.
	meanTol = 1e-6
)

// large returns n rows of float32 logits with gaps of the given size whose labels are drawn from softmax(z/trueT).
func large(n, k int, size, trueT float64, seed uint64) ([]float32, []int32) {
	rng := rand.New(rand.NewPCG(seed, 9))
	z, y := make([]float32, n*k), make([]int32, n)
	for i := range y {
		row := z[i*k : (i+1)*k]
		best := math.Inf(-1)
		for c := range row {
			row[c] = float32(size * rng.NormFloat64())
			if c == i%k {
				row[c] += float32(3 * size)
			}
			if g := float64(row[c])/trueT - math.Log(rng.ExpFloat64()); g > best {
				best, y[i] = g, int32(c)
			}
		}
	}
	return z, y
}

// checkFloat32 compares the fit of float32 rows with that of the same rows in float64, whose passes are the textbook's.
func checkFloat32(t *testing.T, z []float32, k int, y []int32, w []float64) {
	t.Helper()
	wide := make([]float64, len(z))
	for i, v := range z {
		wide[i] = float64(v)
	}
	want, wr, err := calibrator.FitTemperature(calibrator.NewData(wide, k, y, w), calibrator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, r, err := calibrator.FitTemperature(calibrator.NewData(z, k, y, w), calibrator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := math.Abs(math.Log(got.T() / want.T())); d > logTol {
		t.Errorf("T %.9f, want %.9f: %.2g off in ln T", got.T(), want.T(), d)
	}
	at := meanNLL(z, k, y, w, got.T())
	if above := at - meanNLL(z, k, y, w, want.T()); above > nllTol {
		t.Errorf("NLL %.2g above the least", above)
	}
	if r.Rows != wr.Rows || r.Classes != wr.Classes || r.OnBound != wr.OnBound || r.Flat != wr.Flat {
		t.Errorf("got %+v, want %+v", r, wr)
	}
	if math.Abs(r.NLLBefore-wr.NLLBefore) > meanTol*wr.NLLBefore || math.Abs(r.NLLAfter-at) > meanTol*at {
		t.Errorf("NLL: got %.12f → %.12f, want %.12f → %.12f", r.NLLBefore, r.NLLAfter, wr.NLLBefore, at)
	}
}

func TestFitFloat32(t *testing.T) {
	testsize.Slow(t)
	for _, c := range []struct {
		name        string
		n, k        int
		size, trueT float64
		passes      int
	}{
		{"ten classes", 60_000, 10, 3, 2, 6},
		{"cold", 60_000, 10, 1, 0.3, 6},
		{"hundred classes", 6_000, 100, 4, 1.5, 20},
		{"thousand classes", 2_000, 1000, 2, 1.2, 20},
		{"nearly uniform", 40_000, 10, 0.01, 1, 100},
		{"huge", 40_000, 10, 300, 15, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			z, y := large(c.n, c.k, c.size, c.trueT, 3)
			checkFloat32(t, z, c.k, y, nil)
			_, r, _ := calibrator.FitTemperature(calibrator.NewData(z, c.k, y, nil), calibrator.Options{})
			if r.Iterations > c.passes {
				t.Errorf("%d passes, want at most %d", r.Iterations, c.passes)
			}
			w := make([]float64, c.n)
			for i := range w {
				w[i] = float64(i%7) / 3
			}
			checkFloat32(t, z, c.k, y, w)
		})
	}
}

// TestFitFloat32SampleMisleads has rows whose strided sample is, at best, half of the story.
func TestFitFloat32SampleMisleads(t *testing.T) {
	z, y := large(40_000, 10, 3, 1, 5)
	for i := range y[:20_000] { // a half that is right, and another that is no better than chance
		y[i] = int32(i % 10)
		z[i*10+i%10] += 40
	}
	for i := 20_000; i < len(y); i++ {
		y[i] = int32(i * 7 % 10)
	}
	checkFloat32(t, z, 10, y, nil)
	w := make([]float64, len(y))
	w[17], w[30_000], w[30_001] = 1, 1, 1 // hardly any row of the sample counts
	checkFloat32(t, z, 10, y, w)
}

func TestFitFloat32Bounds(t *testing.T) {
	z, y := large(40_000, 10, 3, 1, 6)
	for i := range y {
		best := 0
		for j, v := range z[i*10 : i*10+10] {
			if v > z[i*10+best] {
				best = j
			}
		}
		y[i] = int32(best)
	}
	f := func(want float64) {
		t.Helper()
		got, r, err := calibrator.FitTemperature(calibrator.NewData(z, 10, y, nil), calibrator.Options{})
		if err != nil || !r.OnBound || math.Abs(got.T()-want) > 0 {
			t.Errorf("got T %g, %+v, %v, want %g on the bound", got.T(), r, err, want)
		}
		checkFloat32(t, z, 10, y, nil)
	}
	f(calibrator.MinTemperature)
	for i := range y {
		y[i] = (y[i] + 1) % 10
	}
	f(calibrator.MaxTemperature)
	clear(z)
	if _, r, err := calibrator.FitTemperature(calibrator.NewData(z, 10, y, nil), calibrator.Options{}); err != nil ||
		!r.Flat {
		t.Errorf("equal scores: got %+v, %v, want flat", r, err)
	}
}

func TestFitFloat32Errors(t *testing.T) {
	z, y := large(40_000, 10, 3, 1, 6)
	narrow := func() error {
		_, _, err := calibrator.FitTemperature(calibrator.NewData(z, 10, y, nil), calibrator.Options{})
		return err
	}
	z[123_456] = float32(math.NaN())
	if err := narrow(); err == nil ||
		err.Error() != "fit temperature: row 12345: score 6 is NaN, allowed are finite values" {
		t.Errorf("NaN: got %v", err)
	}
	z[123_456], y[7] = 0, 10
	if err := narrow(); err == nil || err.Error() != "fit temperature: row 7: label 10, allowed 0..9" {
		t.Errorf("label: got %v", err)
	}
}

func TestFitFloat32Probabilities(t *testing.T) {
	z, y := large(40_000, 10, 3, 2, 8)
	q, wide := make([]float32, len(z)), make([]float64, len(z))
	p := make([]float64, 10)
	for i := range y {
		for j, v := range z[i*10 : i*10+10] {
			p[j] = float64(v)
		}
		calibrator.Identity{}.Apply(p, p)
		for j, v := range p {
			q[i*10+j] = float32(v)
			wide[i*10+j] = float64(q[i*10+j])
		}
	}
	want, _, err := calibrator.FitTemperature(calibrator.NewData(wide, 10, y, nil), calibrator.Options{Probs: true})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := calibrator.FitTemperature(calibrator.NewData(q, 10, y, nil), calibrator.Options{Probs: true})
	if err != nil || math.Abs(math.Log(got.T()/want.T())) > logTol {
		t.Errorf("got T %.9f, %v, want %.9f", got.T(), err, want.T())
	}
}

// TestFitFloat32RealLogits repeats the rows: the optimum is that of one copy.
func TestFitFloat32RealLogits(t *testing.T) {
	for _, c := range []struct {
		file, scores, labels string
		k, times             int
	}{
		{"c10jpeg_resnet_logits.npz", "resnet20", "test_labels", 10, 4},
		{"c10jpeg_resnet_logits.npz", "resnet20_gauss_blur_s5", "test_labels", 10, 4},
		{"c100_chenyaofo_logits.npz", "vgg16_bn", "test_labels", 100, 1},
		{"mnist_cnn_metacal.npz", "train_logits", "train_labels", 10, 1},
	} {
		t.Run(c.scores, func(t *testing.T) {
			z, y := realdata.Scores(t, c.file, c.scores, c.labels)
			for n := c.times; n > 1; n /= 2 {
				z, y = append(z, z...), append(y, y...)
			}
			checkFloat32(t, z, c.k, y, nil)
		})
	}
}

func BenchmarkFitTemperature(b *testing.B) {
	for _, c := range []struct {
		name string
		n, k int
	}{{"1M×10", 1_000_000, 10}, {"50k×1000", 50_000, 1000}} {
		b.Run(c.name, func(b *testing.B) {
			z, y := benchRows(c.n, c.k)
			b.SetBytes(int64(4 * len(z)))
			var r calibrator.FitReport
			for b.Loop() {
				var err error
				if _, r, err = calibrator.FitTemperature(calibrator.NewData(z, c.k, y, nil),
					calibrator.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(r.Iterations), "passes")
		})
	}
}

// benchRows are logits that are quickly made, of about 80 % accuracy and over-confident.
func benchRows(n, k int) ([]float32, []int32) {
	rng := rand.New(rand.NewPCG(1, 1))
	noise := make([]float32, 1<<16)
	for i := range noise {
		noise[i] = float32(3 * rng.NormFloat64())
	}
	z, y := make([]float32, n*k), make([]int32, n)
	for i := range y {
		row := z[i*k : (i+1)*k]
		copy(row, noise[rng.IntN(len(noise)-k):])
		y[i] = int32(rng.IntN(k))
		row[y[i]] += 10
		if rng.IntN(5) == 0 {
			y[i] = int32(rng.IntN(k))
		}
	}
	return z, y
}
