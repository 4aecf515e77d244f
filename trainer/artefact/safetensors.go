package artefact

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/trainer/head"
)

// tensor is an entry of the header of a safetensors file.
type tensor struct {
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// Bounds of what is read.
const (
	maxHeader = 1 << 20
	maxLayers = 16
	metaKey   = "__metadata__"
)

// WriteSafetensors writes h as float32 tensors, with text metadata: the length of a JSON header in 8 bytes, the
// header, the values, all little-endian. The same head and metadata give the same bytes.
func WriteSafetensors(w io.Writer, h *head.Head, meta map[string]string) error {
	header := map[string]any{}
	if len(meta) > 0 {
		header[metaKey] = meta
	}
	var at uint64
	var data []byte
	add := func(name string, v []float32, shape ...int) {
		header[name] = tensor{"F32", shape, [2]uint64{at, at + 4*uint64(len(v))}}
		at += 4 * uint64(len(v))
		for _, x := range v {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
	}
	for i, l := range h.Layers {
		name := strconv.Itoa(2 * i) // every second module is a ReLU
		add(name+".weight", l.W, l.Out, l.In)
		add(name+".bias", l.B, l.Out)
	}
	text, err := json.Marshal(header) // keys sorted
	if err != nil {
		return err
	}
	const align = 8
	text = append(text, bytes.Repeat([]byte{' '}, (align-len(text)%align)%align)...)
	for _, b := range [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, data} {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// ErrSafetensors is wrapped by every error of ReadSafetensors.
var ErrSafetensors = errors.New("safetensors")

// ReadSafetensors reads what WriteSafetensors wrote, or PyTorch from such a network; a bare nn.Linear, weight and bias
// under any one prefix; or the classifier of a whole Hugging Face model (classifierNames), whose other tensors are left
// alone. Values are float64, float32, float16 or bfloat16, and sizes must fit. Nothing is believed that the length of b
// does not bear out.
func ReadSafetensors(b []byte) (*head.Head, map[string]string, error) {
	h, meta, err := read(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSafetensors, err)
	}
	return h, meta, nil
}

func read(b []byte) (*head.Head, map[string]string, error) {
	const lead = 8
	if len(b) < lead {
		return nil, nil, fmt.Errorf("%d bytes, want 8 and a header", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if n > maxHeader || n > uint64(len(b)-lead) {
		return nil, nil, fmt.Errorf("header of %d bytes in a file of %d, at most %d are allowed", n, len(b), maxHeader)
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(b[lead:lead+n], &raw); err != nil {
		return nil, nil, fmt.Errorf("header: %w", err)
	}
	var meta map[string]string
	if m, ok := raw[metaKey]; ok {
		if err := json.Unmarshal(m, &meta); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", metaKey, err)
		}
		delete(raw, metaKey)
	}
	h, err := layers(raw, b[lead+n:])
	return h, meta, err
}

// layers reads the head's layers by the names that they have.
func layers(raw map[string]json.RawMessage, data []byte) (*head.Head, error) {
	names, err := layerNames(raw)
	if err != nil {
		return nil, err
	}
	h := &head.Head{}
	for i, name := range names {
		w, shape, err := floats(raw, name+"weight", data, 2)
		if err != nil {
			return nil, err
		}
		l := head.Layer{Out: shape[0], In: shape[1], W: w}
		if _, ok := raw[name+"bias"]; !ok {
			l.B = make([]float32, l.Out) // a layer without one
		} else if l.B, _, err = floats(raw, name+"bias", data, 1); err != nil {
			return nil, err
		}
		if len(l.B) != l.Out {
			return nil, fmt.Errorf("%sbias: %d values, %sweight has %d rows", name, len(l.B), name, l.Out)
		}
		if i > 0 && h.Layers[i-1].Out != l.In {
			return nil, fmt.Errorf("%sweight: %d columns, the layer before gives %d", name, l.In, h.Layers[i-1].Out)
		}
		h.Layers = append(h.Layers, l)
	}
	return h, nil
}

// floats reads a tensor that is there.
func floats(raw map[string]json.RawMessage, name string, data []byte, dims int) ([]float32, []int, error) {
	var t tensor
	if err := json.Unmarshal(raw[name], &t); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if width(t.DType) == 0 {
		return nil, nil, fmt.Errorf("%s: dtype %q, allowed are F64, F32, F16, BF16", name, t.DType)
	}
	if len(t.Shape) != dims {
		return nil, nil, fmt.Errorf("%s: shape %v, allowed are %d dimensions", name, t.Shape, dims)
	}
	v, err := t.values(name, data)
	return v, t.Shape, err
}

// width is how many bytes a value takes, 0 for a type that is not read.
func width(dtype string) int {
	switch dtype {
	case "F64":
		return 8
	case "F32":
		return 4
	case "F16", "BF16":
		return 2
	}
	return 0
}

// values are the tensor's numbers in the data of the file.
func (t tensor) values(name string, data []byte) ([]float32, error) {
	each := width(t.DType)
	size, limit := each, len(data)
	for _, d := range t.Shape {
		if d < 1 || d > limit/size {
			return nil, fmt.Errorf("%s: shape %v of %d-byte values in %d bytes", name, t.Shape, each, len(data))
		}
		size *= d
	}
	from, to := t.Offsets[0], t.Offsets[1]
	if from > to || to > uint64(len(data)) || to-from != uint64(size) {
		return nil, fmt.Errorf("%s: bytes %d to %d of %d for shape %v", name, from, to, len(data), t.Shape)
	}
	v := make([]float32, size/each)
	for i := range v {
		b := data[from+uint64(each*i):]
		switch t.DType {
		case "F64":
			v[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		case "F32":
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b))
		case "F16":
			kernel.HalfToFloat32(v[i:i+1], []uint16{binary.LittleEndian.Uint16(b)})
		default: // the upper half of a float32
			const half = 16
			v[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << half)
		}
		if x := float64(v[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%s: value %d is %g, allowed are finite ones", name, i, v[i])
		}
	}
	return v, nil
}
