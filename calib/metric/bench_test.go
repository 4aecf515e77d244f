package metric_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
)

func millionRows() (c []float64, a []bool) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1_000_000 {
		ci := 1 / (1 + math.Exp(-3*rng.ExpFloat64()))
		c, a = append(c, ci), append(a, rng.Float64() < ci*ci)
	}
	return c, a
}

func BenchmarkSort1M(b *testing.B) {
	c, a := millionRows()
	for b.Loop() {
		metric.SortWeighted(c, a, nil)
	}
}

func BenchmarkSmECE1M(b *testing.B) {
	c, a := millionRows()
	for b.Loop() {
		metric.SmECE(c, a, nil)
	}
}

func BenchmarkSweep1M(b *testing.B) {
	s := sortRows(millionRows())
	for b.Loop() {
		metric.Sweep(s)
	}
}

func BenchmarkSoftBins1M(b *testing.B) {
	c, a := millionRows()
	for b.Loop() {
		metric.SoftBins(c, a, nil, 15, 0.01)
	}
}

func sortRows(c []float64, a []bool) metric.Sorted { return metric.SortWeighted(c, a, nil) }
