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

// graph is forward, loss and gradients for mini-batches of up to a number of rows, compiled.
type graph struct {
	x  []float32 // rows×D
	vm gorgonia.VM
}

// newGraph compiles the graph of the session's parameters.
func (s *session) newGraph(of shape) (*graph, error) {
	x := matrix(of.rows, s.p.Train.D)
	g, outputs, err := s.express(of, x)
	if err != nil {
		return nil, err
	}
	vm, err := newMachine(g, outputs)
	return &graph{x: floats(x), vm: vm}, err
}

// express writes loss and gradients as expressions of the features x; the outputs are the loss and then the gradients,
// of which each writes to its parameter's.
func (s *session) express(of shape, x *tensor.Dense) (*gorgonia.ExprGraph, gorgonia.Nodes, error) {
	g := gorgonia.NewGraph()
	input := func(t *tensor.Dense, name string) *gorgonia.Node {
		return gorgonia.NewTensor(g, t.Dtype(), t.Dims(),
			gorgonia.WithShape(t.Shape()...), gorgonia.WithName(name), gorgonia.WithValue(t))
	}
	z := input(x, "x")
	var wrt gorgonia.Nodes
	var err error
	for i, l := range s.head.Layers {
		w, b := input(s.params[2*i].value, fmt.Sprintf("w%d", i)), input(s.params[2*i+1].value, fmt.Sprintf("b%d", i))
		wrt = append(wrt, w, b)
		if of.masked {
			bits := s.eval.Drawn(i)
			m := input(tensor.New(tensor.WithShape(l.Out, l.In), tensor.WithBacking(bits)), fmt.Sprintf("m%d", i))
			if w, err = mask(w, m, bits, of.restrict); err != nil {
				return nil, nil, err
			}
		}
		next := layer{rows: &s.rows, hidden: i < len(s.head.Layers)-1, input: i == 0}
		if z, err = next.of(z, w, b); err != nil {
			return nil, nil, err
		}
	}
	cost, err := lossAt(z, &s.rows, s.lossOf)
	if err != nil {
		return nil, nil, err
	}
	grads, err := gorgonia.Grad(cost, wrt...)
	if err != nil {
		return nil, nil, err
	}
	for i, d := range grads {
		if err := writeTo(d, s.params[i].grad); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", wrt[i].Name(), err)
		}
	}
	return g, append(gorgonia.Nodes{cost}, grads...), nil
}

func matrix(rows, cols int) *tensor.Dense {
	return tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(make([]float32, rows*cols)))
}
