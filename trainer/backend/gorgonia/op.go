package gorgonia

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// op is an operation on float32 tensors, with its symbolic derivative: gorgonia.Op, SDOp and UsePreallocDoer.
type op struct {
	// name tells ops apart: gorgonia takes two nodes of one name and the same inputs for one.
	name string
	// in are the numbers of dimensions of the inputs, out that of the output; 0 is a scalar.
	in  []int
	out int
	// shape is the output's; that of the first input where it is nil.
	shape tensor.Shape
	// run overwrites out, which is none of in.
	run func(out []float32, in [][]float32) error
	// diff gives a gradient for each input, nil where none is needed; diff itself is nil where nothing depends on the
	// inputs.
	diff func(inputs gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error)
	// wrt says which inputs have a gradient.
	wrt []bool
}

// apply adds the op to the graph of its inputs.
func (o *op) apply(inputs ...*gorgonia.Node) (*gorgonia.Node, error) {
	return gorgonia.ApplyOp(o, inputs...)
}

func kind(dims int) hm.Type {
	if dims == 0 {
		return tensor.Float32
	}
	return gorgonia.TensorType{Dims: dims, Of: tensor.Float32}
}

func (o *op) Arity() int { return len(o.in) }

func (o *op) Type() hm.Type {
	types := make([]hm.Type, 0, len(o.in)+1)
	for _, d := range o.in {
		types = append(types, kind(d))
	}
	return hm.NewFnType(append(types, kind(o.out))...)
}

func (o *op) InferShape(in ...gorgonia.DimSizer) (tensor.Shape, error) {
	if o.shape != nil {
		return o.shape, nil
	}
	if o.out == 0 {
		return tensor.ScalarShape(), nil
	}
	s, ok := in[0].(tensor.Shape)
	if !ok {
		return nil, fmt.Errorf("%s: input of shape %v", o.name, in[0])
	}
	return s.Clone(), nil
}

// Do implements gorgonia.Op.
func (o *op) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	if o.out == 0 {
		return o.UsePreallocDo(gorgonia.NewF32(0), in...)
	}
	shape := o.shape
	if shape == nil {
		shape = in[0].Shape()
	}
	return o.UsePreallocDo(tensor.New(tensor.WithShape(shape...), tensor.Of(tensor.Float32)), in...)
}

// UsePreallocDo implements gorgonia.UsePreallocDoer.
func (o *op) UsePreallocDo(to gorgonia.Value, in ...gorgonia.Value) (gorgonia.Value, error) {
	slices := make([][]float32, len(in))
	for i, v := range in {
		slices[i] = floats(v)
	}
	if s, ok := to.(*gorgonia.F32); ok {
		var v [1]float32
		if err := o.run(v[:], slices); err != nil {
			return nil, err
		}
		*s = gorgonia.F32(v[0])
		return s, nil
	}
	return to, o.run(floats(to), slices)
}

// floats are the values of a tensor, its own memory, or a copy of a scalar.
func floats(v gorgonia.Value) []float32 {
	switch x := v.Data().(type) {
	case []float32:
		return x
	case float32:
		return []float32{x}
	}
	panic(fmt.Sprintf("gorgonia: value %T, want float32", v.Data()))
}

// DiffWRT implements gorgonia.SDOp.
func (o *op) DiffWRT(int) []bool { return o.wrt }

// SymDiff implements gorgonia.SDOp.
func (o *op) SymDiff(inputs gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	return o.diff(inputs, output, grad)
}

func (o *op) ReturnsPtr() bool     { return false }
func (o *op) CallsExtern() bool    { return false }
func (o *op) OverwritesInput() int { return -1 }
func (o *op) String() string       { return o.name }

func (o *op) WriteHash(h hash.Hash) { _, _ = h.Write([]byte(o.name)) }

func (o *op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}
