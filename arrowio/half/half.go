package half

import "math"

// Bits returns x as the bits of IEEE 754 binary16, rounded to nearest, ties to even. What rounds to more than 65504
// becomes infinite; a NaN stays one.
func Bits(x float32) uint16 {
	const (
		mantissa   = 13         // bits of float32 that binary16 has no room for
		rebias     = 112        // 127 − 15
		overflow   = 0x47800000 // 2^16
		smallest   = 0x38800000 // 2^−14, the smallest normal binary16
		infinite   = 0x7c00
		quiet      = 0x0200
		float32NaN = 0x7f800000
	)
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > float32NaN:
		return sign | infinite | quiet
	case b >= overflow:
		return sign | infinite
	case b < smallest:
		// Adding 2^(-24+23) = 0.5 leaves the rounded multiple of 2^−24 in the low bits.
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-math.Float32bits(0.5))
	}
	odd := b >> mantissa & 1
	b += 1<<(mantissa-1) - 1 + odd - rebias<<23
	return sign | uint16(b>>mantissa)
}

// Encode writes Bits of each number to dst and reports whether all are finite as binary16. It panics where dst is
// shorter than src.
func Encode(dst []uint16, src []float32) (finite bool) {
	const (
		smallest = 0x38800000 // 2^−14
		largest  = 0x477ff000 // 65520, the first that rounds to more than 65504
	)
	dst = dst[:len(src)]
	finite = true
	for i, x := range src {
		b := math.Float32bits(x)
		m := b & 0x7fffffff
		if m-smallest < largest-smallest { // most are: Bits without its branches
			m += 1<<12 - 1 + m>>13&1 - 112<<23
			dst[i] = uint16(b>>16&0x8000 | m>>13)
			continue
		}
		h := Bits(x)
		finite = finite && h&0x7c00 != 0x7c00
		dst[i] = h
	}
	return finite
}

// Value is the number that the bits of IEEE 754 binary16 stand for, exactly; a NaN stays one, made quiet. (The Arrow
// library's conversion is wrong for subnormals.)
func Value(h uint16) float32 {
	sign, rest := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	switch {
	case rest > 0x7c00<<13:
		return math.Float32frombits(sign | rest | 0x7fc00000)
	case rest == 0x7c00<<13:
		return math.Float32frombits(sign | 0x7f800000)
	}
	// Exponent and mantissa at float32's place make 2^-112 of it.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(rest)*0x1p112))
}
