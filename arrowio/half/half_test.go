package half_test

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/arrowio/half"
)

// TestBits compares with the definition: of all binary16 numbers the nearest, and of two equally near ones that
// whose last bit is 0.
func TestBits(t *testing.T) {
	value := func(h uint16) float64 {
		exponent, fraction := int(h>>10), float64(h&0x3ff)
		if exponent == 0 {
			return math.Ldexp(fraction, -24)
		}
		return math.Ldexp(1024+fraction, exponent-25)
	}
	check := func(x float32, want uint16) {
		t.Helper()
		for _, sign := range []uint16{0, 0x8000} {
			y := x
			if sign != 0 {
				y = -x
			}
			if got := half.Bits(y); got != want|sign {
				t.Fatalf("half.Bits(%v) = %#04x, want %#04x", y, got, want|sign)
			}
			got := []uint16{0, 7}
			if finite := half.Encode(got, []float32{y}); got[0] != want|sign || got[1] != 7 ||
				finite != (want < 0x7c00) {
				t.Fatalf("half.Encode(%v) = %#04x, finite %v, want %#04x", y, got, finite, want|sign)
			}
		}
	}
	const infinite = 0x7c00
	for h := uint16(0); h < infinite; h++ {
		check(float32(value(h)), h)
		middle := 65520. // between the last one and 2^16, which is taken for infinite
		if h+1 < infinite {
			middle = (value(h) + value(h+1)) / 2
		}
		m := float32(middle) // exact: one bit more than a binary16 has
		check(m, h+h&1)
		check(math.Nextafter32(m, 0), h)
		check(math.Nextafter32(m, math.MaxFloat32), h+1)
	}
	check(65504, 0x7bff)
	check(math.MaxFloat32, infinite)
	check(float32(math.Inf(1)), infinite)
	check(math.SmallestNonzeroFloat32, 0)
	if nan := []float32{1, float32(math.NaN())}; half.Encode(make([]uint16, 2), nan) || !half.Encode(nil, nil) {
		t.Error("a NaN is finite, or nothing is not")
	}
	if got := half.Bits(float32(math.NaN())); got&0x7fff <= infinite {
		t.Errorf("half.Bits(NaN) = %#04x, want a NaN", got)
	}
}

// slowHalf is binary16 by its definition.
func slowHalf(h uint16) float32 {
	exponent, fraction := int(h>>10&0x1f), float64(h&0x3ff)
	v := math.Ldexp(1024+fraction, exponent-25)
	switch {
	case exponent == 0:
		v = math.Ldexp(fraction, -24)
	case exponent == 31 && fraction == 0:
		v = math.Inf(1)
	case exponent == 31:
		v = math.NaN()
	}
	if h>>15 == 1 {
		v = -v
	}
	return float32(v)
}

// TestValue: every bit pattern.
func TestValue(t *testing.T) {
	for h := range 1 << 16 {
		got, want := half.Value(uint16(h)), slowHalf(uint16(h))
		if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
			t.Fatalf("%#04x: got %g, want %g", h, got, want)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	x := make([]float32, 2048)
	for i := range x {
		x[i] = float32(i-1000) * .01
	}
	b.SetBytes(int64(4 * len(x)))
	h := make([]uint16, len(x))
	for b.Loop() {
		half.Encode(h, x)
	}
}
