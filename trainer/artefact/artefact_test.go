package artefact

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/head"
)

func file(t testing.TB, h *head.Head, meta map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteSafetensors(&b, h, meta); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSafetensorsRoundTrip(t *testing.T) {
	meta := map[string]string{"recipe": "au", "note": "τ"}
	for _, h := range []*head.Head{head.FreshLinear(5, 3, 1), head.Bottleneck(7, 4, 3, 2)} {
		b := file(t, h, meta)
		if len(b)%4 != 0 || !bytes.Equal(b, file(t, h, meta)) {
			t.Error("the values are not aligned, or the bytes differ at the second time")
		}
		got, m, err := ReadSafetensors(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, h) || !maps.Equal(m, meta) {
			t.Errorf("read %+v with %v, want %+v with %v", got, m, h, meta)
		}
	}
}

// header puts a header before the values.
func header(text string, values int) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), make([]byte, values)...)
}

func TestSafetensorsRefuses(t *testing.T) {
	const weight = `"0.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}`
	nan := header(`{`+weight+`,"0.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}}`, 32)
	copy(nan[len(nan)-4:], []byte{0, 0, 0xc0, 0x7f})
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{nil, "0 bytes"},
		{binary.LittleEndian.AppendUint64(nil, 1<<40), "header of 1099511627776 bytes"},
		{header(`{`, 0), "header"},
		{header(`{}`, 0), "no tensors"},
		{header(`{"x":{}}`, 0), `no classifier among the tensors ["x"]`},
		{header(`{"classifier.dense.weight":{},"classifier.out_proj.weight":{}}`, 0), "tanh"},
		{header(`{"weight":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}}`, 24), "allowed are 2 dimensions"},
		{header(`{`+weight+`,"0.bias":{"dtype":"I64","shape":[2],"data_offsets":[24,40]}}`, 40), `dtype "I64"`},
		{header(`{`+weight+`,"0.bias":{"dtype":"F16","shape":[2],"data_offsets":[24,32]}}`, 32), "bytes 24 to 32"},
		{header(`{`+weight+`,"0.bias":{"dtype":"F32","shape":[2,1],"data_offsets":[24,32]}}`, 32), "1 dimensions"},
		{
			header(`{`+weight+`,"0.bias":{"dtype":"F32","shape":[3],"data_offsets":[24,36]}}`, 36),
			"3 values, 0.weight has 2 rows",
		},
		{header(`{`+weight+`,"0.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,36]}}`, 36), "bytes 24 to 36"},
		{header(`{`+weight+`,"0.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}}`, 28), "of 28"},
		{header(`{"weight":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, 8), "in 8 bytes"},
		{
			header(`{`+weight+`,"0.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]},"extra":{}}`, 32),
			`no tensor "2.weight"`,
		},
		{
			header(`{`+weight+`,"0.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]},
				"2.weight":{"dtype":"F32","shape":[1,3],"data_offsets":[0,12]},
				"2.bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 32),
			"3 columns, the layer before gives 2",
		},
		{nan, "value 1 is NaN"},
	} {
		_, _, err := ReadSafetensors(c.b)
		if !errors.Is(err, ErrSafetensors) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want an error with %q", c.b, err, c.want)
		}
	}
}

// TestForeignNames: a bare nn.Linear, the classifier of a whole model, a layer without bias, two layers, and halves.
func TestForeignNames(t *testing.T) {
	const shape = `"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}`
	const bias = `"dtype":"F32","shape":[2],"data_offsets":[24,32]}`
	for text, want := range map[string]int{
		`{"weight":{` + shape + `,"bias":{` + bias + `}`:                                          1,
		`{"my.head.weight":{` + shape + `,"my.head.bias":{` + bias + `}`:                          1,
		`{"score.weight":{` + shape + `,"model.embed_tokens.weight":{"dtype":"I8"}}`:              1,
		`{"classifier.weight":{` + shape + `,"classifier.bias":{` + bias + `,"bert.x.weight":{}}`: 1,
		`{"pre_classifier.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},` +
			`"classifier.weight":{` + shape + `,"classifier.bias":{` + bias + `,"distilbert.x":{}}`: 2,
		`{"0.weight":{` + shape + `}`: 1,
		`{"0.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},"2.weight":{` + shape + `}`: 2,
	} {
		b := header(text, 32)
		copy(b[len(b)-32:], []byte{0, 0, 0x80, 0x3f})
		h, _, err := ReadSafetensors(b)
		if err != nil || len(h.Layers) != want || h.Layers[0].W[0] != 1 || h.Check() != nil {
			t.Errorf("%s: %+v, %v", text, h, err)
		}
	}
	for dtype, one := range map[string][]byte{"F16": {0, 0x3c}, "BF16": {0x80, 0x3f}, "F64": {7: 0x3f, 6: 0xf0}} {
		size := 6 * len(one)
		b := header(fmt.Sprintf(`{"weight":{"dtype":%q,"shape":[2,3],"data_offsets":[0,%d]}}`, dtype, size), size)
		copy(b[len(b)-size:], one)
		if h, _, err := ReadSafetensors(b); err != nil || h.Layers[0].W[0] != 1 || h.Layers[0].W[1] != 0 {
			t.Errorf("%s: %+v, %v", dtype, h, err)
		}
	}
}

// FuzzReadSafetensors: no panic, and what is accepted is written and read as the same.
func FuzzReadSafetensors(f *testing.F) {
	f.Add(file(f, head.Bottleneck(3, 2, 2, 1), map[string]string{"a": "b"}))
	f.Add(header(`{}`, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, meta, err := ReadSafetensors(b)
		if err != nil {
			return
		}
		again, _, err := ReadSafetensors(file(t, h, meta))
		if err != nil || !reflect.DeepEqual(again, h) {
			t.Errorf("accepted %d bytes, but what is written of it reads as %+v (%v)", len(b), again, err)
		}
	})
}

func TestONNXRefuses(t *testing.T) {
	for _, temperature := range []float64{0, -1} {
		if b, err := ONNX(head.FreshLinear(2, 2, 1), temperature, nil); err == nil {
			t.Errorf("temperature %g gave %d bytes, want an error", temperature, len(b))
		}
	}
}
