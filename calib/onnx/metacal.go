package onnx

import (
	"encoding/json"
	"math"
)

var negativeInfinity = math.Inf(-1)

// metaCal is the base calibrator where the entropy of the row is at most the threshold, and 1/K elsewhere.
func (b builder) metaCal(z Value, params json.RawMessage) (Value, error) {
	var p struct {
		Threshold float64
		Base      json.RawMessage
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", err
	}
	base, err := b.calibrate(p.Base, z)
	if err != nil {
		return "", err
	}
	uniform := b.Op("Div", b.Scalar(1), b.Cast(b.classes(z), Float64))
	h := b.entropy(z)
	given := b.Op("Greater", h, b.Scalar(p.Threshold))
	return b.Op("Add", b.Op("Where", given, uniform, base), b.Op("Mul", h, b.Scalar(0))), nil // a NaN stays one
}

// entropy is ln(1+r) - d/(1+r) nats, r = Σ e^g and d = Σ g e^g over the classes but the top one, g = z - max z: with
// the top class apart nothing cancels where it is all but sure.
func (b builder) entropy(z Value) Value {
	others := b.Op("Not", b.isTop(z))
	g := b.Op("Sub", z, b.rowMax(z))
	e := b.Op("Exp", g)
	rest := b.rowSum(b.Op("Where", others, e, b.Scalar(0)))
	dot := b.rowSum(b.Op("Where", others, b.Op("Mul", b.Op("Max", g, b.Scalar(-1000)), e), b.Scalar(0)))
	return b.Op("Sub", b.logOnePlus(rest), b.Op("Div", dot, b.Op("Add", b.Scalar(1), rest)))
}

// logOnePlus is ln(1+x) to full relative precision, x ≥ 0: ONNX has no log1p. With u = 1+x as rounded, it is
// x ln(u)/(u-1), and x where u = 1 (Kahan).
func (b builder) logOnePlus(x Value) Value {
	u := b.Op("Add", b.Scalar(1), x)
	off := b.Op("Sub", u, b.Scalar(1))
	some := b.Op("Greater", off, b.Scalar(0))
	return b.Op("Where", some, b.Op("Div", b.Op("Mul", x, b.Op("Log", u)), b.Op("Where", some, off, b.Scalar(1))), x)
}
