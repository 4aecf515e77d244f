package kernel

import (
	"math"
)

// HalfToFloat32 writes the values of src, IEEE 754 binary16 as bits, to dst, exactly; a NaN stays a (quiet) NaN.
// It panics if dst is shorter than src.
func HalfToFloat32(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i := halfVector(dst, src); i < len(src); i++ {
		dst[i] = half(src[i])
	}
}

// half is one float16: moving its exponent and mantissa to float32's place makes 2^-112 of it, but for NaN and Inf.
func half(h uint16) float32 {
	sign, rest := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	switch {
	case rest > 0x7c00<<13:
		return math.Float32frombits(sign | rest | 0x7fc00000)
	case rest == 0x7c00<<13:
		return math.Float32frombits(sign | 0x7f800000)
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(rest)*0x1p112))
}
