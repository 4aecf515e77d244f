package metric_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

// randomLogits are n rows of k classes, some of them tied, uniform or extreme, with labels that are often right.
func randomLogits(n, k int, seed uint64) metric.Rows {
	rng := rand.New(rand.NewPCG(seed, 21))
	r := metric.Rows{K: k}
	for range n {
		scale := []float64{0, 1, 3, 3, 80}[rng.IntN(5)]
		y := rng.IntN(k)
		for j := range k {
			z := math.Round(scale*rng.NormFloat64()*4) / 4
			if j == y && rng.IntN(3) > 0 {
				z += 2
			}
			r.F64 = append(r.F64, z)
		}
		r.Labels = append(r.Labels, int32(y))
	}
	return r
}

func TestUnitWeightsAreNoWeights(t *testing.T) {
	for _, n := range []int{1, 2, 50, 3000} {
		r := randomLogits(n, 4, uint64(n))
		for _, csf := range []string{metric.MSP, metric.NegEnt} {
			o := metric.Options{CSF: csf, Detail: true, Uncertainty: true, Resamples: 20}
			plain := evaluate(t, r, o)
			r.W = slices.Repeat([]float64{1}, n)
			unit := evaluate(t, r, o)
			a, _ := json.Marshal(plain)
			b, _ := json.Marshal(unit)
			if string(a) != string(b) {
				t.Errorf("n = %d: got %s, want %s", n, b, a)
			}
		}
	}
}

// repeat returns the rows with row i w[i] times, its copies side by side.
func repeat(r metric.Rows) metric.Rows {
	out := metric.Rows{K: r.K, Probs: r.Probs}
	for i, w := range r.W {
		for range int(w) {
			out.F64 = append(out.F64, r.F64[i*r.K:(i+1)*r.K]...)
			out.Labels = append(out.Labels, r.Labels[i])
		}
	}
	return out
}

func TestWholeWeightsAreRepeatedRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for n := 1; n < 80; n += 7 {
		for _, csf := range []string{metric.MSP, metric.Margin} {
			r := randomLogits(n, 3, uint64(n))
			for range n {
				r.W = append(r.W, float64(rng.IntN(4)))
			}
			r.W[0] = 2
			o := metric.Options{CSF: csf, Resamples: 1, Norm: 3}
			got, want := evaluate(t, r, o).Values(), evaluate(t, repeat(r), o).Values()
			for i, v := range got {
				switch v.Key {
				case "ece_null", "ece_lo", "ece_hi", "debiased_l2": // noise of effective rows, not of copies
				case "sweep", "sweep_l2": // at most n - 1 bins: TestSweepOfWeights
				case "smece":
					near(t, v.Key, v.Value, want[i].Value, 1e-8)
				default:
					near(t, v.Key, v.Value, want[i].Value, 1e-11)
				}
			}
		}
	}
}

func TestSweepOfWeights(t *testing.T) {
	same := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		n := 2 + rng.IntN(60)
		var c, c3, w []float64
		var a, a3 []bool
		for range n {
			ci := float64(rng.IntN(20)) / 20
			c, a, w = append(c, ci), append(a, rng.Float64() < ci), append(w, float64(1+rng.IntN(3)))
		}
		for i := range c {
			for range int(w[i]) {
				c3, a3 = append(c3, c[i]), append(a3, a[i])
			}
		}
		got, want := metric.Sweep(metric.SortWeighted(c, a, w)), metric.Sweep(metric.SortWeighted(c3, a3, nil))
		if len(want) >= n-1 {
			continue // repeated rows may have more bins
		}
		same++
		if len(got) != len(want) {
			t.Fatalf("seed %d: got %d bins, want %d", seed, len(got), len(want))
		}
		near(t, "sweep", metric.ECE(got), metric.ECE(want), 1e-12)
		near(t, "sweep_l2", metric.ECEL2(got), metric.ECEL2(want), 1e-12)
	}
	if same < 150 {
		t.Errorf("only %d of 200 sweeps compared", same)
	}
}

