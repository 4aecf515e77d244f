package gorgonia

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Types of inputs and outputs.
var (
	scalarType hm.Type = tensor.Float32
	vectorType         = gorgonia.TensorType{Dims: 1, Of: tensor.Float32}
	matrixType         = gorgonia.TensorType{Dims: 2, Of: tensor.Float32}
	bitsType           = gorgonia.TensorType{Dims: 2, Of: tensor.Byte}
)

// op is an operation on tensors, with its symbolic derivative: gorgonia.Op and SDOp. It belongs to one graph, which
// runs one step at a time.
type op struct {
	// name tells ops apart: gorgonia takes two nodes of one name and the same inputs for one.
	name string
	in   []hm.Type
	out  hm.Type
	// shape is the output's.
	shape tensor.Shape
	// run overwrites out, which is none of in. Of bits it gets nil: they are no numbers of the graph's.
	run func(out []float32, in [][]float32) error
	// diff gives a gradient for each input, nil where none is needed; diff itself is nil where nothing depends on the
	// inputs.
	diff func(inputs gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error)
	// wrt says which inputs have a gradient.
	wrt []bool
	// output is the op's own memory, the same at every run, made when it is first needed unless it was given: what
	// gorgonia's machine would give is new at each, and costs more to clear than many an op.
	output *tensor.Dense
	scalar [1]float32
	args   gorgonia.Nodes
}

// apply adds the op to the graph of its inputs.
func (o *op) apply(inputs ...*gorgonia.Node) (*gorgonia.Node, error) {
	o.args = inputs
	return gorgonia.ApplyOp(o, inputs...)
}

func (o *op) Arity() int { return len(o.in) }

func (o *op) Type() hm.Type { return hm.NewFnType(append(append([]hm.Type{}, o.in...), o.out)...) }

func (o *op) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	if o.out == scalarType {
		return tensor.ScalarShape(), nil
	}
	return o.shape.Clone(), nil
}

// memory is where the op writes.
func (o *op) memory() []float32 {
	if o.out == scalarType {
		return o.scalar[:]
	}
	if o.output == nil {
		o.output = tensor.New(tensor.WithShape(o.shape...), tensor.Of(tensor.Float32))
	}
	return floats(o.output)
}

// Do implements gorgonia.Op.
func (o *op) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	inputs := make([][]float32, len(in))
	for i, v := range in {
		inputs[i] = floats(v)
	}
	out := o.memory()
	err := o.run(out, inputs)
	if o.out == scalarType {
		return gorgonia.NewF32(out[0]), err
	}
	return o.output, err
}

// floats are the values of a tensor, its own memory, or a copy of a scalar; nil of bits.
func floats(v gorgonia.Value) []float32 {
	switch x := v.Data().(type) {
	case []float32:
		return x
	case float32:
		return []float32{x}
	case []uint8:
		return nil
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
