package gorgonia

import (
	"fmt"

	"github.com/chewxy/hm"
	"gonum.org/v1/gonum/blas"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/plumbline/plumbline/trainer/head"
)

// multiply is C ← A·B + β·C, by the BLAS of gorgonia's tensors.
func multiply(a, b head.Matrix, beta float32, c head.Matrix) {
	op := func(m head.Matrix) blas.Transpose {
		if m.Transposed {
			return blas.Trans
		}
		return blas.NoTrans
	}
	_, k := a.Dims()
	tensor.WhichBLAS().Sgemm(op(a), op(b), c.Rows, c.Cols, k,
		1, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
}

// layer is x·Wᵀ + b, and ReLU of it for hidden ones, of gradient 0 at 0. Like all ops of a mini-batch it computes the
// first *rows rows, of which there may be fewer in the last mini-batch than the graph has room for.
type layer struct {
	rows   *int
	hidden bool
	input  bool // whether x is the graph's input, which has no gradient
}

// of adds the layer to the graph of its inputs.
func (l layer) of(x, w, b *gorgonia.Node) (*gorgonia.Node, error) {
	in, out := w.Shape()[1], w.Shape()[0]
	name := "linear"
	if l.hidden {
		name = "linear, relu"
	}
	o := &op{
		name:  name,
		in:    []hm.Type{matrixType, matrixType, vectorType},
		out:   matrixType,
		shape: tensor.Shape{x.Shape()[0], out},
		wrt:   []bool{!l.input, true, true},
		diff:  l.diff,
	}
	o.run = func(z []float32, v [][]float32) error {
		n := *l.rows
		z = z[:n*out]
		for to := z; len(to) > 0; to = to[out:] {
			copy(to, v[2])
		}
		multiply(head.Dense(n, in, v[0]), head.Dense(out, in, v[1]).T(), 1, head.Dense(n, out, z))
		if l.hidden {
			head.ReLU(z)
		}
		return nil
	}
	return o.apply(x, w, b)
}

// diff gives the gradients of the inputs x, W and b, given that of the output z.
func (l layer) diff(v gorgonia.Nodes, z, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	if l.hidden {
		var err error
		if grad, err = reluGradient(z, grad, l.rows); err != nil {
			return nil, err
		}
	}
	return layerGradients(v, grad, l.rows, l.input)
}

// layerGradients are those of x (unless it is the input), W and b, given that of x·Wᵀ + b.
func layerGradients(v gorgonia.Nodes, grad *gorgonia.Node, rows *int, input bool) (gorgonia.Nodes, error) {
	x, w := v[0], v[1]
	in, out := w.Shape()[1], w.Shape()[0]
	two := []hm.Type{matrixType, matrixType}
	dw, err := (&op{name: "weight gradient", in: two, out: matrixType, shape: w.Shape(),
		run: func(dw []float32, v [][]float32) error {
			multiply(head.Dense(*rows, out, v[0]).T(), head.Dense(*rows, in, v[1]), 0, head.Dense(out, in, dw))
			return nil
		}}).apply(grad, x)
	if err != nil {
		return nil, err
	}
	db, err := (&op{name: "bias gradient", in: []hm.Type{matrixType}, out: vectorType, shape: tensor.Shape{out},
		run: func(db []float32, v [][]float32) error {
			head.ColumnSums(db, v[0][:*rows*out])
			return nil
		}}).apply(grad)
	if err != nil || input {
		return gorgonia.Nodes{nil, dw, db}, err
	}
	dx, err := (&op{name: "input gradient", in: two, out: matrixType, shape: x.Shape(),
		run: func(dx []float32, v [][]float32) error {
			multiply(head.Dense(*rows, out, v[0]), head.Dense(out, in, v[1]), 0, head.Dense(*rows, in, dx))
			return nil
		}}).apply(grad, w)
	return gorgonia.Nodes{dx, dw, db}, err
}

// reluGradient is grad where the output y of a ReLU is not 0.
func reluGradient(y, grad *gorgonia.Node, rows *int) (*gorgonia.Node, error) {
	columns := y.Shape()[1]
	return (&op{name: "relu gradient", in: []hm.Type{matrixType, matrixType}, out: matrixType, shape: y.Shape(),
		run: func(out []float32, in [][]float32) error {
			n := *rows * columns
			head.ReLUGrad(out[:n], in[0][:n], in[1][:n])
			return nil
		}}).apply(y, grad)
}

// mask is w ⊙ m, where m has bits. Where restrict is set its gradient is masked too; else it goes through as it is.
func mask(w, m *gorgonia.Node, bits []uint8, restrict bool) (*gorgonia.Node, error) {
	masked := func(name string, w *gorgonia.Node) *op {
		return &op{
			name:  name,
			in:    []hm.Type{matrixType, bitsType},
			out:   matrixType,
			shape: w.Shape(),
			wrt:   []bool{true, false},
			run: func(out []float32, in [][]float32) error {
				head.Masked(out, in[0], bits)
				return nil
			},
		}
	}
	o := masked("mask", w)
	o.diff = func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		if !restrict {
			return gorgonia.Nodes{grad, nil}, nil
		}
		d, err := masked("masked gradient", grad).apply(grad, m)
		return gorgonia.Nodes{d, nil}, err
	}
	return o.apply(w, m)
}

// lossAt is a loss of logits: eval returns the value and writes the gradient to where its gradient op has its output.
func lossAt(z *gorgonia.Node, rows *int, eval func(z, grad []float32) (float64, error)) (*gorgonia.Node, error) {
	grad, columns := matrix(z.Shape()[0], z.Shape()[1]), z.Shape()[1]
	o := &op{name: "loss", in: []hm.Type{matrixType}, out: scalarType, wrt: []bool{true}}
	o.run = func(out []float32, in [][]float32) error {
		n := *rows * columns
		v, err := eval(in[0][:n], floats(grad)[:n])
		out[0] = float32(v)
		return err
	}
	o.diff = func(in gorgonia.Nodes, value, upstream *gorgonia.Node) (gorgonia.Nodes, error) {
		d, err := lossGradient(grad).apply(in[0], value, upstream)
		return gorgonia.Nodes{d}, err
	}
	return o.apply(z)
}

// lossGradient multiplies grad, which the loss has written, by the gradient that the loss gets. The value of the loss
// is an input, so that this runs after it.
func lossGradient(grad *tensor.Dense) *op {
	return &op{
		name:   "loss gradient",
		in:     []hm.Type{matrixType, scalarType, scalarType},
		out:    matrixType,
		shape:  grad.Shape(),
		output: grad,
		run: func(out []float32, in [][]float32) error {
			if upstream := in[2][0]; upstream != 1 {
				for i := range out {
					out[i] *= upstream
				}
			}
			return nil
		},
	}
}

// writeTo has the op of a gradient write to the memory of t.
func writeTo(n *gorgonia.Node, t *tensor.Dense) error {
	o, ok := n.Op().(*op)
	if !ok || o.output != nil || !o.shape.Eq(t.Shape()) {
		return fmt.Errorf("gradient by %v", n.Op())
	}
	o.output = t
	return nil
}