func TestWeightsTimesAFactor(t *testing.T) {
	r := randomLogits(300, 3, 8)
	rng := rand.New(rand.NewPCG(1, 3))
	for range r.Labels {
		r.W = append(r.W, 0.5+rng.Float64())
	}
	one := evaluate(t, r, metric.Options{Resamples: 200})
	for i := range r.W {
		r.W[i] *= 0.25 // exact, so the same resamples
	}
	other := evaluate(t, r, metric.Options{Resamples: 200})
	for i, v := range other.Values() {
		tol := 1e-12
		switch v.Key {
		case "aurc", "eaurc": // finite-sample terms of ln W / W
			tol = 0.03
		case "smece":
			tol = 1e-8
		}
		near(t, v.Key, v.Value, one.Values()[i].Value, tol)
	}
}

func TestZeroWeightsTakeNoPart(t *testing.T) {
	r := randomLogits(40, 3, 9)
	with := metric.Rows{K: 3, F64: append([]float64{1, 2, 3}, r.F64...), Labels: append([]int32{0}, r.Labels...),
		W: make([]float64, 41)}
	for i := range with.W[1:] {
		with.W[i+1] = 2
	}
	r.W = with.W[1:]
	a, _ := json.Marshal(evaluate(t, with, metric.Options{}))
	b, _ := json.Marshal(evaluate(t, r, metric.Options{}))
	if string(a) != string(b) {
		t.Errorf("got %s, want %s", a, b)
	}
	clear(with.W)
	for _, v := range evaluate(t, with, metric.Options{Uncertainty: true}).Values() {
		if !math.IsNaN(v.Value) {
			t.Errorf("no weight: %s is %g, want NaN", v.Key, v.Value)
		}
	}
}

func TestEffectiveN(t *testing.T) {
	bins := metric.EqualWidth([]float64{.5, .5, .5}, []bool{true, false, true}, []float64{1, 2, 3}, 1)
	near(t, "effective n", bins[0].EffectiveN(), 36./14, tol)
	near(t, "of equal weights", metric.EqualWidth([]float64{.5, .5}, make([]bool, 2), []float64{.1, .1},
		1)[0].EffectiveN(), 2, tol)
	near(t, "unknown", metric.Bin{N: 7, W: 3}.EffectiveN(), 7, 0)
	// Weights 100× apart: two rows of weight 100 and 100 of weight 1 are worth less than 102.
	heavy := metric.Bin{N: 102, W: 300, W2: 20100, SumC: 150, SumA: 150}
	light := metric.Bin{N: 102, W: 300, SumC: 150, SumA: 150}
	if h, l := metric.Resample([]metric.Bin{heavy}, 500, 1),
		metric.Resample([]metric.Bin{light}, 500, 1); h.NullHi < 3*l.NullHi {
		t.Errorf("null of effective n %g: %+v, of 102: %+v", heavy.EffectiveN(), h, l)
	}
}

func TestRadixSortIsTheStableSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	special := []float64{math.NaN(), math.Inf(-1), math.Inf(1), 0, math.Copysign(0, -1), -1, 5e-324, 1, 1 - 0x1p-53}
	c, a := make([]float64, 5000), make([]bool, 5000)
	for i := range c {
		switch rng.IntN(4) {
		case 0:
			c[i] = special[rng.IntN(len(special))]
		case 1:
			c[i] = rng.NormFloat64()
		default:
			c[i] = float64(rng.IntN(40)) / 40
		}
		a[i] = rng.IntN(2) == 0
	}
	for _, n := range []int{5000, 2047, 2048, 1, 0} {
		got := metric.SortWeighted(c[:n], a[:n], nil)
		index := make([]int, n)
		for i := range index {
			index[i] = i
		}
		slices.SortStableFunc(index, func(x, y int) int {
			switch {
			case c[x] < c[y] || c[x] != c[x] && c[y] == c[y]:
				return -1
			case c[x] > c[y] || c[x] == c[x] && c[y] != c[y]:
				return 1
			}
			return 0
		})
		for k, i := range index {
			if math.Float64bits(got.C[k]) != math.Float64bits(c[i]) || got.A[k] != a[i] {
				t.Fatalf("n = %d, rank %d: got %g %v, want %g %v", n, k, got.C[k], got.A[k], c[i], a[i])
			}
		}
	}
}
