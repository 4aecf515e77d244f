package gorgonia

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/plumbline/plumbline/trainer/head"
)

// bias adds a vector to every row of a matrix.
func bias(z, b *gorgonia.Node) (*gorgonia.Node, error) {
	return (&op{name: "bias", in: []int{2, 1}, out: 2, wrt: []bool{true, true},
		run: func(out []float32, in [][]float32) error {
			z, b := in[0], in[1]
			for len(z) > 0 {
				for j, v := range b {
					out[j] = z[j] + v
				}
				z, out = z[len(b):], out[len(b):]
			}
			return nil
		},
		diff: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			sum, err := columnSums(grad)
			return gorgonia.Nodes{grad, sum}, err
		}}).apply(z, b)
}

// columnSums adds the rows of a matrix, in their order.
func columnSums(x *gorgonia.Node) (*gorgonia.Node, error) {
	return (&op{name: "column sums", in: []int{2}, out: 1, shape: tensor.Shape{x.Shape()[1]},
		run: func(out []float32, in [][]float32) error {
			clear(out)
			for x := in[0]; len(x) > 0; x = x[len(out):] {
				for j := range out {
					out[j] += x[j]
				}
			}
			return nil
		}}).apply(x)
}

// relu is max(x, 0), of gradient 0 at 0.
func relu(x *gorgonia.Node) (*gorgonia.Node, error) {
	return (&op{name: "relu", in: []int{2}, out: 2, wrt: []bool{true},
		run: func(out []float32, in [][]float32) error {
			for i, v := range in[0] {
				out[i] = max(v, 0)
			}
			return nil
		},
		diff: func(_ gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			d, err := (&op{name: "relu gradient", in: []int{2, 2}, out: 2,
				run: func(out []float32, in [][]float32) error {
					head.ReLUGrad(out, in[0], in[1])
					return nil
				}}).apply(y, grad)
			return gorgonia.Nodes{d}, err
		}}).apply(x)
}

// mask is w ⊙ m. Where restrict is set its gradient is masked too; else it goes through as it is.
func mask(w, m *gorgonia.Node, restrict bool) (*gorgonia.Node, error) {
	product := func(out []float32, in [][]float32) error {
		for i, v := range in[0] {
			out[i] = v * in[1][i]
		}
		return nil
	}
	return (&op{name: "mask", in: []int{2, 2}, out: 2, wrt: []bool{true, false}, run: product,
		diff: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			if !restrict {
				return gorgonia.Nodes{grad, nil}, nil
			}
			d, err := (&op{name: "masked gradient", in: []int{2, 2}, out: 2, run: product}).apply(grad, in[1])
			return gorgonia.Nodes{d, nil}, err
		}}).apply(w, m)
}

// lossAt is a loss of logits: eval returns the value and writes the gradient to where its gradient op has its output.
func lossAt(z *gorgonia.Node, eval func(z, grad []float32) (float64, error)) (*gorgonia.Node, error) {
	grad := matrix(z.Shape()[0], z.Shape()[1])
	return (&op{name: "loss", in: []int{2}, out: 0, wrt: []bool{true},
		run: func(out []float32, in [][]float32) error {
			v, err := eval(in[0], floats(grad))
			out[0] = float32(v)
			return err
		},
		// The value is an input, so that this runs after it; upstream is what the loss counts.
		diff: func(in gorgonia.Nodes, value, upstream *gorgonia.Node) (gorgonia.Nodes, error) {
			d, err := (&op{name: "loss gradient", in: []int{2, 0, 0}, out: 2, output: grad,
				run: func(out []float32, in [][]float32) error {
					if in[2][0] != 1 {
						for i := range out {
							out[i] *= in[2][0]
						}
					}
					return nil
				}}).apply(in[0], value, upstream)
			return gorgonia.Nodes{d}, err
		}}).apply(z)
}

// keep copies x to dst when it is computed: the machine may use x's memory again. It returns a scalar that says nothing.
func keep(x *gorgonia.Node, name string, dst []float32) (*gorgonia.Node, error) {
	return (&op{name: "keep " + name, in: []int{x.Dims()}, out: 0,
		run: func(_ []float32, in [][]float32) error {
			copy(dst, in[0])
			return nil
		}}).apply(x)
}
