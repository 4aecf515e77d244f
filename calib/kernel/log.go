package kernel

import "math"

// Log returns ln x for x ≥ 0, subnormal numbers included. math.Log is wrong for those on amd64
// (Go 1.26: ln 2^-1074 comes out as -709.1, not -744.4), and probabilities do get that small.
func Log(x float64) float64 {
	if x < 0x1p-1022 && x > 0 {
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}
