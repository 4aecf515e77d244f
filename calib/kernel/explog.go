package kernel

import "math"

// math.Exp and math.Log are assembly on some architectures, and their results differ in the last bits. These are the
// package's own: every product and sum is rounded on its own or is a math.FMA, so they give the same bits everywhere.

const (
	ln2Hi        = 0x1.62e42feep-1       // the first 32 bits of ln 2: its product with an exponent is exact
	ln2Lo        = 0x1.a39ef35793c76p-33 // the rest
	sqrtHalfBits = 0x3fe6a09e667f3bcd    // of √½, where the mantissa's interval [√½, √2) begins
)

// lnCoef are those of ln((1+s)/(1-s)) - 2s = s·Σ_n z^n·2/(2n+1), z = s² ≤ 0.0295; the terms left out are below 2^-54.
var lnCoef = [...]float64{2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19}

// lnNormal returns ln x of a positive normal number, to within about 1 ulp. With x = 2^k·(1+f), 1+f in [√½, √2),
// and s = f/(2+f): ln(1+f) = f - (h - s·(h + R)), h = f²/2. Near x = 1 it is relatively exact, as f is.
func lnNormal(x float64) float64 {
	b := math.Float64bits(x)
	k := int64(b-sqrtHalfBits) >> 52
	f := math.Float64frombits(b-uint64(k)<<52) - 1
	kf := float64(k)
	s := f / (2 + f)
	z := float64(s * s)
	z2 := float64(z * z)
	z4 := float64(z2 * z2)
	c := &lnCoef
	lo := math.FMA(math.FMA(c[3], z, c[2]), z2, math.FMA(c[1], z, c[0]))
	hi := math.FMA(math.FMA(c[7], z, c[6]), z2, math.FMA(c[5], z, c[4]))
	r := float64(math.FMA(math.FMA(c[8], z4, hi), z4, lo) * z)
	h := float64(float64(0.5*f) * f)
	tail := math.FMA(s, h+r, float64(kf*ln2Lo))
	return math.FMA(kf, ln2Hi, f-(h-tail))
}

// ln returns ln x, subnormal numbers included.
func ln(x float64) float64 {
	switch {
	case x >= 0x1p-1022 && x <= math.MaxFloat64:
		return lnNormal(x)
	case x > 0 && x < 1:
		return math.FMA(-54, ln2Hi, lnNormal(x*0x1p54)) - 54*ln2Lo
	default:
		return math.Log(x) // 0, infinities, NaN and negative numbers, all of which are exact
	}
}

// ln1p returns ln(1+x), x ≥ 0, relatively exact for small x.
func ln1p(x float64) float64 {
	u := 1 + x
	if u > math.MaxFloat64 {
		return u
	}
	return math.FMA(x-(u-1), 1/u, lnNormal(u))
}

// exp returns e^x, to within about 1 ulp: x = k·ln 2 + r, |r| ≤ (ln 2)/2, and a Taylor polynomial of degree 13 in r.
func exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x < -746:
		return 0
	case x > 710:
		return math.Inf(1)
	}
	const magic = 0x1.8p52
	k := math.FMA(x, math.Log2E, magic) - magic
	r := math.FMA(-k, ln2Hi, x)
	r = math.FMA(-k, ln2Lo, r)
	r2 := float64(r * r)
	r4 := float64(r2 * r2)
	a := math.FMA(r, 1./6, 1./2)
	b := math.FMA(r, 1./120, 1./24)
	c := math.FMA(r, 1./5040, 1./720)
	d := math.FMA(r, 1./362880, 1./40320)
	e := math.FMA(r, 1./39916800, 1./3628800)
	f := math.FMA(r, 1./6227020800, 1./479001600)
	ab := math.FMA(r2, b, a)
	cd := math.FMA(r2, d, c)
	ef := math.FMA(r2, f, e)
	p := math.FMA(r4, math.FMA(r4, ef, cd), ab)
	p = 1 + math.FMA(r2, p, r)
	n := int64(k)
	if n < -1021 {
		return p * math.Float64frombits(uint64(n+60+1023)<<52) * 0x1p-60
	}
	if n > 1023 {
		return p * 2 * math.Float64frombits(uint64(n-1+1023)<<52)
	}
	return p * math.Float64frombits(uint64(n+1023)<<52)
}
