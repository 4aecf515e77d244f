package gorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// shape says which graph a mini-batch needs.
type shape struct {
	rows             int
	masked, restrict bool
}

// graph is forward, loss and gradients for one shape, compiled.
type graph struct {
	x     *tensor.Dense   // rows×D
	masks []*tensor.Dense // In×Out of each layer; none unless masked
	vm    gorgonia.VM
}

// newGraph compiles the graph of the session's parameters. eval is the loss of the logits, rows×K.
func (s *session) newGraph(of shape, eval func(z, grad []float32) (float64, error)) (*graph, error) {
	g := gorgonia.NewGraph()
	out := &graph{x: matrix(of.rows, s.params[0].w.Shape()[0])}
	input := func(t *tensor.Dense, name string) *gorgonia.Node {
		return gorgonia.NewTensor(g, tensor.Float32, t.Dims(), gorgonia.WithShape(t.Shape()...), gorgonia.WithName(name), gorgonia.WithValue(t))
	}
	x := input(out.x, "x")
	inputs := gorgonia.Nodes{x}
	var wrt gorgonia.Nodes
	var err error
	for i, p := range s.params {
		w, b := input(p.w, fmt.Sprintf("w%d", i)), input(p.b, fmt.Sprintf("b%d", i))
		wrt = append(wrt, w, b)
		if of.masked {
			m := matrix(p.w.Shape()[0], p.w.Shape()[1])
			node := input(m, fmt.Sprintf("m%d", i))
			out.masks, inputs = append(out.masks, m), append(inputs, node)
			if w, err = mask(w, node, of.restrict); err != nil {
				return nil, err
			}
		}
		if x, err = layer(x, w, b, i < len(s.params)-1); err != nil {
			return nil, err
		}
	}
	cost, err := lossAt(x, eval)
	if err != nil {
		return nil, err
	}
	outputs := gorgonia.Nodes{cost}
	grads, err := gorgonia.Grad(cost, wrt...)
	if err != nil {
		return nil, err
	}
	for i, d := range grads {
		kept, err := keep(d, wrt[i].Name(), s.grads[i])
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, kept)
	}
	// Compiled from its outputs, the program leaves out what nobody needs, such as the gradient of x.
	program, places, err := gorgonia.CompileFunction(g, append(inputs, wrt...), outputs)
	if err != nil {
		return nil, err
	}
	out.vm = gorgonia.NewTapeMachine(g, gorgonia.WithPrecompiled(program, places))
	return out, nil
}

func layer(x, w, b *gorgonia.Node, hidden bool) (*gorgonia.Node, error) {
	z, err := gorgonia.Mul(x, w)
	if err != nil {
		return nil, err
	}
	if z, err = bias(z, b); err != nil || !hidden {
		return z, err
	}
	return relu(z)
}

func matrix(rows, cols int) *tensor.Dense {
	return tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(make([]float32, rows*cols)))
}
