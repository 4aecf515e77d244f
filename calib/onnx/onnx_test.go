package onnx_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/onnx"
)

// message reads a protobuf message: the values of length-delimited fields, and varints, by field number.
func message(t *testing.T, b []byte) (fields map[protowire.Number][][]byte, ints map[protowire.Number][]uint64) {
	t.Helper()
	fields, ints = map[protowire.Number][][]byte{}, map[protowire.Number][]uint64{}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatalf("tag: %v", protowire.ParseError(n))
		}
		b = b[n:]
		switch kind {
		case protowire.BytesType:
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				t.Fatalf("field %d: %v", field, protowire.ParseError(n))
			}
			fields[field], b = append(fields[field], v), b[n:]
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				t.Fatalf("field %d: %v", field, protowire.ParseError(n))
			}
			ints[field], b = append(ints[field], v), b[n:]
		default:
			t.Fatalf("field %d of wire type %d", field, kind)
		}
	}
	return fields, ints
}

// TestGraphsAreWhole: for every method, each tensor is made once and before it is used, every constant is used, and
// the input and output are those that are promised. What the graphs compute is checked in onnxruntime, by the
// integration tests.
func TestGraphsAreWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const n, k = 600, 4
	z, y := make([]float64, n*k), make([]int32, n)
	for i := range z {
		z[i] = random.NormFloat64()
	}
	for i := range y {
		y[i] = int32(random.IntN(k))
	}
	cases := map[string]calibrator.Options{
		"parameterised_temperature of one logit": {Parameterised: calibrator.Parameterised{Top: 1}},
	}
	for _, m := range calibrator.Methods() {
		cases[m.Name] = calibrator.Options{}
	}
	for name, opts := range cases {
		method, _, _ := strings.Cut(name, " ")
		c, _, err := calibrator.Fit(method, calibrator.NewData(z, k, y, nil), opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := onnx.Calibrator(c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, _ := onnx.Calibrator(c)
		if !bytes.Equal(b, again) {
			t.Errorf("%s: other bytes at the second time", name)
		}
		checkGraph(t, name, b)
	}
	vector, _, err := calibrator.Fit("vector", calibrator.NewData(z, k, y, nil), calibrator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	weighed, err := calibrator.NewClassWeights(vector, []float64{1, 2, 3, .5})
	if err != nil {
		t.Fatal(err)
	}
	b, err := onnx.Calibrator(weighed)
	if err != nil {
		t.Fatal(err)
	}
	checkGraph(t, "class_weights", b)
}

func checkGraph(t *testing.T, name string, b []byte) {
	t.Helper()
	model, ints := message(t, b)
	if ints[1][0] != 8 {
		t.Errorf("%s: IR version %d, want 8", name, ints[1][0])
	}
	if _, set := message(t, model[8][0]); set[2][0] != 17 {
		t.Errorf("%s: operator set %d, want 17", name, set[2][0])
	}
	graph, _ := message(t, model[7][0])
	made, used := map[string]bool{}, map[string]bool{}
	for _, list := range [][][]byte{graph[11], graph[5]} {
		for _, v := range list {
			f, _ := message(t, v)
			names := append(f[8], f[1]...) // a tensor's name, a value's
			made[string(names[0])] = true
		}
	}
	for _, v := range graph[1] {
		node, _ := message(t, v)
		for _, in := range node[1] {
			if !made[string(in)] {
				t.Errorf("%s: node %s uses %s before it is made", name, node[3][0], in)
			}
			used[string(in)] = true
		}
		for _, out := range node[2] {
			if made[string(out)] {
				t.Errorf("%s: %s is made twice", name, out)
			}
			made[string(out)] = true
		}
	}
	for _, v := range graph[5] {
		if f, _ := message(t, v); !used[string(f[8][0])] {
			t.Errorf("%s: constant %s is not used", name, f[8][0])
		}
	}
	if !used[onnx.InputName] || !made[onnx.OutputName] || len(graph[11]) != 1 || len(graph[12]) != 1 {
		t.Errorf("%s: %d inputs, %d outputs, want %s and %s", name, len(graph[11]), len(graph[12]), onnx.InputName,
			onnx.OutputName)
	}
	meta, _ := message(t, model[14][0])
	c, err := calibrator.Decode(meta[2][0])
	if err != nil {
		t.Errorf("%s: the calibrator in the metadata: %v", name, err)
	} else if again, _ := onnx.Calibrator(c); !bytes.Equal(again, b) {
		t.Errorf("%s: the calibrator in the metadata is another one", name)
	}
}

func TestCalibratorRefuses(t *testing.T) {
	for _, c := range []calibrator.Calibrator{calibrator.Temperature{}, &calibrator.Vector{}, &calibrator.MetaCal{}} {
		if b, err := onnx.Calibrator(c); err == nil {
			t.Errorf("%T that was never made gave %d bytes, want an error", c, len(b))
		}
	}
}

func ExampleCalibrator() {
	c, _ := calibrator.NewTemperature(2)
	model, _ := onnx.Calibrator(c)
	_ = model // a file for onnxruntime: logits in, probabilities out
}
