package kernel

import "math"

const (
	// lanes is the width of the fixed order of operations, see the package's documentation.
	lanes = 16
	// columnK is where rows become long enough to be summed along the row: below it a row is a lane.
	columnK = 64
	// flushEvery is how many float32 terms a lane sums before they go to float64.
	flushEvery = 16
	// sumP2Start is what the float32 lanes of Σe² start at, so that squares below 2^-126 never make a subnormal sum.
	sumP2Start = 0x1p-60
	// maxExponent is the largest |max·log2(e)/t| for which the float32 arithmetic is exact enough.
	maxExponent = 1 << 17
	// minRest: a row whose other classes sum to less than K·minRest loses some of them below float32's range.
	minRest = 0x1p-104

	magic32   = 0x1.8p23       // adding it rounds to an integer
	magicBias = 0x1.8p23 + 127 // and this leaves an exponent's bits
	zeroScale = 127            // 2^-127 has the exponent bits of 0
)

// expCoef is 2^r = 1 + Σ c_i r^i for |r| ≤ 0.52, relative error 1.2e-8, from degree 6 to 1.
var expCoef = [...]float32{
	0x1.442950p-13, 0x1.5f2802p-10, 0x1.3b2a42p-7, 0x1.c6af3cp-5, 0x1.ebfbe0p-3, 0x1.62e430p-1,
}

// params are those of one call: log2(e)/t = hi + lo. The vector paths know the layout.
type params struct {
	hi, lo float32
	inv    float32 // 1/hi
	_      int32
	beta   float64 // 1/t
	rest   float64 // K·minRest; 0 for K = 1
}

// setup fills p; it returns false for a temperature that the float32 arithmetic is not made for.
func (p *params) setup(k int, t float64) bool {
	scale := math.Log2E / t
	if !(scale >= 0x1p-20 && scale <= 0x1p20) {
		return false
	}
	p.hi = float32(scale)
	p.lo = float32(scale - float64(p.hi))
	p.inv = 1 / p.hi
	p.beta = 1 / t
	p.rest = float64(k) * minRest
	if k == 1 {
		p.rest = 0
	}
	return true
}

// sums are those of 16 rows, e' being e scaled by a power of two and 0 where an element equals the maximum.
// The vector paths know the layout.
type sums struct {
	max     [32]float32 // of the 16 rows and, where they are long, of the two that follow
	second  [lanes]float32
	count   [lanes]int32 // of elements equal to the maximum
	arg     [lanes]int32
	s, d, q [lanes]float64 // Σe', Σ(z-max)e', Σe'²
	inv     [lanes]float32 // 1/e' of the maximum
}
