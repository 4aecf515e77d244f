//go:build amd64 && !purego

package kernel

import "testing"

// BenchmarkReadBandwidth sums the slab: as it comes, and with lines and translations of pages asked for ahead.
func BenchmarkReadBandwidth(b *testing.B) {
	if best() != pathAVX512 {
		b.Skip("no AVX-512")
	}
	z := slab()
	for _, reader := range []struct {
		name string
		sum  func(*float32, int) float32
	}{{"sum", readAll512}, {"ahead", readAhead512}} {
		b.Run(reader.name, func(b *testing.B) {
			b.SetBytes(slabBytes)
			for b.Loop() {
				reader.sum(&z[0], len(z))
			}
		})
	}
}
