package head

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/trainer/philox"
)

// Layer is y = W·x + b.
type Layer struct {
	In, Out int
	// W is Out×In, B has Out values.
	W, B []float32
}

// Head is layers with ReLU between them; the last gives the logits.
type Head struct{ Layers []Layer }

// Linear is a head of one layer, with W K×D and b of K values, which are copied.
func Linear(w, b []float32) (*Head, error) {
	k := len(b)
	if k < 2 || len(w) == 0 || len(w)%k != 0 {
		return nil, fmt.Errorf("linear head: %d weights and %d biases, allowed K biases (at least 2) and K·D weights",
			len(w), k)
	}
	l := Layer{In: len(w) / k, Out: k, W: append([]float32(nil), w...), B: append([]float32(nil), b...)}
	return &Head{Layers: []Layer{l}}, nil
}

// FreshLinear is a linear head with initial weights from seed.
func FreshLinear(d, k int, seed uint64) *Head { return &Head{Layers: []Layer{fresh(d, k, seed, 0)}} }

// Bottleneck is a head of two layers with initial weights from seed: D → width, ReLU, width → K.
func Bottleneck(d, width, k int, seed uint64) *Head {
	return &Head{Layers: []Layer{fresh(d, width, seed, 0), fresh(width, k, seed, 1)}}
}

// fresh draws weights and biases from U(−1/√in, 1/√in), PyTorch's default for a linear layer.
func fresh(in, out int, seed uint64, layer uint32) Layer {
	l := Layer{In: in, Out: out, W: make([]float32, out*in), B: make([]float32, out)}
	src := philox.Source{Stream: philox.Stream{Seed: seed, Purpose: philox.Init, A: layer}}
	bound := 1 / math.Sqrt(float64(in))
	for _, p := range [][]float32{l.W, l.B} {
		for i := range p {
			p[i] = float32(bound * (2*src.Float64() - 1))
		}
	}
	return l
}

// D is the number of features, K of classes.
func (h *Head) D() int { return h.Layers[0].In }

// K is the number of classes.
func (h *Head) K() int { return h.Layers[len(h.Layers)-1].Out }

// Check returns an error where shapes do not fit each other or a parameter is not finite.
func (h *Head) Check() error {
	if len(h.Layers) == 0 {
		return fmt.Errorf("head: no layers, allowed at least 1")
	}
	for i, l := range h.Layers {
		if l.In < 1 || l.Out < 1 || len(l.W) != l.In*l.Out || len(l.B) != l.Out {
			return fmt.Errorf("head: layer %d: %d weights and %d biases for %d×%d", i, len(l.W), len(l.B), l.Out, l.In)
		}
		if i > 0 && h.Layers[i-1].Out != l.In {
			return fmt.Errorf("head: layer %d takes %d values, the one before gives %d", i, l.In, h.Layers[i-1].Out)
		}
		for _, p := range [][]float32{l.W, l.B} {
			for j, v := range p {
				if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
					return fmt.Errorf("head: layer %d: parameter %d is %v, allowed finite numbers", i, j, v)
				}
			}
		}
	}
	return nil
}

// Clone copies the head.
func (h *Head) Clone() *Head {
	out := &Head{}
	for _, l := range h.Layers {
		l.W, l.B = append([]float32(nil), l.W...), append([]float32(nil), l.B...)
		out.Layers = append(out.Layers, l)
	}
	return out
}

// Scaled is a copy whose weights, not biases, are multiplied by q.
func (h *Head) Scaled(q float32) *Head {
	out := h.Clone()
	for _, l := range out.Layers {
		for i := range l.W {
			l.W[i] *= q
		}
	}
	return out
}

// Tempered is a copy whose logits are divided by t > 0: the last layer's weights and biases are.
func (h *Head) Tempered(t float64) *Head {
	out := h.Clone()
	last := out.Layers[len(out.Layers)-1]
	for _, p := range [][]float32{last.W, last.B} {
		for i := range p {
			p[i] = float32(float64(p[i]) / t)
		}
	}
	return out
}

// Params are the parameters of all layers, W and then b of each: the head's own memory.
func (h *Head) Params() [][]float32 {
	var p [][]float32
	for _, l := range h.Layers {
		p = append(p, l.W, l.B)
	}
	return p
}
