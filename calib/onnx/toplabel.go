package onnx

// isTop is true at ŷ = argmax z (ties: lowest index): N×K bool.
func (b builder) isTop(z Value) Value {
	top := b.OpWith("ArgMax", []Attr{{Name: "axis", Int: -1}, {Name: "keepdims", Int: 1},
		{Name: "select_last_index", Int: 0}}, z)
	return b.Op("Equal", top, b.Op("Range", b.Int(0), b.classes(z), b.Int(1)))
}

// ofTop is the graph of a method that maps the top confidence, N×1 to N×1: p_ŷ = c' = add(c) and (1 - c') softmax over
// the other classes.
func ofTop[P any](add func(b builder, c Value, p P) Value) graph {
	return of(func(b builder, z Value, p P) Value {
		top := b.isTop(z)
		mapped := add(b, b.rowMax(b.softmax(z)), p)
		others := b.softmax(b.Op("Where", top, b.Scalar(negativeInfinity), z))
		rest := b.Op("Mul", b.Op("Sub", b.Scalar(1), mapped), others)
		return b.Op("Where", top, mapped, rest)
	})
}

// logOdds are the parameters of a line in log-odds.
type logOdds struct{ Slope, Intercept float64 }

// platt is σ(slope · ln(c/(1-c)) + intercept).
func (b builder) platt(c Value, p logOdds) Value {
	odds := b.Op("Sub", b.logC(c), b.logC(b.Op("Sub", b.Scalar(1), c)))
	return b.Op("Sigmoid", b.Op("Add", b.Op("Mul", b.Scalar(p.Slope), odds), b.Scalar(p.Intercept)))
}

// beta is σ(a ln c - b ln(1-c) + m).
func (b builder) beta(c Value, p struct{ A, B, M float64 }) Value {
	a := b.Op("Mul", b.Scalar(p.A), b.logC(c))
	m := b.Op("Mul", b.Scalar(p.B), b.logC(b.Op("Sub", b.Scalar(1), c)))
	return b.Op("Sigmoid", b.Op("Add", b.Op("Sub", a, m), b.Scalar(p.M)))
}

func (b builder) isotonic(c Value, p struct{ X, V []float64 }) Value {
	return b.interpolate(c, p.X, p.V)
}

func (b builder) spline(c Value, p struct{ Confidences, Values []float64 }) Value {
	return b.interpolate(c, p.Confidences, p.Values)
}

type bins struct{ Edges, Values []float64 }

func (b builder) scalingBinning(c Value, p struct {
	logOdds
	bins
}) Value {
	return b.binValue(b.platt(c, p.logOdds), p.bins)
}

// logC is ln c with c kept at 2⁻⁵³ at least.
func (b builder) logC(c Value) Value { return b.Op("Log", b.Op("Max", c, b.Scalar(0x1p-53))) }

// below counts the rising values x that are less than c: N×1 int64, and NaN counts none.
func (b builder) below(c Value, x []float64) Value {
	return b.rowSum(b.Cast(b.Op("Less", b.list(x), c), Int64))
}

// interpolate is linear between the points (x, v), and v of the first and last outside.
func (b builder) interpolate(c Value, x, v []float64) Value {
	j := b.below(c, x)
	hi := b.Op("Min", j, b.Int(int64(len(x)-1)))
	lo := b.Op("Max", b.Op("Sub", j, b.Int(1)), b.Int(0))
	xLo, xHi := b.Op("Gather", b.list(x), lo), b.Op("Gather", b.list(x), hi)
	vLo, vHi := b.Op("Gather", b.list(v), lo), b.Op("Gather", b.list(v), hi)
	// Outside, both ends are one point; the divisor there only has to be no zero.
	width := b.Op("Sub", xHi, xLo)
	inside := b.Op("Greater", width, b.Scalar(0))
	share := b.Op("Div", b.Op("Sub", c, xLo), b.Op("Where", inside, width, b.Scalar(1)))
	between := b.Op("Add", vLo, b.Op("Mul", share, b.Op("Sub", vHi, vLo)))
	return b.Op("Max", b.Op("Min", vLo, vHi), b.Op("Min", b.Op("Max", vLo, vHi), between))
}

// binValue is the value of the bin (edge j, edge j+1] of c.
func (b builder) binValue(c Value, p bins) Value {
	j := b.Op("Sub", b.below(c, p.Edges), b.Int(1))
	j = b.Op("Min", b.Op("Max", j, b.Int(0)), b.Int(int64(len(p.Values)-1)))
	return b.Op("Add", b.Op("Gather", b.list(p.Values), j), b.Op("Mul", c, b.Scalar(0))) // a NaN stays one
}
