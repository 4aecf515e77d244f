package artefact

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/calib/onnx"
	"github.com/plumbline/plumbline/trainer/head"
)

// ONNX returns h as a model: input "features", float32 N×D, outputs "logits" and "probabilities", float32 N×K, N
// free, with probabilities = softmax(logits/temperature) and logits as they are.
func ONNX(h *head.Head, temperature float64, meta map[string]string) ([]byte, error) {
	if !(temperature > 0) {
		return nil, fmt.Errorf("onnx: temperature %g, allowed are values above 0", temperature)
	}
	n, k := onnx.Dim{Name: "N"}, onnx.Dim{Size: h.K()}
	doc := fmt.Sprintf("classifier head, %d features, %d classes", h.D(), h.K())
	g := &onnx.Graph{Name: "head", Doc: doc, Meta: meta}
	x := g.Input("features", onnx.Float32, n, onnx.Dim{Size: h.D()})
	for i, l := range h.Layers {
		if i > 0 {
			x = g.Op("Relu", x)
		}
		w, b := g.Float32s(l.W, l.Out, l.In), g.Float32s(l.B, l.Out)
		x = g.OpWith("Gemm", []onnx.Attr{{Name: "transB", Int: 1}}, x, w, b)
	}
	p := x
	if temperature != 1 {
		p = g.Op("Div", x, g.Float32s([]float32{float32(temperature)}))
	}
	g.Output("logits", x, onnx.Float32, n, k)
	g.Output("probabilities", g.OpWith("Softmax", []onnx.Attr{{Name: "axis", Int: -1}}, p), onnx.Float32, n, k)
	return g.Bytes(), nil
}

// Field numbers of onnx.proto: of ModelProto and GraphProto.
const (
	onnxModelGraph  = 7
	onnxGraphNode   = 1
	onnxGraphOutput = 12
)

// CheckONNX says why the bytes of another program's file are no ONNX model with a graph, nodes and outputs. It does not
// check what the graph computes.
func CheckONNX(b []byte) error {
	model, err := protoFields(b)
	if err != nil {
		return fmt.Errorf("onnx: %w", err)
	}
	graph, err := protoFields(model[onnxModelGraph])
	if err != nil {
		return fmt.Errorf("onnx: graph: %w", err)
	}
	if _, ok := graph[onnxGraphNode]; !ok {
		return fmt.Errorf("onnx: %d bytes without a graph of nodes", len(b))
	}
	if _, ok := graph[onnxGraphOutput]; !ok {
		return fmt.Errorf("onnx: a graph without outputs")
	}
	return nil
}

// protoFields are the last values of a protobuf message's fields of bytes.
func protoFields(b []byte) (map[protowire.Number][]byte, error) {
	out := map[protowire.Number][]byte{}
	for all := len(b); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, fmt.Errorf("byte %d: %w", all-len(b), protowire.ParseError(n))
		}
		value := b[n:]
		size := protowire.ConsumeFieldValue(number, kind, value)
		if size < 0 {
			return nil, fmt.Errorf("field %d at byte %d: %w", number, all-len(b), protowire.ParseError(size))
		}
		if kind == protowire.BytesType {
			out[number], _ = protowire.ConsumeBytes(value)
		}
		b = value[size:]
	}
	return out, nil
}
