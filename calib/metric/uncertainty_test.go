package metric_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/testsize"
)

// calibratedRows are n rows of probabilities with labels drawn from them; shift takes some of the hits of the most
// probable class away, to the next one.
func calibratedRows(n, k int, shift float64, seed uint64) metric.Rows {
	rng := rand.New(rand.NewPCG(seed, 77))
	r := metric.Rows{K: k, Probs: true}
	for range n {
		p := make([]float64, k)
		var sum float64
		for j := range p {
			p[j] = math.Exp(1.5 * rng.NormFloat64())
			sum += p[j]
		}
		top := 0
		for j := range p {
			p[j] /= sum
			if p[j] > p[top] {
				top = j
			}
		}
		u, y := rng.Float64(), 0
		for u -= p[0]; u >= 0 && y < k-1; u -= p[y] {
			y++
		}
		if y == top && rng.Float64() < shift {
			y = (y + 1) % k
		}
		r.F64, r.Labels = append(r.F64, p...), append(r.Labels, int32(y))
	}
	return r
}

func values(r metric.Report) map[string]float64 {
	out := map[string]float64{}
	for _, v := range r.Values() {
		out[v.Key] = v.Value
	}
	return out
}

func TestNullIsThatOfCalibratedModels(t *testing.T) {
	testsize.Slow(t)
	const runs = 200
	rows := calibratedRows(600, 3, 0, 1)
	mean, over := map[string]float64{}, map[string]int{}
	ivs := map[string]metric.Interval{}
	for _, iv := range evaluate(t, rows, metric.Options{Uncertainty: true}).Intervals {
		ivs[iv.Key] = iv.Interval
	}
	if len(ivs) != len(metric.UncertaintyKeys) {
		t.Fatalf("%d intervals, want %d", len(ivs), len(metric.UncertaintyKeys))
	}
	rng := rand.New(rand.NewPCG(6, 6))
	for range runs { // other labels of the same rows
		for i := range rows.Labels {
			u, y := rng.Float64(), 0
			for u -= rows.F64[3*i]; u >= 0 && y < 2; u -= rows.F64[3*i+y] {
				y++
			}
			rows.Labels[i] = int32(y)
		}
		for key, v := range values(evaluate(t, rows, metric.Options{Resamples: 1})) {
			mean[key] += v / runs
			if v > ivs[key].NullHi {
				over[key]++
			}
		}
	}
	for _, key := range metric.UncertaintyKeys {
		// 5 %: the noise of 200 runs, and binomials of a bin's mean confidence in place of its rows' own ones.
		if iv := ivs[key]; math.Abs(iv.Null/mean[key]-1) > 0.05 {
			t.Errorf("%s: null %.5f, calibrated models %.5f", key, iv.Null, mean[key])
		}
		if n := over[key]; n < 1 || n > 23 { // 10 ± 3.1 expected, 4 deviations
			t.Errorf("%s: %d of %d calibrated models above the 95 %% quantile", key, n, runs)
		}
	}
}

func TestIntervalsCover(t *testing.T) {
	testsize.Slow(t)
	// A fifth of the top hits are gone, far from 0, where the bias is small. The truth is that of very many rows.
	truth := values(evaluate(t, calibratedRows(200_000, 3, .3, 99), metric.Options{Resamples: 1}))
	const runs = 60
	covered := map[string]int{}
	for seed := range uint64(runs) {
		r := calibratedRows(800, 3, .3, seed)
		for _, iv := range evaluate(t, r, metric.Options{Uncertainty: true, Resamples: 100}).Intervals {
			if iv.Lo <= truth[iv.Key] && truth[iv.Key] <= iv.Hi {
				covered[iv.Key]++
			}
		}
	}
	for _, key := range metric.UncertaintyKeys {
		switch key {
		case "mce", "cwece", "cwece_l2": // what bias the observed value has at this n is no matter of the interval
			continue
		}
		if covered[key] < 50 { // 57 expected, deviation 1.7; 4 deviations
			t.Errorf("%s: covered in %d of %d", key, covered[key], runs)
		}
	}
}

func TestUncertaintyByKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, weighted := range []bool{false, true} {
		r := randomLogits(300, 4, 6)
		for range r.Labels {
			if weighted {
				r.W = append(r.W, rng.ExpFloat64())
			}
		}
		o := metric.Options{Uncertainty: true, Resamples: 50, Seed: 3, CSF: metric.Margin, Norm: 3}
		report := evaluate(t, r, o)
		value := values(report)
		for i, iv := range report.Intervals {
			key := metric.UncertaintyKeys[i]
			got := iv.Interval
			if iv.Key != key {
				t.Errorf("interval %d is of %s, want %s", i, iv.Key, key)
			}
			if v := value[key]; !(0 <= got.Lo && got.Lo <= v && v <= got.Hi && got.Hi <= 1 && got.Null > 0 &&
				got.Null < got.NullHi) {
				t.Errorf("%s = %g: %+v", key, v, got)
			}
		}
		if iv := report.Intervals[0].Interval; iv.Null != report.ECENull || iv.Lo != report.ECELo ||
			iv.Hi != report.ECEHi {
			t.Errorf("ece: %+v, in the report %g %g %g", iv, report.ECENull, report.ECELo, report.ECEHi)
		}
		o.Seed = 4
		if other := evaluate(t, r, o); other.Intervals[8] == report.Intervals[8] ||
			other.Intervals[5] == report.Intervals[5] {
			t.Error("another seed gave the same")
		}
	}
}

func TestUncertaintyOfAwkwardRows(t *testing.T) {
	f := func(name string, r metric.Rows) {
		t.Helper()
		report := evaluate(t, r, metric.Options{Uncertainty: true, Resamples: 20})
		value := values(report)
		for _, iv := range report.Intervals {
			if v := value[iv.Key]; !(0 <= iv.Lo && iv.Lo <= v+1e-12 && v <= iv.Hi+1e-12 && iv.Hi <= 1 && iv.Null >= 0) {
				t.Errorf("%s: %s = %g: %+v", name, iv.Key, v, iv)
			}
		}
	}
	f("one row", metric.Rows{K: 3, F64: []float64{1, 0, 0}, Labels: []int32{1}})
	f("one certain row", metric.Rows{K: 2, F64: []float64{80, -80}, Labels: []int32{1}})
	f("zeros", metric.Rows{K: 2, F64: []float64{1, 0, 1, 0}, Probs: true, Labels: []int32{1, 0}})
	f("identical rows", metric.Rows{K: 2, F64: make([]float64, 200), Labels: make([]int32, 100)})
	f("one class", metric.Rows{K: 1, F64: make([]float64, 5), Labels: make([]int32, 5)})
	r := randomLogits(50, 3, 1)
	r.W = make([]float64, 50)
	r.W[7], r.W[8] = 1e-3, 1e6
	f("one heavy row", r)
	for _, iv := range evaluate(t, metric.Rows{K: 2, F64: []float64{}}, metric.Options{Uncertainty: true}).Intervals {
		if !math.IsNaN(iv.Null) || !math.IsNaN(iv.Hi) {
			t.Errorf("no rows: %+v", iv)
		}
	}
}

func TestIntervalsInJSON(t *testing.T) {
	b, err := json.Marshal(evaluate(t, randomLogits(30, 2, 1), metric.Options{Uncertainty: true, Detail: true,
		Resamples: 10}))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ECENull   float64 `json:"ece_null"`
		Intervals map[string]map[string]float64
		Bins      []any
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Intervals) != 14 || got.Intervals["ece"]["null"] != got.ECENull ||
		got.Intervals["sbece_lb"]["hi"] == 0 || len(got.Bins) != 15 {
		t.Errorf("got %s", b)
	}
}
