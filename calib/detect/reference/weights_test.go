package reference

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

// TestScaleOfWeightsDoesNotMatter: an interval is that of the rows, whatever all of them weigh.
func TestScaleOfWeightsDoesNotMatter(t *testing.T) {
	window := func(seed uint64, weight float64) Window {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := Window{Bins: make([]metric.Bin, 15)}
		for range 1000 {
			c, x := .5+rng.Float64()/2, rng.ExpFloat64()
			b := &w.Bins[metric.BinIndex(c, 15)]
			b.N, b.W, b.SumC = b.N+1, b.W+weight, b.SumC+weight*c
			if rng.Float64() < c {
				b.SumA += weight
			}
			w.NLL = Moments{w.NLL.W + weight, w.NLL.Sum + weight*x, w.NLL.Square + weight*x*x}
		}
		return w
	}
	want, err := Compare(window(1, 1), window(2, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, weight := range []float64{1e-3, 100, 1 << 20} {
		got, err := Compare(window(1, weight), window(2, weight))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range [][2]Change{{got.Accuracy, want.Accuracy}, {got.NLL, want.NLL}, {got.ECE, want.ECE}} {
			if d := math.Abs(c[0].Lo-c[1].Lo) + math.Abs(c[0].Hi-c[1].Hi); !(d < 1e-9) {
				t.Errorf("rows of weight %v: %+v, want %+v", weight, c[0], c[1])
			}
		}
	}
}
