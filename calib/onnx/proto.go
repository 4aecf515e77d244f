package onnx

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// ElementType is TensorProto.DataType of onnx.proto.
type ElementType int32

// The element types that graphs here have.
const (
	Float32 ElementType = 1
	Int64   ElementType = 7
	Bool    ElementType = 9
	Float64 ElementType = 11
)

// What the models declare: files of this IR version and operator set run in every runtime since 2022.
const (
	irVersion = 8
	opset     = 17
)

// Field numbers of onnx.proto; they never change there.
const (
	modelIR, modelProducer, modelProducerVersion, modelDoc, modelGraph, modelOpset, modelMeta = 1, 2, 3, 6, 7, 8, 14

	opsetVersion = 2

	graphNode, graphName, graphInitializer, graphInput, graphOutput = 1, 2, 5, 11, 12

	nodeInput, nodeOutput, nodeName, nodeOp, nodeAttribute = 1, 2, 3, 4, 5

	attributeName, attributeInt, attributeInts, attributeType = 1, 3, 8, 20
	attributeIsInt, attributeIsInts                           = 2, 7

	tensorDims, tensorType, tensorName, tensorRaw = 1, 2, 8, 9

	valueName, valueType                          = 1, 2
	typeTensor, tensorTypeElement, tensorTypeDims = 1, 1, 2
	shapeDim, dimValue, dimParam                  = 1, 1, 2

	metaKey, metaValue = 1, 2
)

func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func varint(b []byte, field protowire.Number, v int64) []byte {
	//nolint:gosec // two's complement is protobuf's int64
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

// tensor is a TensorProto of little-endian values.
func tensor(name string, kind ElementType, dims []int, raw []byte) []byte {
	var b []byte
	for _, d := range dims {
		b = varint(b, tensorDims, int64(d))
	}
	b = varint(b, tensorType, int64(kind))
	b = text(b, tensorName, name)
	return message(b, tensorRaw, raw)
}

func rawFloats64(v []float64) []byte {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

func rawFloats32(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func rawInts(v []int64) []byte {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x)) //nolint:gosec // two's complement
	}
	return b
}

// valueInfo is a ValueInfoProto; a dimension is a number, or a name where it is free.
func valueInfo(name string, kind ElementType, dims []Dim) []byte {
	var shape []byte
	for _, d := range dims {
		var m []byte
		if d.Name != "" {
			m = text(m, dimParam, d.Name)
		} else {
			m = varint(m, dimValue, int64(d.Size))
		}
		shape = message(shape, shapeDim, m)
	}
	t := message(varint(nil, tensorTypeElement, int64(kind)), tensorTypeDims, shape)
	return message(text(nil, valueName, name), valueType, message(nil, typeTensor, t))
}
