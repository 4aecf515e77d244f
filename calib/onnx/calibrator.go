package onnx

import (
	"encoding/json"
	"fmt"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// The names of a calibrator's input and output, both float32 and N×K.
const (
	InputName  = "logits"
	OutputName = "probabilities"
)

// Calibrator returns c as an ONNX model: input "logits", float32 N×K, output "probabilities", float32 N×K, N free and
// K free or that of c. A model that gives probabilities feeds their logarithms, as Apply has it. Inside, the graph
// computes in float64 as Apply does: a table of bins must put a confidence into the same bin, and 1 - c of a
// confidence near 1 has no digits in float32.
//
// For finite logits the outputs are those of c.Apply to 1e-5, and nearer but for a confidence within rounding
// (2⁻⁵⁰) of the edge of a bin. A row with a NaN or +Inf comes out as NaN.
//
// The calibrator's own JSON is in the model's metadata, under plumbline.calibrator. Every calibrator that Encode
// writes has a graph; it returns Encode's error for others.
func Calibrator(c calibrator.Calibrator) ([]byte, error) {
	encoded, err := calibrator.Encode(c)
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	b := builder{&Graph{
		Name: "calibrator_" + c.Method(),
		Doc:  c.Describe(),
		Meta: map[string]string{"plumbline.calibrator": string(encoded)},
	}}
	k := Dim{Name: "K"}
	if classes := calibrator.ClassesOf(c); classes > 0 {
		k = Dim{Size: classes}
	}
	n := Dim{Name: "N"}
	z := b.Cast(b.Input(InputName, Float32, n, k), Float64)
	p, err := b.calibrate(encoded, z)
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	b.Output(OutputName, b.Cast(p, Float32), Float32, n, k)
	return b.Bytes(), nil
}

// builder has the graphs of calibrators on top of Graph.
type builder struct{ *Graph }

// params are the parameters of every method, as docs/format.md has them.
type params struct {
	Temperature        float64         `json:"temperature"`
	Weights            []float64       `json:"weights"`
	Temperatures       []float64       `json:"temperatures"`
	W, B               json.RawMessage // a list, but one number in beta
	A, M               float64
	Top, Hidden        int
	W1, B1, W2, B2, W3 []float64
	B3                 float64
	Knots, Slopes      []float64
	Slope, Intercept   float64
	X, V               []float64
	Edges, Values      []float64
	Confidences        []float64
	Threshold          float64
	Base               json.RawMessage
	weights, biases    []float64
	biasOfBeta         float64
}

func decode(encoded []byte) (method string, p params, err error) {
	var head struct {
		Method      string
		Temperature float64
		Params      params
	}
	if err := json.Unmarshal(encoded, &head); err != nil {
		return "", params{}, err
	}
	p = head.Params
	if head.Method == "temperature" {
		p.Temperature = head.Temperature
	}
	if p.W != nil {
		if err := json.Unmarshal(p.W, &p.weights); err != nil {
			return "", params{}, fmt.Errorf("w: %w", err)
		}
	}
	if p.B != nil {
		into := any(&p.biases)
		if head.Method == "beta" {
			into = &p.biasOfBeta
		}
		if err := json.Unmarshal(p.B, into); err != nil {
			return "", params{}, fmt.Errorf("b: %w", err)
		}
	}
	return head.Method, p, nil
}

// calibrate adds the graph of an encoded calibrator on the logits z and returns its probabilities.
func (b builder) calibrate(encoded []byte, z Value) (Value, error) {
	method, p, err := decode(encoded)
	if err != nil {
		return "", err
	}
	switch method {
	case "identity":
		return b.softmax(z), nil
	case "temperature":
		return b.softmax(b.Op("Div", z, b.Scalar(p.Temperature))), nil
	case "ensemble_temperature":
		return b.ensemble(z, p), nil
	case "class_temperature":
		return b.softmax(b.Op("Div", z, b.list(p.Temperatures))), nil
	case "vector":
		return b.softmax(b.Op("Add", b.Op("Mul", z, b.list(p.weights)), b.list(p.biases))), nil
	case "matrix":
		return b.softmax(b.affine(z, p.weights, p.biases)), nil
	case "dirichlet":
		return b.softmax(b.affine(b.OpWith("LogSoftmax", lastAxis, z), p.weights, p.biases)), nil
	case "parameterised_temperature":
		return b.parameterised(z, p), nil
	case "intra_order_preserving":
		return b.intraOrder(z, p), nil
	case "metacal":
		return b.metaCal(z, p)
	case "class_weights":
		return b.classWeights(z, p)
	}
	if of := b.topMap(method, p); of != nil {
		return b.topLabel(z, of), nil
	}
	return "", fmt.Errorf("method %q has no graph", method)
}
