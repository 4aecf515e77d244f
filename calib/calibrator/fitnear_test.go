package calibrator

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFitTemperatureNear: from near the optimum, in few passes, and from anywhere, it is that of FitTemperature.
func TestFitTemperatureNear(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	for _, k := range []int{2, 10, 300} {
		for _, sharp := range []float64{.02, .3, 1, 4, 40} {
			const n = 500
			d := Data[float32]{K: k}
			for range n {
				z, p := make([]float64, k), make([]float64, k)
				for j := range z {
					z[j] = 2 * r.NormFloat64()
				}
				softmax(p, z, 1)
				y, u := 0, r.Float64()
				for ; y < k-1 && u >= p[y]; y++ {
					u -= p[y]
				}
				for _, x := range z {
					d.Scores = append(d.Scores, float32(x*sharp))
				}
				d.Labels, d.Weights = append(d.Labels, int32(y)), append(d.Weights, 1)
			}
			want, _, err := FitTemperature(d, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, near := range []float64{.01, .3, .97, 1, 1.02, 3, 100} {
				got, passes, err := FitTemperatureNear(d, Temperature{t: clampTemperature(want.T() * near)})
				if err != nil {
					t.Fatal(err)
				}
				if e := math.Abs(math.Log(got.T() / want.T())); e > 2e-3 {
					t.Errorf("K = %d, T = %.3g, from %g of it: off by %.2g", k, want.T(), near, e)
				}
				if most := 4; near > .9 && near < 1.1 && passes > most {
					t.Errorf("K = %d, T = %.3g, from %g of it: %d passes, want at most %d", k, want.T(), near,
						passes, most)
				}
			}
		}
	}
	// What has no optimum, or no row, is as FitTemperature has it.
	right := Data[float32]{Scores: []float32{9, 0, 0, 9}, K: 2, Labels: []int32{0, 1}}
	if got, _, err := FitTemperatureNear(right, Temperature{t: 1}); err != nil || got.T() != MinTemperature {
		t.Errorf("rows that are all right: %v, %v", got, err)
	}
	if got, passes, err := FitTemperatureNear(right, Temperature{t: MinTemperature}); err != nil ||
		got.T() != MinTemperature || passes > 2 {
		t.Errorf("from the bound: %v in %d passes, %v", got, passes, err)
	}
	flat := Data[float32]{Scores: make([]float32, 4), K: 2, Labels: []int32{0, 1}}
	if got, _, err := FitTemperatureNear(flat, Temperature{t: 3}); err != nil || got.T() != 1 {
		t.Errorf("uniform rows: %v, %v", got, err)
	}
	if _, _, err := FitTemperatureNear(Data[float32]{K: 2}, Temperature{t: 1}); err == nil {
		t.Error("no rows: no error")
	}
}
