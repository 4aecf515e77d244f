//go:build amd64 && !purego

package kernel

import (
	"math/rand/v2"
	"testing"
)

// TestExpRow: the vector path has the bits of exp, and leaves differences alone that need more care.
func TestExpRow(t *testing.T) {
	if best() != pathAVX512 {
		t.Skip("no AVX-512")
	}
	force(t, pathAVX512)
	rng := rand.New(rand.NewPCG(41, 42))
	var e [expChunk]float64
	for range 2000 {
		top := float32(rng.NormFloat64() * 100)
		z := make([]float32, 1+rng.IntN(expChunk))
		for j := range z {
			z[j] = top - float32(rng.ExpFloat64()*60)
		}
		if rng.IntN(10) == 0 {
			z[rng.IntN(len(z))] = top - 700 - float32(rng.ExpFloat64()*20)
		}
		n, low := expRow(e[:], z, float64(top)), false
		for j, v := range z[:len(z)&^7] {
			low = low || float64(v)-float64(top) < -700
			if want := exp(float64(v) - float64(top)); j < n && e[j] != want {
				t.Fatalf("exp(%v - %v) = %v, want %v", v, top, e[j], want)
			}
		}
		if want := len(z) &^ 7; !low && n != want || low && n != 0 {
			t.Fatalf("%d of %d differences are made, some below -700: %v", n, want, low)
		}
	}
}
