package compare

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
)

func numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestSplitAndFolds: every row is on exactly one side. The seed decides which, and other rows do not matter.
func TestSplitAndFolds(t *testing.T) {
	for _, n := range []int{2, 3, 10, 1001} {
		for _, share := range []float64{1e-9, 0.3, 0.5, 1 - 1e-9} {
			fit, held := Split(numbers(n), share, 7)
			if want := min(max(int(math.Round(share*float64(n))), 1), n-1); len(held) != want {
				t.Errorf("%d rows, share %g: %d held out, want %d", n, share, len(held), want)
			}
			if all := slices.Sorted(slices.Values(slices.Concat(fit, held))); !slices.Equal(all, numbers(n)) {
				t.Errorf("%d rows, share %g: the two sides are %v", n, share, all)
			}
			if again, _ := Split(numbers(n), share, 7); !slices.Equal(fit, again) {
				t.Errorf("%d rows: a second split differs", n)
			}
		}
	}
	a, _ := Split(numbers(1000), 0.5, 1)
	if b, _ := Split(numbers(1000), 0.5, 2); slices.Equal(a, b) {
		t.Error("two seeds give one split")
	}
	folds := Folds(numbers(11), 3, 0)
	if len(folds[0]) != 4 || len(folds[1]) != 4 || len(folds[2]) != 3 {
		t.Errorf("got folds %v, want sizes 4, 4, 3", folds)
	}
	if all := slices.Sorted(slices.Values(slices.Concat(folds...))); !slices.Equal(all, numbers(11)) {
		t.Errorf("got folds %v", folds)
	}
}

func TestPairedByHand(t *testing.T) {
	// Differences 1, 2, 6: mean 3, sample variance 7.
	d := Paired([]float64{1, 3, 8}, []float64{0, 1, 2}, nil)
	if half := z975 * math.Sqrt(7./3); d.Mean != 3 || math.Abs(d.Hi-3-half) > 1e-12 || math.Abs(3-half-d.Lo) > 1e-12 {
		t.Errorf("got %+v, want 3 ± %v", d, half)
	}
	if w := Paired([]float64{1, 3, 8, 99}, []float64{0, 1, 2, 0}, []float64{2, 2, 2, 0}); w != d {
		t.Errorf("got %+v with equal weights, want %+v", w, d)
	}
	if one := Paired([]float64{1}, []float64{3}, nil); one.Mean != -2 || !math.IsNaN(one.Lo) || one.Below() {
		t.Errorf("one row: got %+v, want -2 without an interval", one)
	}
	if none := Paired(nil, nil, nil); !math.IsNaN(none.Mean) {
		t.Errorf("no row: got %+v", none)
	}
}

// TestPairedCovers: the interval contains the true mean in about 95 % of samples.
func TestPairedCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const samples, n, truth = 2000, 200, 0.5
	hits := 0
	for range samples {
		a, b := make([]float64, n), make([]float64, n)
		for i := range a {
			b[i] = rng.ExpFloat64()
			a[i] = b[i] + truth + rng.NormFloat64()
		}
		if d := Paired(a, b, nil); d.Lo <= truth && truth <= d.Hi {
			hits++
		}
	}
	// Four standard deviations of a share of 0.95 among 2,000.
	if share := float64(hits) / samples; math.Abs(share-0.95) > 4*math.Sqrt(0.95*0.05/samples) {
		t.Errorf("%.3f of the intervals hold the mean, want 0.95", share)
	}
}

// sharpRows returns rows with labels drawn from softmax(z/2), so their temperature is 2.
func sharpRows(n, k int, seed uint64) metric.Rows {
	rng := rand.New(rand.NewPCG(seed, 3))
	r := metric.Rows{K: k}
	p := make([]float64, k)
	t, err := calibrator.NewTemperature(2)
	if err != nil {
		panic(err)
	}
	for range n {
		z := make([]float64, k)
		for j := range z {
			z[j] = float64(float32(4 * rng.NormFloat64()))
			r.F32 = append(r.F32, float32(z[j]))
		}
		t.Apply(p, z)
		u, y := rng.Float64(), 0
		for ; y < k-1 && u >= p[y]; y++ {
			u -= p[y]
		}
		r.Labels = append(r.Labels, int32(y))
	}
	return r
}

