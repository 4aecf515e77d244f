package stage

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
)

// BenchmarkRepeats: of 1,000 classes, rows whose two largest scores are as far apart in thousands of them cost no more
// than others: what models say in words (.9 for one class, the rest for all others, or for one).
func BenchmarkRepeats(b *testing.B) {
	const k = 1000
	for _, kind := range []string{"rest for all", "rest for one", "random", "rounded"} {
		r := rand.New(rand.NewPCG(1, 2))
		key := &Key{K: k}
		for i := range 8192 {
			z := make([]float32, k)
			top := r.IntN(k)
			conf := []float64{.99, .95, .9}[r.IntN(3)]
			for j := range z {
				switch kind {
				case "rest for all":
					z[j] = float32(math.Log((1 - conf) / (k - 1)))
				case "rest for one":
					z[j] = float32(math.Inf(-1))
				case "random":
					z[j] = float32(r.NormFloat64() * 3)
				case "rounded":
					z[j] = float32(math.Round(r.NormFloat64()*3*10) / 10)
				}
			}
			if kind == "rest for all" || kind == "rest for one" {
				z[top] = float32(math.Log(conf))
			}
			if kind == "rest for one" {
				z[(top+1+r.IntN(k-1))%k] = float32(math.Log(1 - conf))
			}
			key.Sample = append(key.Sample, acc.SampleRow{TS: int64(i), Y: int32(top), W: 1, Z: z})
		}
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				Repeats(key, math.MinInt64, RepeatsLikely)
			}
		})
		b.Run(kind+"/once", func(b *testing.B) {
			for b.Loop() {
				Once(key.Sample)
			}
		})
	}
}
