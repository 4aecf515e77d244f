package acc

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
	"github.com/plumbline/plumbline/internal/binenc"
)

const (
	fixBits = fixedpoint.Bits
	fixOne  = 1 << fixBits
	unit    = 1.0 / fixOne

	fixFast = fixedpoint.Limit

	// maxWeight bounds a row's weight, so that it and its products with values in [0,1] fit in 63 bits.
	maxWeight = 1 << 31
)

// fix rounds x, 0 <= x < 2^31, to the nearest multiple of 2^-32, ties to even, in units of 2^-32.
// It is monotone, which keeps w·c² <= w·c <= w true of the rounded values and hence of their sums.
func fix(x float64) int64 {
	if x < fixFast {
		return fixedpoint.Round(x)
	}
	return int64(math.RoundToEven(x * fixOne))
}

func unfix(v int64) float64 { return float64(v) * unit }

// checkWeight returns ErrValue unless 0 < w < 2^31.
func checkWeight(w float64) error {
	if !(w > 0 && w < maxWeight) {
		return fmt.Errorf("weight is %v, allowed above 0 and below 2^31: %w", w, ErrValue)
	}
	return nil
}

// checkUnit returns ErrValue unless v is in [0,1].
func checkUnit(name string, v float64) error {
	if !(v >= 0 && v <= 1) {
		return fmt.Errorf("%s is %v, allowed 0 to 1: %w", name, v, ErrValue)
	}
	return nil
}

// checkRoom returns ErrOverflow unless n more rows and the weight w fit into sums of n0 rows and weight w0.
// All other 64-bit sums of an accumulator are at most its Σw, so this is the only check that they need.
func checkRoom(n0, w0, n, w int64) error {
	if n > math.MaxInt64-n0 || w > math.MaxInt64-w0 {
		return fmt.Errorf("add %d rows of weight %g to %d of %g: %w", n, unfix(w), n0, unfix(w0), ErrOverflow)
	}
	return nil
}

// i128 is a two's complement 128-bit integer, hi·2^64 + lo.
type i128 struct {
	hi int64
	lo uint64
}

// saturation is the largest magnitude of one row's value in an i128 sum, in the value's own unit.
const saturation = 1 << 62

// fix128 rounds x to the nearest multiple of 2^-32, ties to even; |x| >= 2^62, infinity included, becomes ±2^62.
func fix128(x float64) i128 {
	if x < 0 {
		return fix128(-x).neg()
	}
	x = math.RoundToEven(min(x, saturation) * fixOne)
	const two64 = 1 << 64
	hi := math.Floor(x / two64)
	return i128{int64(hi), uint64(x - hi*two64)} // exact: x is an integer of 53 significant bits
}

func int128(v int64) i128 { return i128{v >> 63, uint64(v)} }

func (a i128) neg() i128 {
	lo, borrow := bits.Sub64(0, a.lo, 0)
	hi, _ := bits.Sub64(0, uint64(a.hi), borrow)
	return i128{int64(hi), lo}
}

// add returns a + b, and false if that does not fit.
func (a i128) add(b i128) (i128, bool) {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	h, _ := bits.Add64(uint64(a.hi), uint64(b.hi), carry)
	hi := int64(h)
	return i128{hi, lo}, (a.hi^b.hi) < 0 || (a.hi^hi) >= 0
}

// plus returns a + b where the caller knows that it fits.
func (a i128) plus(b int64) i128 {
	lo, carry := bits.Add64(a.lo, uint64(b), 0)
	return i128{a.hi + b>>63 + int64(carry), lo}
}

// plusShifted returns a + b·2^shift where the caller knows that it fits.
func (a i128) plusShifted(b int64, shift uint) i128 {
	lo, carry := bits.Add64(a.lo, uint64(b)<<shift, 0)
	return i128{a.hi + b>>(64-shift) + int64(carry), lo}
}

// roomy reports whether 2^31 more values of fix128, each below 2^95 units, fit.
func (a i128) roomy() bool {
	const far = 1 << 62
	return a.hi > -far && a.hi < far
}

// float returns a as the nearest float64 or its neighbour.
func (a i128) float() float64 {
	if a.hi < 0 && a != (i128{math.MinInt64, 0}) {
		return -a.neg().float()
	}
	return float64(a.hi)*(1<<64) + float64(a.lo)
}

// value returns the sum that a holds in units of 2^-32.
func (a i128) value() float64 { return a.float() * unit }

func (a i128) append(b []byte) []byte {
	return binenc.AppendUvarint(binenc.AppendVarint(b, a.hi), a.lo)
}

func readI128(r *binenc.Reader) i128 { return i128{r.Varint(), r.Uvarint()} }

// mulDiv returns ⌊a·b/d⌋ for 0 <= a, 0 <= b <= d, and 0 where d = 0. The codecs predict one sum from others by it.
func mulDiv(a, b, d int64) int64 {
	if d <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi == 0 {
		return int64(lo / uint64(d))
	}
	q, _ := bits.Div64(hi, lo, uint64(d))
	return int64(q)
}

// Logarithms that enter a state. The functions of package math differ by platform, in their assembly and in the sums
// that the compiler fuses. These, like fixedpoint.Exp, are plain Go with every product rounded on its own.

// log returns ln x for normal x > 0, to 1 ulp (after FreeBSD's e_log.c).
func log(x float64) float64 {
	b := math.Float64bits(x)
	// x = 2^k·(1+f) with √2/2 < 1+f < √2
	const sqrtHalf = 0x3FE6A09E667F3BCD
	k := int64(b-sqrtHalf) >> 52
	f := math.Float64frombits(b-uint64(k)<<52) - 1
	return logParts(f, 0, float64(k))
}

// logParts returns k·ln 2 + ln(1+f) + c.
func logParts(f, c, k float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
		l1    = 6.666666666666735130e-01
		l2    = 3.999999999940941908e-01
		l3    = 2.857142874366239149e-01
		l4    = 2.222219843214978396e-01
		l5    = 1.818357216161805012e-01
		l6    = 1.531383769920937332e-01
		l7    = 1.479819860511658591e-01
	)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := float64(s2 * (l1 + float64(s4*(l3+float64(s4*(l5+float64(s4*l7)))))))
	t2 := float64(s4 * (l2 + float64(s4*(l4+float64(s4*l6)))))
	hfsq := float64(0.5 * float64(f*f))
	rest := float64(s*(hfsq+t1+t2)) + (c + float64(k*ln2Lo))
	return float64(k*ln2Hi) - ((hfsq - rest) - f)
}
