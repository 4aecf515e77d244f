package head

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/trainer/philox"
)

// hard are random values with zeros of both signs, infinities, NaNs and subnormal ones among them.
func hard(n int, seed uint64) []float32 {
	src := philox.Source{Stream: philox.Stream{Seed: seed}}
	special := []float32{
		0,
		float32(math.Copysign(0, -1)),
		float32(math.Inf(1)),
		float32(math.Inf(-1)),
		float32(math.NaN()),
		float32(math.Copysign(math.NaN(), -1)),
		1e-45,
		-1e-45,
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(2*src.Float64() - 1)
		if j := src.Below(24); int(j) < len(special) {
			x[i] = special[j]
		}
	}
	return x
}

// same compares bits; all NaNs are the same.
func same(t *testing.T, what string, n int, got, want []float32) {
	t.Helper()
	for i, w := range want {
		if math.Float32bits(got[i]) != math.Float32bits(w) && !(got[i] != got[i] && w != w) {
			t.Errorf("%s of %d values: value %d is %v, want %v", what, n, i, got[i], w)
		}
	}
}

// TestVectors: the exported functions give the bits of the plain ones, and write nothing beside.
func TestVectors(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 16, 31, 100, 1001} {
		x, y, g := hard(n+1, 1), hard(n+1, 2), hard(n+1, 3)
		bits := make([]uint8, n+1)
		philox.Stream{Seed: 4}.Bernoulli(bits, 0.5)
		want, got := append([]float32(nil), x...), append([]float32(nil), x...)
		reluGo(want[:n])
		ReLU(got[:n])
		same(t, "relu", n, got, want)

		copy(want, x)
		copy(got, x)
		reluGradGo(want[:n], y[:n], g[:n])
		ReLUGrad(got[:n], y[:n], g)
		same(t, "relu gradient", n, got, want)

		maskedGo(want[:n], g[:n], bits[:n])
		Masked(got[:n], g[:n], bits)
		same(t, "mask", n, got, want)
		copy(got, g)
		Masked(got[:n], got[:n], bits)
		want[n] = g[n]
		same(t, "mask in place", n, got, want)

		if n == 0 {
			continue
		}
		rows := append(append([]float32(nil), y[:n]...), g[:n]...)
		copy(want, x)
		copy(got, x)
		columnSumsGo(want[:n], rows)
		ColumnSums(got[:n], rows)
		same(t, "column sums", n, got, want)
	}
}
