package kernel

import (
	"encoding/binary"
	"math"
	"testing"
)

// halfReference is a float16 by its definition.
func halfReference(h uint16) float64 {
	sign := 1 - 2*float64(h>>15)
	exponent, mantissa := int(h>>10&31), float64(h&1023)
	switch {
	case exponent == 31 && mantissa != 0:
		return math.NaN()
	case exponent == 31:
		return math.Inf(int(sign))
	case exponent == 0:
		return math.Copysign(math.Ldexp(mantissa, -24), sign)
	}
	return sign * math.Ldexp(1024+mantissa, exponent-25)
}

func TestHalfToFloat32IsExact(t *testing.T) {
	src, dst := make([]uint16, 1<<16), make([]float32, 1<<16)
	for i := range src {
		src[i] = uint16(i)
	}
	HalfToFloat32(dst, src)
	for i, v := range dst {
		want := halfReference(src[i])
		if math.Float32bits(v) != math.Float32bits(half(src[i])) {
			t.Fatalf("%#04x: vector %#x, one by one %#x", i, math.Float32bits(v), math.Float32bits(half(src[i])))
		}
		if math.IsNaN(want) != (v != v) || v == v && math.Float64bits(float64(v)) != math.Float64bits(want) {
			t.Fatalf("%#04x: got %g, want %g", i, v, want)
		}
	}
}

func TestRowsDoNotAllocate(t *testing.T) {
	for _, k := range []int{2, 10, 100} {
		rows, z, e := make([]Row, 37), make([]float32, 37*k), make([]float32, 37*k)
		q := make([]float32, 37*k)
		if got := testing.AllocsPerRun(20, func() {
			LogitRows(rows, e, z, k, 1.5)
			LogitRows(rows, nil, z, k, 1)
			ProbRows(rows, q, k)
		}); got >= 1 {
			t.Errorf("K=%d: %g allocations", k, got)
		}
	}
}

func FuzzLogitRows(f *testing.F) {
	f.Add([]byte{0, 0, 128, 63, 0, 0, 0, 0}, uint8(2), 1.0)
	f.Add(make([]byte, 4*200), uint8(100), 0.3)
	f.Add([]byte{0, 0, 192, 127, 0, 0, 128, 255}, uint8(1), 20.0)
	f.Fuzz(func(t *testing.T, b []byte, k uint8, temp float64) {
		if k == 0 || !(temp >= 0.01 && temp <= 100) {
			return
		}
		n := len(b) / 4 / int(k)
		z := make([]float32, n*int(k))
		for i := range z {
			z[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		rows := make([]Row, n)
		LogitRows(rows, nil, z, int(k), temp)
		for i, r := range rows {
			compare(t, "row", r, rowReference(z[i*int(k):(i+1)*int(k)], temp))
		}
	})
}
