package onnx

import (
	"fmt"
	"sort"
)

// Value names a tensor of a graph.
type Value string

// Dim is one dimension of an input or output: Size, or any size under Name where that is set.
type Dim struct {
	Size int
	Name string
}

// Attr is an attribute of an operator: one integer, or a list of them where Ints is not nil.
type Attr struct {
	Name string
	Int  int64
	Ints []int64
}

// Graph builds a model node by node; the zero value is an empty one. Operators are those of the ONNX operator set
// 17: their names, inputs and attributes are the caller's to get right, a checker of ONNX says whether they are.
type Graph struct {
	// Name, Doc and Producer's version go into the model, Meta into its metadata.
	Name, Doc, ProducerVersion string
	Meta                       map[string]string

	nodes, constants, inputs, outputs [][]byte
	count                             int
}

func (g *Graph) fresh(what string) Value {
	g.count++
	return Value(fmt.Sprintf("%s_%d", what, g.count))
}

// Input declares an input.
func (g *Graph) Input(name string, kind ElementType, dims ...Dim) Value {
	g.inputs = append(g.inputs, valueInfo(name, kind, dims))
	return Value(name)
}

// Output declares v as the output of that name.
func (g *Graph) Output(name string, v Value, kind ElementType, dims ...Dim) {
	g.node("Identity", []Value{v}, []Value{Value(name)}, nil)
	g.outputs = append(g.outputs, valueInfo(name, kind, dims))
}

// Float64s is a constant tensor of that shape, a scalar without one.
func (g *Graph) Float64s(v []float64, dims ...int) Value {
	return g.constant(Float64, dims, rawFloats64(v))
}

// Float32s is the same of float32.
func (g *Graph) Float32s(v []float32, dims ...int) Value {
	return g.constant(Float32, dims, rawFloats32(v))
}

// Scalar is a constant float64 without dimensions.
func (g *Graph) Scalar(v float64) Value { return g.Float64s([]float64{v}) }

// Ints is a constant list of int64.
func (g *Graph) Ints(v ...int64) Value { return g.constant(Int64, []int{len(v)}, rawInts(v)) }

// Int is a constant int64 without dimensions.
func (g *Graph) Int(v int64) Value { return g.constant(Int64, nil, rawInts([]int64{v})) }

func (g *Graph) constant(kind ElementType, dims []int, raw []byte) Value {
	name := g.fresh("c")
	g.constants = append(g.constants, tensor(string(name), kind, dims, raw))
	return name
}

// Op adds a node with one output.
func (g *Graph) Op(op string, in ...Value) Value { return g.OpWith(op, nil, in...) }

// OpWith is Op with attributes.
func (g *Graph) OpWith(op string, attrs []Attr, in ...Value) Value {
	out := g.fresh("v")
	g.node(op, in, []Value{out}, attrs)
	return out
}

// Op2 adds a node with two outputs.
func (g *Graph) Op2(op string, attrs []Attr, in ...Value) (first, second Value) {
	first, second = g.fresh("v"), g.fresh("v")
	g.node(op, in, []Value{first, second}, attrs)
	return first, second
}

// Cast converts v.
func (g *Graph) Cast(v Value, to ElementType) Value {
	return g.OpWith("Cast", []Attr{{Name: "to", Int: int64(to)}}, v)
}

func (g *Graph) node(op string, in, out []Value, attrs []Attr) {
	var b []byte
	for _, v := range in {
		b = text(b, nodeInput, string(v))
	}
	for _, v := range out {
		b = text(b, nodeOutput, string(v))
	}
	b = text(b, nodeName, fmt.Sprintf("%s_%d", op, len(g.nodes)))
	b = text(b, nodeOp, op)
	for _, a := range attrs {
		m := text(nil, attributeName, a.Name)
		if a.Ints == nil {
			m = varint(varint(m, attributeInt, a.Int), attributeType, attributeIsInt)
		} else {
			for _, v := range a.Ints {
				m = varint(m, attributeInts, v)
			}
			m = varint(m, attributeType, attributeIsInts)
		}
		b = message(b, nodeAttribute, m)
	}
	g.nodes = append(g.nodes, b)
}

// Bytes is the model file, the same bytes for the same calls.
func (g *Graph) Bytes() []byte {
	var b []byte
	for _, n := range g.nodes {
		b = message(b, graphNode, n)
	}
	b = text(b, graphName, g.Name)
	for _, c := range g.constants {
		b = message(b, graphInitializer, c)
	}
	for _, v := range g.inputs {
		b = message(b, graphInput, v)
	}
	for _, v := range g.outputs {
		b = message(b, graphOutput, v)
	}
	m := varint(nil, modelIR, irVersion)
	m = text(m, modelProducer, "plumbline")
	m = text(m, modelProducerVersion, g.ProducerVersion)
	m = text(m, modelDoc, g.Doc)
	m = message(m, modelGraph, b)
	m = message(m, modelOpset, varint(nil, opsetVersion, opset))
	keys := make([]string, 0, len(g.Meta))
	for k := range g.Meta {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		m = message(m, modelMeta, text(text(nil, metaKey, k), metaValue, g.Meta[k]))
	}
	return m
}
