package artefact

import (
	"fmt"

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
	g := &onnx.Graph{Name: "head", Doc: fmt.Sprintf("classifier head, %d features, %d classes", h.D(), h.K()), Meta: meta}
	x := g.Input("features", onnx.Float32, n, onnx.Dim{Size: h.D()})
	for i, l := range h.Layers {
		if i > 0 {
			x = g.Op("Relu", x)
		}
		x = g.OpWith("Gemm", []onnx.Attr{{Name: "transB", Int: 1}}, x, g.Float32s(l.W, l.Out, l.In), g.Float32s(l.B, l.Out))
	}
	p := x
	if temperature != 1 {
		p = g.Op("Div", x, g.Float32s([]float32{float32(temperature)}))
	}
	g.Output("logits", x, onnx.Float32, n, k)
	g.Output("probabilities", g.OpWith("Softmax", []onnx.Attr{{Name: "axis", Int: -1}}, p), onnx.Float32, n, k)
	return g.Bytes(), nil
}
