package onnx

import (
	"encoding/json"
	"math"

	"github.com/plumbline/plumbline/calib/calibrator"
)

var lastAxis = []Attr{{Name: "axis", Int: -1}}

func (b builder) list(v []float64) Value { return b.Float64s(v, len(v)) }

func (b builder) softmax(z Value) Value { return b.OpWith("Softmax", lastAxis, z) }

// rowMax is max z, N×1.
func (b builder) rowMax(z Value) Value {
	return b.OpWith("ReduceMax", []Attr{{Name: "axes", Ints: []int64{-1}}, {Name: "keepdims", Int: 1}}, z)
}

// rowSum is Σ z, N×1.
func (b builder) rowSum(z Value) Value {
	return b.OpWith("ReduceSum", []Attr{{Name: "keepdims", Int: 1}}, z, b.Ints(-1))
}

// classes is K as a scalar int64.
func (b builder) classes(z Value) Value {
	return b.Op("Gather", b.Op("Shape", z), b.Int(1))
}

// affine is x Wᵀ + bias, W row-major out×in.
func (b builder) affine(x Value, w, bias []float64) Value {
	out := len(bias)
	in := len(w) / out
	t := make([]float64, len(w))
	for i := range out {
		for j := range in {
			t[j*out+i] = w[i*in+j]
		}
	}
	return b.Op("Add", b.Op("MatMul", x, b.Float64s(t, in, out)), b.list(bias))
}

type mixture struct {
	Temperature float64
	Weights     []float64
}

// ensemble is w₁ softmax(z/T) + w₂ softmax(z) + w₃/K.
func (b builder) ensemble(z Value, p mixture) Value {
	tempered := b.Op("Mul", b.Scalar(p.Weights[0]), b.softmax(b.Op("Div", z, b.Scalar(p.Temperature))))
	plain := b.Op("Mul", b.Scalar(p.Weights[1]), b.softmax(z))
	uniform := b.Op("Div", b.Scalar(p.Weights[2]), b.Cast(b.classes(z), Float64))
	return b.Op("Add", b.Op("Add", tempered, plain), uniform)
}

func (b builder) classTemperature(z Value, p struct{ Temperatures []float64 }) Value {
	return b.softmax(b.Op("Div", z, b.list(p.Temperatures)))
}

// linear are the weights W and biases B of a map of the logits: K and K for vector, else K×K and K.
type linear struct{ W, B []float64 }

func (b builder) vector(z Value, p linear) Value {
	return b.softmax(b.Op("Add", b.Op("Mul", z, b.list(p.W)), b.list(p.B)))
}

func (b builder) matrix(z Value, p linear) Value { return b.softmax(b.affine(z, p.W, p.B)) }

func (b builder) dirichlet(z Value, p linear) Value {
	return b.matrix(b.OpWith("LogSoftmax", lastAxis, z), p)
}

// classWeights is q w / Σ q w, q the probabilities of the base.
func (b builder) classWeights(z Value, params json.RawMessage) (Value, error) {
	var p struct {
		Weights []float64
		Base    json.RawMessage
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", err
	}
	base, err := b.calibrate(p.Base, z)
	if err != nil {
		return "", err
	}
	weighed := b.Op("Mul", base, b.list(p.Weights))
	return b.Op("Div", weighed, b.rowSum(weighed)), nil
}

// leastDifference is where a logit far below the largest one is cut off as an input of the network.
const leastDifference = -100

type network struct {
	Top                int
	W1, B1, W2, B2, W3 []float64
	B3                 float64
}

// parameterised is softmax(z/T) with T of the s largest logits by two layers.
func (b builder) parameterised(z Value, p network) Value {
	var h Value
	if p.Top > 1 {
		largest, _ := b.Op2("TopK", lastAxis, z, b.Ints(int64(p.Top)))
		first := b.Op("Slice", largest, b.Ints(0), b.Ints(1), b.Ints(1))
		others := b.Op("Slice", largest, b.Ints(1), b.Ints(int64(p.Top)), b.Ints(1))
		x := b.Op("Max", b.Op("Sub", others, first), b.Scalar(leastDifference))
		h = b.affine(x, p.W1, p.B1)
	} else {
		// One logit says nothing of the row; its zero keeps the number of rows, and a NaN.
		h = b.Op("Add", b.Op("Mul", b.rowMax(z), b.Scalar(0)), b.list(p.B1))
	}
	h = b.Op("Tanh", b.affine(b.Op("Tanh", h), p.W2, p.B2))
	share := b.Op("Sigmoid", b.affine(h, p.W3, []float64{p.B3}))
	lo, hi := math.Log(calibrator.MinTemperature), math.Log(calibrator.MaxTemperature)
	t := b.Op("Exp", b.Op("Add", b.Scalar(lo), b.Op("Mul", b.Scalar(hi-lo), share)))
	return b.softmax(b.Op("Div", z, t))
}

// intraOrder is softmax(-drop(max z - z)), drop the integral of the slopes, linear between knots and constant after
// the last.
func (b builder) intraOrder(z Value, p struct{ Knots, Slopes []float64 }) Value {
	n := len(p.Knots)
	at, width, next := make([]float64, n), make([]float64, n), make([]float64, n)
	slopeNext := append(append([]float64(nil), p.Slopes[1:]...), p.Slopes[n-1])
	for j := range n {
		if j == n-1 {
			width[j], next[j] = 1, math.MaxFloat64
			break
		}
		width[j] = p.Knots[j+1] - p.Knots[j]
		at[j+1] = at[j] + (p.Slopes[j]+p.Slopes[j+1])/2*width[j]
		next[j] = at[j+1]
	}
	gap := b.Op("Sub", b.rowMax(z), z)
	j := b.piece(gap, p.Knots)
	of := func(v []float64) Value { return b.Op("Gather", b.list(v), j) }
	bend := make([]float64, n)
	for i := range n {
		bend[i] = (slopeNext[i] - p.Slopes[i]) / (2 * width[i])
	}
	// A rising slope from the left of the piece, a falling one from its right: as Apply, so that no rounding crosses.
	left := b.Op("Sub", gap, of(p.Knots))
	right := b.Op("Sub", of(width), left)
	rise := b.Op("Min", of(next), b.Op("Add", of(at), b.Op("Mul", left, b.Op("Add", of(p.Slopes),
		b.Op("Mul", of(bend), left)))))
	fall := b.Op("Max", of(at), b.Op("Sub", of(next), b.Op("Mul", right,
		b.Op("Sub", of(slopeNext), b.Op("Mul", of(bend), right)))))
	rises := b.Op("Not", b.Op("Less", of(slopeNext), of(p.Slopes)))
	return b.softmax(b.Op("Neg", b.Op("Where", rises, rise, fall)))
}

// piece is the index of the last of the rising knots, the first of which is 0, that is not above x: N×K int64.
func (b builder) piece(x Value, knots []float64) Value {
	above := b.Op("Not", b.Op("Less", b.Op("Unsqueeze", x, b.Ints(-1)), b.list(knots))) // N×K×J
	count := b.OpWith("ReduceSum", []Attr{{Name: "keepdims", Int: 0}}, b.Cast(above, Int64), b.Ints(-1))
	return b.Op("Max", b.Op("Sub", count, b.Int(1)), b.Int(0))
}
