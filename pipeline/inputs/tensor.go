package inputs

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// tensor is an output of a model: a value for each row, or several.
type tensor struct {
	name     string
	datatype string
	shape    []int
	floats   []float32 // of floating types
	others   []any     // of all others
}

func (t *tensor) size() int { return max(len(t.floats), len(t.others)) }

// set adds the rows of a tensor to the columns of a node, whose items they are.
func (t *tensor) set(c *collector, n *node) error {
	rows, err := t.rows(c, n)
	if err != nil {
		return err
	}
	if err := c.beginList(n); err != nil {
		return err
	}
	defer c.endList()
	each := t.size() / max(1, rows)
	for i := range rows {
		for _, col := range n.each.columns {
			if err := c.once(col); err != nil {
				return err
			}
			if err := t.row(col, i*each, (i+1)*each); err != nil {
				return err
			}
		}
		if err := c.endItem(n); err != nil {
			return err
		}
	}
	return nil
}

// rows is how many rows the shape says, which must fit the values. The first dimension is that of rows, but of a vector
// alone.
func (t *tensor) rows(c *collector, n *node) (int, error) {
	rows, size := 1, 1
	for i, d := range t.shape {
		if d < 0 || d > 1<<30 || size*max(d, 1) > 1<<30 {
			return 0, t.fail(c, "a shape of %v", t.shape)
		}
		if size *= d; i == 0 {
			rows = d
		}
	}
	if len(t.floats) > 0 && len(t.others) > 0 {
		return 0, t.fail(c, "values of two types")
	}
	if size != t.size() {
		return 0, t.fail(c, "%d values in a shape of %v", t.size(), t.shape)
	}
	if len(t.shape) == 1 && slices.ContainsFunc(n.each.columns, (*column).whole) {
		rows = 1
	}
	lists := 0
	for _, d := range t.shape[min(1, len(t.shape)):] {
		if d > 1 {
			lists++
		}
	}
	if lists > 1 && slices.ContainsFunc(n.each.columns, func(col *column) bool {
		return col.whole() && col.role != roleFeatures
	}) {
		return 0, t.fail(c, "a shape of %v: a row must have one list of scores", t.shape)
	}
	if rows > c.bounds.rows {
		return 0, wire.Errorf(wire.TooManyRows, "tensor %.40q: %d rows, at most %d", t.name, rows, c.bounds.rows)
	}
	return rows, nil
}

func (t *tensor) fail(c *collector, format string, args ...any) error {
	return wire.Errorf(wire.Shape, "row %d, tensor %.40q: "+format, append([]any{c.n, t.name}, args...)...)
}

// row adds the values of one row.
func (t *tensor) row(col *column, from, to int) error {
	if col.whole() {
		for i := from; i < to; i++ {
			f, err := t.float(col, i)
			if err != nil {
				return err
			}
			if err := col.addItem(f); err != nil {
				return err
			}
		}
		return col.endList(false)
	}
	if to-from != 1 {
		return col.fail(col.n, "%d values in tensor %.40q, must be one a row", to-from, t.name)
	}
	if t.floats != nil {
		return col.addAny(float64(t.floats[from]))
	}
	return col.addAny(t.others[from])
}

func (t *tensor) float(col *column, i int) (float32, error) {
	if t.floats != nil {
		return t.floats[i], nil
	}
	switch v := t.others[i].(type) {
	case int64:
		return float32(v), nil
	case uint64:
		return float32(v), nil
	}
	return 0, col.fail(col.n, "%.40q in tensor %.40q must be a number", t.datatype, t.name)
}

