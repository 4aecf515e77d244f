package artefact

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

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

// ReadSafetensors reads what WriteSafetensors wrote, or PyTorch from such a network: float32, linear layers whose
// sizes fit. Nothing is believed that the length of b does not bear out.
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

// layers reads layer after layer until there is none of that name; no other tensor may be there.
func layers(raw map[string]json.RawMessage, data []byte) (*head.Head, error) {
	h := &head.Head{}
	for i := 0; len(raw) > 0; i++ {
		name := strconv.Itoa(2 * i)
		w, shape, err := floats(raw, name+".weight", data, 2)
		if err != nil {
			return nil, err
		}
		bias, _, err := floats(raw, name+".bias", data, 1)
		if err != nil {
			return nil, err
		}
		l := head.Layer{Out: shape[0], In: shape[1], W: w, B: bias}
		if len(bias) != l.Out {
			return nil, fmt.Errorf("%s.bias: %d values, %s.weight has %d rows", name, len(bias), name, l.Out)
		}
		if i > 0 && h.Layers[i-1].Out != l.In {
			return nil, fmt.Errorf("%s.weight: %d columns, the layer before gives %d", name, l.In, h.Layers[i-1].Out)
		}
		if i == maxLayers {
			return nil, fmt.Errorf("more than %d layers", maxLayers)
		}
		h.Layers = append(h.Layers, l)
	}
	if len(h.Layers) == 0 {
		return nil, errors.New("no tensors")
	}
	return h, nil
}

// floats reads a tensor and takes it out of the header.
func floats(raw map[string]json.RawMessage, name string, data []byte, dims int) ([]float32, []int, error) {
	text, ok := raw[name]
	if !ok {
		names := make([]string, 0, len(raw))
		for k := range raw {
			names = append(names, k)
		}
		slices.Sort(names)
		return nil, nil, fmt.Errorf("no tensor %q; there are %q", name, names[:min(len(names), 2*maxLayers)])
	}
	delete(raw, name)
	var t tensor
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if t.DType != "F32" {
		return nil, nil, fmt.Errorf("%s: dtype %q, allowed is F32", name, t.DType)
	}
	if len(t.Shape) != dims {
		return nil, nil, fmt.Errorf("%s: shape %v, allowed are %d dimensions", name, t.Shape, dims)
	}
	v, err := t.values(name, data)
	return v, t.Shape, err
}

// values are the tensor's numbers in the data of the file.
func (t tensor) values(name string, data []byte) ([]float32, error) {
	size, limit := 4, len(data)
	for _, d := range t.Shape {
		if d < 1 || d > limit/size {
			return nil, fmt.Errorf("%s: shape %v of 4-byte values in %d bytes", name, t.Shape, len(data))
		}
		size *= d
	}
	from, to := t.Offsets[0], t.Offsets[1]
	if from > to || to > uint64(len(data)) || to-from != uint64(size) {
		return nil, fmt.Errorf("%s: bytes %d to %d of %d for shape %v", name, from, to, len(data), t.Shape)
	}
	v := make([]float32, size/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[from+4*uint64(i):]))
		if x := float64(v[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%s: value %d is %g, allowed are finite ones", name, i, v[i])
		}
	}
	return v, nil
}
