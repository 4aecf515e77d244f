package inputs

import (
	"bytes"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// v2Decoder reads responses of the Open Inference Protocol v2: JSON, JSON with tensors as bytes behind it, or the
// protocol's Protobuf message ModelInferResponse.
type v2Decoder struct {
	complete
	json jsonDecoder
}

// binaryHeader says where the JSON of a response ends whose tensors are bytes.
const binaryHeader = "Inference-Header-Content-Length"

func (d *v2Decoder) decode(r *Record, c *collector) error {
	value := r.Value
	d.json.rest = nil
	if n, ok := r.outside(&path{from: "header", name: binaryHeader}); ok {
		end, err := strconv.Atoi(string(n))
		if err != nil || end < 0 || end > len(value) {
			return wire.Errorf(wire.Shape, "header %s %.20q: must be a length within the record, %d bytes",
				binaryHeader,
				n, len(value))
		}
		value, d.json.rest = value[:end], value[end:]
	}
	if first := bytes.TrimLeft(value, " \t\r\n"); len(first) == 0 || first[0] == '{' || first[0] == '[' {
		return d.json.all(value, c)
	}
	return d.message(value, c)
}

// NotProtobuf is why a record is refused whose bytes are no message.
const NotProtobuf = "not_protobuf"

// fields calls each for the fields of a message; v is of a length-delimited field, n of a varint.
func fields(b []byte, each func(number protowire.Number, v []byte, n uint64) error) error {
	size := len(b)
	for len(b) > 0 {
		number, kind, head := protowire.ConsumeTag(b)
		if head < 0 {
			return wire.Errorf(NotProtobuf, "%d bytes before the end: %v", len(b), protowire.ParseError(head))
		}
		b = b[head:]
		var v []byte
		var n uint64
		length := 0
		switch kind {
		case protowire.BytesType:
			v, length = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			n, length = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var n32 uint32
			n32, length = protowire.ConsumeFixed32(b)
			n = uint64(n32)
		case protowire.Fixed64Type:
			n, length = protowire.ConsumeFixed64(b)
		default:
			length = protowire.ConsumeFieldValue(number, kind, b)
		}
		if length < 0 {
			return wire.Errorf(NotProtobuf, "byte %d, field %d: %v", size-len(b), number, protowire.ParseError(length))
		}
		b = b[length:]
		if err := each(number, v, n); err != nil {
			return err
		}
	}
	return nil
}

// What a Protobuf message may have of the parts whose memory is a multiple of their bytes.
const (
	maxOutputs    = 1 << 10
	maxDimensions = 8 // of a shape
)

// message reads ModelInferResponse.
func (d *v2Decoder) message(b []byte, c *collector) error {
	r, err := responseOf(b)
	if err != nil {
		return err
	}
	if err := c.begin(); err != nil {
		return err
	}
	for i, name := range c.root.names {
		text, there := r.texts[name]
		for _, col := range c.root.kids[i].columns {
			if there {
				if err := col.addText(text); err != nil {
					return err
				}
			}
		}
	}
	if outputs := c.root.kid("outputs"); outputs != nil {
		for _, t := range r.outputs {
			if n := outputs.kid(t.name); n != nil && n.each != nil {
				if err := t.set(c, n); err != nil {
					return err
				}
			}
		}
	}
	return c.end()
}

// response is what of a ModelInferResponse may become columns.
type response struct {
	texts   map[string][]byte
	outputs []*tensor
}

// responseOf reads model_name = 1, model_version = 2, id = 3, outputs = 5, raw_output_contents = 6.
func responseOf(b []byte) (r response, err error) {
	var raw [][]byte
	r.texts = map[string][]byte{}
	err = fields(b, func(number protowire.Number, v []byte, _ uint64) (err error) {
		if len(r.outputs) > maxOutputs || len(raw) > maxOutputs {
			return wire.Errorf(wire.TooLarge, "more than %d outputs", maxOutputs)
		}
		switch number {
		case 1:
			r.texts["model_name"] = v
		case 2:
			r.texts["model_version"] = v
		case 3:
			r.texts["id"] = v
		case 5:
			var t *tensor
			t, err = tensorOf(v)
			r.outputs = append(r.outputs, t)
		case 6:
			raw = append(raw, v)
		}
		return err
	})
	if err == nil && len(raw) > 0 && len(raw) != len(r.outputs) {
		err = wire.Errorf(wire.Shape, "%d raw contents for %d outputs", len(raw), len(r.outputs))
	}
	for i := 0; i < len(raw) && err == nil; i++ {
		err = r.outputs[i].raw(raw[i])
	}
	return r, err
}

// tensorOf reads InferOutputTensor: name = 1, datatype = 2, shape = 3, contents = 5.
func tensorOf(b []byte) (*tensor, error) {
	t := &tensor{}
	var contents []byte
	err := fields(b, func(number protowire.Number, v []byte, n uint64) error {
		switch number {
		case 1:
			t.name = string(v)
		case 2:
			t.datatype = string(v)
		case 3:
			return t.dimensions(v, n)
		case 5:
			contents = v
		}
		return nil
	})
	if err != nil || contents == nil {
		return t, err
	}
	return t, t.contents(contents)
}

// dimensions takes a field of the shape: packed in v, or one of them, n.
func (t *tensor) dimensions(v []byte, n uint64) error {
	length := 0
	for one := v == nil; one || len(v) > 0; one = false {
		if !one {
			n, length = protowire.ConsumeVarint(v)
		}
		if length < 0 {
			return wire.Errorf(NotProtobuf, "tensor %.40q: its shape: %v", t.name, protowire.ParseError(length))
		}
		if len(t.shape) == maxDimensions {
			return wire.Errorf(wire.Shape, "tensor %.40q: a shape of more than %d dimensions", t.name, maxDimensions)
		}
		t.shape, v = append(t.shape, int(n)), v[length:]
	}
	return nil
}

// contents reads InferTensorContents: lists of bool = 1, int32 = 2, int64 = 3, uint32 = 4, uint64 = 5, float = 6,
// double = 7, bytes = 8.
func (t *tensor) contents(b []byte) error {
	return fields(b, func(number protowire.Number, v []byte, n uint64) error {
		switch {
		case number == 8:
			t.others = append(t.others, v)
		case number == 6 || number == 7:
			width := 4
			if t.datatype = "FP32"; number == 7 {
				t.datatype, width = "FP64", 8
			}
			if v == nil {
				t.add(n)
				return nil
			}
			if len(v)%width != 0 {
				return wire.Errorf(NotProtobuf, "tensor %.40q: %d bytes of numbers of %d", t.name, len(v), width)
			}
			return t.raw(v)
		case v == nil:
			t.add(n)
		default:
			for len(v) > 0 {
				n, length := protowire.ConsumeVarint(v)
				if length < 0 {
					return wire.Errorf(NotProtobuf, "tensor %.40q: %v", t.name, protowire.ParseError(length))
				}
				t.add(n)
				v = v[length:]
			}
		}
		return nil
	})
}