// raw fills a tensor with its little-endian bytes.
func (t *tensor) raw(b []byte) error {
	width := map[string]int{"FP64": 8, "FP32": 4, "FP16": 2, "BF16": 2, "INT64": 8, "INT32": 4, "INT16": 2, "INT8": 1,
		"UINT64": 8, "UINT32": 4, "UINT16": 2, "UINT8": 1, "BOOL": 1}[t.datatype]
	if t.datatype == "BYTES" {
		return t.rawBytes(b)
	}
	if width == 0 || len(b)%width != 0 {
		return wire.Errorf(wire.Shape, "tensor %.40q: %d bytes of datatype %.20q", t.name, len(b), t.datatype)
	}
	if t.datatype == "FP32" { // the usual one
		for ; len(b) > 0; b = b[4:] {
			t.floats = append(t.floats, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		return nil
	}
	for ; len(b) > 0; b = b[width:] {
		var bits uint64
		for k := range width {
			bits |= uint64(b[k]) << (8 * k)
		}
		t.add(bits)
	}
	return nil
}

// add adds a value by its bits.
func (t *tensor) add(bits uint64) {
	switch t.datatype {
	case "FP64":
		t.floats = append(t.floats, float32(math.Float64frombits(bits)))
	case "FP32":
		t.floats = append(t.floats, math.Float32frombits(uint32(bits)))
	case "FP16":
		t.floats = append(t.floats, half.Value(uint16(bits)))
	case "BF16":
		t.floats = append(t.floats, math.Float32frombits(uint32(bits)<<16))
	case "INT32":
		t.others = append(t.others, int64(int32(bits)))
	case "INT16":
		t.others = append(t.others, int64(int16(bits)))
	case "INT8":
		t.others = append(t.others, int64(int8(bits)))
	case "UINT64":
		t.others = append(t.others, bits)
	case "BOOL":
		t.others = append(t.others, bits != 0)
	default:
		t.others = append(t.others, int64(bits))
	}
}

// rawBytes are texts with their lengths before them.
func (t *tensor) rawBytes(b []byte) error {
	for len(b) > 0 {
		n := 0
		if len(b) >= 4 {
			n = int(binary.LittleEndian.Uint32(b))
		}
		if len(b) < 4 || len(b)-4 < n {
			return wire.Errorf(wire.Truncated, "tensor %.40q: a text of %d bytes, %d are left", t.name, n, len(b))
		}
		t.others = append(t.others, b[4:4+n])
		b = b[4+n:]
	}
	return nil
}

// tensorJSON is a tensor as JSON has it: an object whose fields come in any order.
type tensorJSON struct {
	tensor
	data   []byte // "data" or "values", where it is; nil = elsewhere
	at     int    // where it begins
	binary int    // bytes of it behind the JSON; -1 = none
}

// readTensor reads the object at the scanner.
func readTensor(s *scanner) (t tensorJSON, err error) {
	t.binary = -1
	err = s.object(func(name []byte) error { return t.field(s, string(name)) })
	return t, err
}

func (t *tensorJSON) field(s *scanner, name string) error {
	switch c := s.peek(); {
	case name == "name" && c == '"':
		text, err := s.text()
		t.name = string(text)
		return err
	case name == "datatype" && c == '"':
		text, err := s.text()
		t.datatype = string(text)
		return err
	case name == "shape" && c == '[':
		return s.array(func(int) error { return t.dimension(s) })
	case name == "data" || name == "values":
		t.at = s.i
		err := s.skip()
		t.data = s.b[t.at:s.i]
		return err
	case name == "parameters" && c == '{':
		return s.object(func(name []byte) error { return t.parameter(s, string(name)) })
	}
	return s.skip()
}

func (t *tensorJSON) dimension(s *scanner) error {
	s.peek()
	raw, err := s.number()
	if err != nil {
		return err
	}
	d, err := strconv.Atoi(string(raw))
	if err != nil || len(t.shape) == maxDimensions {
		return wire.Errorf(wire.Shape, "byte %d: a shape of whole numbers, eight at most", s.i)
	}
	t.shape = append(t.shape, d)
	return nil
}

func (t *tensorJSON) parameter(s *scanner, name string) error {
	of := s.peek()
	from := s.i
	if err := s.skip(); err != nil || name != "binary_data_size" || of == '"' {
		return err
	}
	n, err := strconv.Atoi(string(s.b[from:s.i]))
	if err != nil || n < 0 {
		return wire.Errorf(wire.Shape, "byte %d: binary_data_size must be a whole number", from)
	}
	t.binary = n
	return nil
}

// flat reads the values, in lists of any depth.
func (t *tensorJSON) flat() error {
	s := scanner{b: t.data}
	isFloat := t.datatype == "" || t.datatype[0] == 'F' || t.datatype == "BF16"
	if isFloat {
		t.floats = []float32{}
	}
	var value func() error
	value = func() error {
		switch c := s.peek(); {
		case c == '[':
			return s.array(func(int) error { return value() })
		case c == '"' && !isFloat:
			text, err := s.text()
			t.others = append(t.others, string(text))
			return err
		case (c == '-' || c >= '0' && c <= '9') && isFloat:
			f, err := s.float()
			t.floats = append(t.floats, f)
			return err
		case c == '-' || c >= '0' && c <= '9':
			raw, err := s.number()
			if err != nil {
				return err
			}
			return t.whole(raw)
		case (c == 't' || c == 'f') && !isFloat:
			w, err := s.word()
			t.others = append(t.others, w == 't')
			return err
		}
		return wire.Errorf(wire.ColumnType, "byte %d, tensor %.40q: %.16q in datatype %.20q", t.at+s.i, t.name,
			s.b[s.i:min(len(s.b), s.i+16)], t.datatype)
	}
	return value()
}

func (t *tensorJSON) whole(raw []byte) error {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return wire.Errorf(wire.ColumnType, "tensor %.40q: %.40s in datatype %.20q", t.name, raw, t.datatype)
	}
	t.others = append(t.others, n)
	return nil
}
