// Package fixedpoint adds rows of float64 values to sums in fixed point, multiples of 2^-32, many lanes at a time:
// the inner loops of the accumulators (calib/acc).
//
// Adding 1.5·2^20 to 0 <= x < 2^19 leaves a float64 whose last bit is worth 2^-32, so the addition rounds x to
// nearest, ties to even, and the difference of the bits is the integer:
//
//	round(x·2^32) = bits(x + 1.5·2^20) - bits(1.5·2^20)
//
// The other steps are float64 products, each rounded, the fused multiply-add of RoundProduct, and integer additions. So
// the AVX-512, the AVX2 and the plain Go path give the same bits; the first that the processor has is used. The package
// must not know what a sum means.
package fixedpoint
