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

// graph adds the graph of a method with encoded parameters on the logits z, and returns its probabilities.
type graph func(b builder, z Value, params json.RawMessage) (Value, error)

// graphs has the graph of every method with parameters, which are those of docs/format.md. A new method is a line here.
func graphs() map[string]graph {
	return map[string]graph{
		"ensemble_temperature":      of(builder.ensemble),
		"class_temperature":         of(builder.classTemperature),
		"vector":                    of(builder.vector),
		"matrix":                    of(builder.matrix),
		"dirichlet":                 of(builder.dirichlet),
		"parameterised_temperature": of(builder.parameterised),
		"intra_order_preserving":    of(builder.intraOrder),
		"metacal":                   builder.metaCal,
		"class_weights":             builder.classWeights,
		"platt":                     ofTop(builder.platt),
		"beta":                      ofTop(builder.beta),
		"isotonic":                  ofTop(builder.isotonic),
		"spline":                    ofTop(builder.spline),
		"histogram":                 ofTop(builder.binValue),
		"scaling_binning":           ofTop(builder.scalingBinning),
	}
}

// of is the graph of a method with parameters P.
func of[P any](add func(b builder, z Value, p P) Value) graph {
	return func(b builder, z Value, params json.RawMessage) (Value, error) {
		var p P
		if err := json.Unmarshal(params, &p); err != nil {
			return "", err
		}
		return add(b, z, p), nil
	}
}

// calibrate adds the graph of an encoded calibrator on the logits z and returns its probabilities.
func (b builder) calibrate(encoded []byte, z Value) (Value, error) {
	var c struct {
		Method      string
		Temperature float64
		Params      json.RawMessage
	}
	if err := json.Unmarshal(encoded, &c); err != nil {
		return "", err
	}
	switch c.Method {
	case "identity":
		return b.softmax(z), nil
	case "temperature":
		return b.softmax(b.Op("Div", z, b.Scalar(c.Temperature))), nil
	}
	add, ok := graphs()[c.Method]
	if !ok {
		return "", fmt.Errorf("method %q has no graph", c.Method)
	}
	return add(b, z, c.Params)
}