// TestApplyInChunks: on all processors, in place or not, every number equals that of Calibrator.Apply.
func TestApplyInChunks(t *testing.T) {
	r := sharpRows(3*chunkScores/10+7, 10, 1)
	c, _, err := Fit("vector", sharpRows(500, 10, 2), calibrator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	got := make([]float64, len(r.F32))
	if err := Apply(c, got, Scores[float32]{r.F32, r.K, false}, func(n int) { rows += n }); err != nil {
		t.Fatal(err)
	}
	if rows != len(r.Labels) {
		t.Errorf("%d rows were reported, want %d", rows, len(r.Labels))
	}
	z, p := make([]float64, r.K), make([]float64, r.K)
	for i := range r.Labels {
		for j := range z {
			z[j] = float64(r.F32[i*r.K+j])
		}
		c.Apply(p, z)
		if !slices.Equal(p, got[i*r.K:(i+1)*r.K]) {
			t.Fatalf("row %d: got %v, want %v", i, got[i*r.K:(i+1)*r.K], p)
		}
	}
	err = Apply(c, r.F32, Scores[float32]{r.F32, r.K, false}, nil)
	if err != nil || float64(r.F32[5]) != float64(float32(got[5])) {
		t.Errorf("in place: got %v, %v, want %v", r.F32[5], err, got[5])
	}
	if err := Apply(c, got, Scores[float32]{r.F32, 5, false}, nil); err == nil {
		t.Error("rows of another K were accepted")
	}
}

// TestRunAndRank: the true model wins, a method that fails comes last with its error, and folds score each row once.
func TestRunAndRank(t *testing.T) {
	r := sharpRows(2000, 4, 5)
	at := Labelled(r.Labels)
	fit, held := Split(at, 0.5, 0)
	half := []Part{{func() metric.Rows { return Select(r, fit) }, func() metric.Rows { return Select(r, held) }}}
	var folds []Part
	parts := Folds(at, 4, 0)
	for i := range parts {
		rest := slices.Concat(parts[(i+1)%4], parts[(i+2)%4], parts[(i+3)%4])
		folds = append(folds, Part{func() metric.Rows { return Select(r, rest) },
			func() metric.Rows { return Select(r, parts[i]) }})
	}
	for _, c := range []struct {
		parts []Part
		n     int64
	}{{half, int64(len(held))}, {folds, int64(len(at))}} {
		base, err := Baseline(c.parts, metric.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var results []Result
		for _, name := range []string{"nonesuch", "identity", "temperature"} {
			results = append(results, Run(context.Background(), c.parts, Candidate{Name: name}, metric.Options{},
				&base))
		}
		if err := Rank(results); err != nil {
			t.Fatal(err)
		}
		first, last := results[0], results[2]
		if first.Name != "temperature" || !first.ToIdentity.Below() || first.Metrics.N != c.n ||
			first.ToBest.Mean != 0 || len(first.Fits) != len(c.parts) {
			t.Errorf("first: got %+v, want the temperature, better, on %d rows", first, c.n)
		}
		if results[1].ToIdentity != (Difference{}) || results[1].ToBest.Mean != -first.ToIdentity.Mean ||
			results[1].Metrics.NLL != base.Metrics.NLL {
			t.Errorf("identity: got %+v", results[1])
		}
		if last.Name != "nonesuch" || last.Err == nil {
			t.Errorf("last: got %+v, want the one that failed", last)
		}
		if got := first.Metrics.NLL - base.Metrics.NLL; math.Abs(got-first.ToIdentity.Mean) > 1e-12 {
			t.Errorf("difference of the means %v, mean of the differences %v", got, first.ToIdentity.Mean)
		}
	}
	failed := []Result{Run(context.Background(), half, Candidate{Name: "nonesuch"}, metric.Options{}, nil)}
	if err := Rank(failed); err == nil {
		t.Error("a ranking in which everything failed is no error")
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := sharpRows(50, 3, 1)
	whole := func() metric.Rows { return r }
	if got := Run(ctx, []Part{{whole, whole}}, Candidate{Name: "temperature"}, metric.Options{},
		nil); !errors.Is(got.Err, context.Canceled) {
		t.Errorf("got %v, want the context's error", got.Err)
	}
}
