package stage_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestLateClass: labels of one class that come later, or sooner, than others are told although wrong and right rows
// have them at the same time in the mean; lags that depend on scores, or on nothing, are not.
func TestLateClass(t *testing.T) {
	const until = 6000 * batchtest.Second
	for _, c := range []struct {
		name string
		lag  func(r *rand.Rand, y int32, p []float64) float64
		says string
	}{
		{"any lag", func(r *rand.Rand, _ int32, _ []float64) float64 { return 600 * r.Float64() }, ""},
		{"by score", func(r *rand.Rand, _ int32, p []float64) float64 { return 600 * p[0] * r.Float64() }, ""},
		{"class 0 late", func(r *rand.Rand, y int32, _ []float64) float64 {
			if y == 0 {
				return 600 * r.Float64()
			}
			return r.Float64()
		}, "labels of class 0 came later"},
		{"class 0 soon", func(r *rand.Rand, y int32, _ []float64) float64 {
			if y == 0 {
				return r.Float64()
			}
			return 600 * r.Float64()
		}, "labels of class 0 came sooner"},
	} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 9))
			k := &stage.Key{Version: &stage.Version{}, K: 3}
			for ts := int64(0); ts < until; ts += batchtest.Second {
				z, p, sum := make([]float32, 3), make([]float64, 3), 0.0
				for j := range z {
					z[j] = float32(1.5 * r.NormFloat64())
					p[j] = math.Exp(float64(z[j]))
					sum += p[j]
				}
				row := acc.SampleRow{TS: ts, W: 1, Z: z}
				for u := r.Float64() * sum; row.Y < 2 && u > p[row.Y]; row.Y++ {
					u -= p[row.Y]
				}
				for j := range p {
					p[j] /= sum
				}
				row.LabelTS = ts + int64(c.lag(r, row.Y, p)*float64(batchtest.Second))
				if row.LabelTS < until && row.LabelTS > until-3000*batchtest.Second {
					k.Sample = append(k.Sample, row)
				}
			}
			for began, want := range map[int64]string{until - 900*batchtest.Second: c.says, 0: ""} {
				k.Began = began
				why, err := stage.Biased(k, 0, stage.SettledInOrder)
				if err != nil || !strings.HasPrefix(why, want) || (why != "") != (want != "") {
					t.Errorf("%s, seed %d, labels since %d: %q, %v", c.name, seed, began, why, err)
				}
			}
			if stage.OutcomesDelay(k) != (c.says != "") {
				t.Errorf("%s, seed %d: OutcomesDelay is %v", c.name, seed, c.says == "")
			}
		}
	}
}
