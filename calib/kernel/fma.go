//go:build !(arm64 || loong64 || ppc64le || riscv64 || s390x)

package kernel

import "math"

// fma32 returns a·b + c rounded once, as the vector instructions do. The product of two float32 is exact in float64;
// the sum is then rounded twice, which differs from once only where the first rounding ends on a tie of the second
// (the low 29 bits are 1 and 28 zeros) or where the result is subnormal. Rounding the sum to odd repairs those.
// A compiler that fuses the product into the sum changes nothing, for the product is exact.
func fma32(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	bits := math.Float64bits(s)
	if bits&0x1fffffff == 0x10000000 || bits&(0x7ff<<52) < 0x381<<52 {
		return fma32Odd(p, float64(c), s)
	}
	return float32(s)
}

// fma32Odd rounds p + c, whose float64 sum is s, to odd and then to float32.
func fma32Odd(p, c, s float64) float32 {
	bb := s - p
	err := (p - (s - bb)) + (c - bb)
	bits := math.Float64bits(s)
	if err != 0 && bits&1 == 0 {
		if (err > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}
