package vexp

import "math"

// Floor is where exp becomes 0: e^-700 is 1e-304, and no sum that has a 1 in it sees that.
const Floor = -700

// Shifted writes e^(x_i - top) to dst_i, for x_i ≤ top; 0 where x_i - top < Floor. Its error is about one unit in the
// last place. dst and x have one length and may be one slice. Numbers above top, and NaN, give nothing useful.
func Shifted(dst, x []float64, top float64) {
	dst = dst[:len(x)]
	done := 0
	if n := len(x) &^ (lanes - 1); n > 0 {
		shifted(dst[:n], x[:n], top)
		done = n
	}
	for i, v := range x[done:] {
		dst[done+i] = expGo(v - top)
	}
}

// lanes is that of the widest vector; the vector paths take whole ones.
const lanes = 8

// 1.5·2^52 rounds what is added to it to an integer, which is then in its lowest bits.
const magic = 0x1.8p52

// ln 2 in two parts; the product of the first one and an integer is exact.
const (
	ln2hi = 0x1.62e42fefa38p-1
	ln2lo = 0x1.ef35793c7673p-45
)

// factors are 1/i!. With |r| ≤ ln(2)/2 the terms after them are below 1e-17.
var factors = [...]float64{
	1, 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
	1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
}

// expGo is e^d = 2^k e^r, d ≤ 0.
func expGo(d float64) float64 {
	r := max(d, Floor)
	t := math.FMA(r, math.Log2E, magic)
	k := t - magic
	r = math.FMA(k, -ln2hi, r)
	r = math.FMA(k, -ln2lo, r)
	p := factors[len(factors)-1]
	for i := len(factors) - 2; i >= 0; i-- {
		p = math.FMA(p, r, factors[i])
	}
	if !(d >= Floor) {
		return 0
	}
	return math.Float64frombits(math.Float64bits(p) + math.Float64bits(t)<<52)
}

func shiftedGo(dst, x []float64, top float64) {
	for i, v := range x {
		dst[i] = expGo(v - top)
	}
}
