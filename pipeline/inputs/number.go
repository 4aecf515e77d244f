package inputs

import (
	"math"
	"strconv"
	"unsafe"
)

// powers are those of ten that a float64 holds exactly.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// maxDigits is how many digits a mantissa of 64 bits always holds.
const maxDigits = 19

// float32Of is the float32 that is nearest to mantissa·10^exp. A float64 of it is made by two operations, each of which
// is at most half a unit of its last place off. So its float32 is the number's unless it lies within a few units of the
// middle between two; ok is false there, and where a power of ten or the result is beyond what this holds for.
func float32Of(mantissa uint64, exp int, negative bool) (f float32, ok bool) {
	if exp < -22 || exp > 22 {
		return 0, false
	}
	wide := float64(mantissa)
	if exp < 0 {
		wide /= powers[-exp]
	} else {
		wide *= powers[exp]
	}
	const half, low, off = 1 << 28, 1<<29 - 1, 4
	if math.Float64bits(wide)&low-(half-off) <= 2*off || mantissa != 0 && wide < math.SmallestNonzeroFloat32*(1<<24) {
		return 0, false
	}
	if negative {
		wide = -wide
	}
	return float32(wide), true
}

// float reads a number as the float32 that is nearest to it, infinite beyond the largest.
func (s *scanner) float() (float32, error) {
	from := s.i
	if mantissa, exp, ok := s.decimal(); ok {
		if f, ok := float32Of(mantissa, exp, s.b[from] == '-'); ok {
			return f, nil
		}
	}
	s.i = from
	raw, err := s.number()
	if err != nil {
		return 0, err
	}
	// the number was checked: only its range can be wrong
	f, _ := strconv.ParseFloat(unsafe.String(&raw[0], len(raw)), 32)
	return float32(f), nil
}

// decimal takes a number apart; ok is false where it is none, or has more digits than fit, or a long exponent.
func (s *scanner) decimal() (mantissa uint64, exp int, ok bool) {
	b := s.b
	digits := func() (n int) {
		i := s.i
		for i < len(b) && b[i]-'0' < 10 {
			mantissa = mantissa*10 + uint64(b[i]-'0')
			i++
		}
		n, s.i = i-s.i, i
		return n
	}
	if s.i < len(b) && b[s.i] == '-' {
		s.i++
	}
	from := s.i
	n := digits()
	if n == 0 || n > 1 && b[from] == '0' {
		return 0, 0, false
	}
	if s.i < len(b) && b[s.i] == '.' {
		s.i++
		part := digits()
		if exp, n = -part, n+part; part == 0 {
			return 0, 0, false
		}
	}
	if n > maxDigits {
		return 0, 0, false
	}
	if s.i == len(b) || b[s.i]|0x20 != 'e' {
		return mantissa, exp, true
	}
	e, ok := s.exponent()
	return mantissa, exp + e, ok
}

// exponent reads one of at most three digits at its e.
func (s *scanner) exponent() (e int, ok bool) {
	s.i++
	negative := false
	if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
		negative = s.b[s.i] == '-'
		s.i++
	}
	from := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' < 10 && s.i < from+4 {
		e = e*10 + int(s.b[s.i]-'0')
		s.i++
	}
	if negative {
		e = -e
	}
	return e, s.i > from && s.i <= from+3
}

// parseFloat32 is the float32 of text that is a number in JSON.
func parseFloat32(raw []byte) float32 {
	s := scanner{b: raw}
	f, _ := s.float()
	return f
}
