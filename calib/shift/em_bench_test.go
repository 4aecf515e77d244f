package shift

import (
	"math"
	"math/rand/v2"
	"testing"
)

// BenchmarkEM is that of 100 classes that are confused with a few others, five symbols each, where shares have moved.
func BenchmarkEM(b *testing.B) {
	const k, bands, n, m = 100, 5, 5000, 1000
	rng := rand.New(rand.NewPCG(1, 2))
	t := Table{K: k, Soft: true, Joint: make([]float64, k*bands*k), Now: make([]float64, k*bands)}
	for i := range t.Now {
		t.Says = append(t.Says, i/bands)
	}
	draw := func(y int) (symbol int, p []float64) {
		p = make([]float64, k)
		var sum, top float64
		at := 0
		for j := range p {
			z := 1.5 * rng.NormFloat64()
			if j == y {
				z += 5
			}
			if j/10 == y/10 {
				z++
			}
			p[j] = math.Exp(z)
			sum += p[j]
		}
		for j := range p {
			if p[j] /= sum; p[j] > top {
				at, top = j, p[j]
			}
		}
		return at*bands + min(int(top*bands), bands-1), p
	}
	for i := range n {
		s, p := draw(i % k)
		for j, x := range p {
			t.Joint[s*k+j] += x
		}
	}
	for range m {
		s, _ := draw(int(k * math.Pow(rng.Float64(), 1.3)))
		t.Now[s]++
	}
	for b.Loop() {
		if _, err := EM(t); err != nil {
			b.Fatal(err)
		}
	}
}
