package inputs

import (
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// powers are those of ten that a float64 holds exactly.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// parseFloat32 is the float32 that is nearest to a number in JSON, infinite beyond the largest. A mantissa of 53 bits
// and a power of ten that is exact give the nearest float64 by one operation; its float32 is the number's, unless it
// lies halfway between two.
func parseFloat32(raw []byte) float32 {
	mantissa, exp, ok := decimal(raw)
	if ok && mantissa < 1<<53 && exp >= -22 && exp <= 22 {
		f := float64(mantissa)
		if exp < 0 {
			f /= powers[-exp]
		} else {
			f *= powers[exp]
		}
		const half, low = 1 << 28, 1<<29 - 1
		if math.Float64bits(f)&low != half && (f == 0 || f > math.SmallestNonzeroFloat32*(1<<24)) {
			if raw[0] == '-' {
				f = -f
			}
			return float32(f)
		}
	}
	// the number was checked: only its range can be wrong
	f, _ := strconv.ParseFloat(unsafe.String(&raw[0], len(raw)), 32)
	return float32(f)
}

// decimal takes a number in JSON apart; ok is false where it has more digits than fit, or an exponent of many.
func decimal(raw []byte) (mantissa uint64, exp int, ok bool) {
	i, digits := 0, 0
	if raw[0] == '-' {
		i = 1
	}
	point := -1
	for ; i < len(raw); i++ {
		switch c := raw[i]; {
		case c >= '0' && c <= '9':
			if mantissa != 0 || c != '0' {
				if digits++; digits > 18 {
					return 0, 0, false
				}
			}
			mantissa = mantissa*10 + uint64(c-'0')
			if point >= 0 {
				exp--
			}
		case c == '.':
			point = i
		default: // e or E
			e, err := strconv.Atoi(string(raw[i+1:]))
			return mantissa, exp + e, err == nil && e > -100 && e < 100
		}
	}
	return mantissa, exp, true
}

// epochUnit makes nanoseconds of a time since 1970 whose unit follows from its size.
func epochUnit(n int64) int64 {
	unit := unitOf(n)
	if n > math.MaxInt64/unit || n < -math.MaxInt64/unit {
		return math.MaxInt64 // no time that a row may have
	}
	return n * unit
}

// unitOf is the unit, in nanoseconds, of a time since 1970.
func unitOf(n int64) int64 {
	switch {
	case n < 1e11 && n > -1e11:
		return 1e9
	case n < 1e14 && n > -1e14:
		return 1e6
	case n < 1e17 && n > -1e17:
		return 1e3
	}
	return 1
}

// sinceEpoch is epochUnit of a number in JSON, which may have a fraction.
func sinceEpoch(s string) (ns int64, ok bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && !strings.ContainsAny(fraction, "eE") {
		unit := unitOf(n)
		part := int64(0)
		for i, scale := 0, unit/10; i < len(fraction) && scale > 0; i, scale = i+1, scale/10 {
			part += int64(fraction[i]-'0') * scale
		}
		if strings.HasPrefix(s, "-") {
			part = -part
		}
		if ns = epochUnit(n); ns == math.MaxInt64 {
			return ns, true
		}
		return ns + part, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) >= 1e11 {
		return 0, false
	}
	return int64(f * 1e9), true
}
