package batchtest

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// ManyClasses appends n rows of many classes with shares q to those before. The model sees the class or one of the
// four after it, with posteriors that are exact under the prior.
func ManyClasses(seed uint64, before []Row, n int, prior, q []float64) []Row {
	rng := rand.New(rand.NewPCG(seed, 6))
	start := Start
	if len(before) > 0 {
		start = before[len(before)-1].TS + Second/10
	}
	nan, k := float32(math.NaN()), len(q)
	for i := range n {
		y, u := 0, rng.Float64()
		for ; y < k-1 && u >= q[y]; y++ {
			u -= q[y]
		}
		seen := y
		if rng.Float64() < .3 {
			seen = (y + 1 + rng.IntN(4)) % k
		}
		z := make([]float32, k)
		for j := range z {
			switch d := (seen - j + k) % k; {
			case d == 0:
				z[j] = float32(math.Log(.7 * prior[j]))
			case d <= 4:
				z[j] = float32(math.Log(.3 / 4 * prior[j]))
			default:
				z[j] = -30
			}
		}
		ts := start + int64(i)*Second/10
		before = append(before, Row{ID: fmt.Sprintf("%d-%d", seed, i), Model: "m", Version: "v1", TS: ts,
			LabelTS: ts + rng.Int64N(5*Second), Label: int32(y),
			Scores: z, Weight: nan, Served: nan})
	}
	return before
}

// Normalise divides shares by their sum, and returns them.
func Normalise(q []float64) []float64 {
	var sum float64
	for _, x := range q {
		sum += x
	}
	for j := range q {
		q[j] /= sum
	}
	return q
}
