package wire

import "unsafe"

// Type is a logical type, numbered as in the Type union of Schema.fbs.
type Type uint8

// The types of columns that the wire schema allows, as in the Type union of Schema.fbs.
const (
	Null            Type = 1
	Int             Type = 2
	Float           Type = 3
	Binary          Type = 4
	Utf8            Type = 5
	Bool            Type = 6
	Decimal         Type = 7
	Date            Type = 8
	TimeOfDay       Type = 9
	Timestamp       Type = 10
	Interval        Type = 11
	List            Type = 12
	Struct          Type = 13
	Union           Type = 14
	FixedSizeBinary Type = 15
	FixedSizeList   Type = 16
	Map             Type = 17
	Duration        Type = 18
	LargeBinary     Type = 19
	LargeUtf8       Type = 20
	LargeList       Type = 21
	RunEndEncoded   Type = 22
	BinaryView      Type = 23
	Utf8View        Type = 24
	ListView        Type = 25
	LargeListView   Type = 26
)

// Limits bound what a schema message may ask for.
type Limits struct {
	Fields int // nested ones included
	Depth  int
	Text   int // bytes of a name, a metadata key or a metadata value
	Meta   int // metadata entries
}

// Field is one column of a schema.
type Field struct {
	Name string
	Type Type
	// Bits is the width of an Int or Float in bits; Signed goes with Int.
	Bits   int
	Signed bool
	// Unit is the Timestamp unit: 0 s, 1 ms, 2 µs, 3 ns.
	Unit int
	// Size is the length of a FixedSizeList.
	Size     int
	Children []Field
	// Dict is set on dictionary-encoded columns; Type is then that of the values.
	Dict *Dict

	nodes, buffers, views int // of the whole subtree, as laid out in a record batch
}

// Dict is a dictionary encoding: the dictionary's id and the type of the indices.
type Dict struct {
	ID     int64
	Bits   int
	Signed bool
}

// Schema is a parsed schema message.
type Schema struct {
	Fields []Field
	Meta   map[string]string

	nodes, buffers int // without the variadic buffers of view types
}

// Bytes is about how much memory the schema takes.
func (s *Schema) Bytes() int {
	n := 0
	for k, v := range s.Meta {
		n += len(k) + len(v)
	}
	return n + fieldBytes(s.Fields)
}

func fieldBytes(fields []Field) int {
	n := 0
	for i := range fields {
		n += int(unsafe.Sizeof(Field{})) + len(fields[i].Name) + fieldBytes(fields[i].Children)
	}
	return n
}

type schemaParser struct {
	f      fb
	lim    Limits
	fields int
	v5     bool
	err    *FormatError
}

func (p *schemaParser) fail(reason, format string, args ...any) {
	if p.err == nil {
		p.err = Errorf(reason, format, args...)
	}
}

// ParseSchema reads a schema message. Names and metadata are copied, so the schema does not keep the message.
func ParseSchema(m Message, lim Limits) (*Schema, error) {
	if m.Header != HeaderSchema {
		return nil, Errorf(NoSchema, "message header %d where the schema (1) is due", m.Header)
	}
	if len(m.Body) != 0 {
		return nil, Errorf(Shape, "schema message with a body of %d bytes", len(m.Body))
	}
	p := &schemaParser{f: fb{b: m.Meta}, lim: lim, v5: m.Version5}
	if e := p.f.int16Field(m.pos, 0, 0); e != 0 {
		return nil, Errorf(NotArrow, "endianness %d, little endian (0) is read", e)
	}
	s := &Schema{Fields: p.list(m.pos, 1, 0), Meta: p.metadata(m.pos, 2)}
	if p.err != nil {
		return nil, p.err
	}
	if p.f.bad {
		return nil, Errorf(NotArrow, "schema is no valid flatbuffer")
	}
	for i := range s.Fields {
		s.nodes += s.Fields[i].nodes
		s.buffers += s.Fields[i].buffers
	}
	return s, nil
}

// list reads a vector of Field tables.
func (p *schemaParser) list(table, slot, depth int) []Field {
	start, n := p.f.vectorField(table, slot, 4)
	if n == 0 || p.f.bad || p.err != nil {
		return nil
	}
	if depth >= p.lim.Depth {
		p.fail(TooLarge, "schema nests deeper than %d", p.lim.Depth)
		return nil
	}
	// Tables may be shared, so that few bytes describe exponentially many fields: the count is of visits.
	if p.fields += n; p.fields > p.lim.Fields {
		p.fail(TooLarge, "schema of more than %d fields", p.lim.Fields)
		return nil
	}
	out := make([]Field, n)
	for i := range out {
		p.field(p.f.indirect(start+4*i), depth, &out[i])
		if p.f.bad || p.err != nil {
			return nil
		}
	}
	return out
}

func (p *schemaParser) field(pos, depth int, out *Field) {
	out.Name = p.text(pos, 0)
	out.Type = Type(p.f.byteField(pos, 2))
	p.parameters(p.f.tableField(pos, 3), out)
	if d := p.f.tableField(pos, 4); d != 0 {
		out.Dict = &Dict{ID: p.f.int64Field(d, 0), Bits: 32, Signed: true}
		if t := p.f.tableField(d, 1); t != 0 {
			out.Dict.Bits, out.Dict.Signed = int(p.f.int32Field(t, 0)), p.f.boolField(t, 1)
		}
		checkInt(p, out.Name, out.Dict.Bits)
	}
	out.Children = p.list(pos, 5, depth+1)
	if !p.f.bad && p.err == nil {
		p.layout(out)
	}
}

// parameters reads the type table at pos, as far as a type that plumbline reads has parameters.
func (p *schemaParser) parameters(pos int, out *Field) {
	if pos == 0 {
		p.f.bad = true
		return
	}
	switch out.Type {
	case Int:
		out.Bits, out.Signed = int(p.f.int32Field(pos, 0)), p.f.boolField(pos, 1)
		checkInt(p, out.Name, out.Bits)
	case Float:
		precision := p.f.int16Field(pos, 0, 0)
		if precision < 0 || precision > 2 {
			p.fail(NotArrow, "column %.64q: float precision %d", out.Name, precision)
			return
		}
		out.Bits = 16 << precision
	case Timestamp:
		out.Unit = int(p.f.int16Field(pos, 0, 0))
		if out.Unit < 0 || out.Unit > 3 {
			p.fail(NotArrow, "column %.64q: time unit %d", out.Name, out.Unit)
		}
	case FixedSizeList:
		out.Size = int(p.f.int32Field(pos, 0))
		if out.Size < 0 {
			p.fail(Shape, "column %.64q: list size %d", out.Name, out.Size)
		}
	case Union:
		out.Bits = int(p.f.int16Field(pos, 0, 0)) // 0 sparse, 1 dense; for layout
	}
}

func checkInt(p *schemaParser, name string, bits int) {
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 {
		p.fail(NotArrow, "column %.64q: integer of %d bits", name, bits)
	}
}

// layout sets how many field nodes and buffers a record batch has for the subtree, in depth-first order.
// A dictionary-encoded column has those of its indices.
func (p *schemaParser) layout(f *Field) {
	f.nodes, f.buffers, f.views = 1, 2, 0
	children := -1 // any number
	switch f.Type {
	case Null, RunEndEncoded:
		f.buffers = 0
		if f.Type == RunEndEncoded {
			children = 2
		}
	case Binary, Utf8, LargeBinary, LargeUtf8:
		f.buffers = 3
	case List, LargeList, Map:
		children = 1
	case FixedSizeList:
		f.buffers, children = 1, 1
	case Struct:
		f.buffers = 1
	case Union:
		f.buffers = 1 + f.Bits
		if !p.v5 || f.Bits < 0 || f.Bits > 1 {
			p.fail(ColumnType, "column %.64q: union of metadata V4 or unknown mode", f.Name)
		}
	case BinaryView, Utf8View:
		f.views = 1
	case ListView, LargeListView:
		f.buffers, children = 3, 1
	case Int, Float, Bool, Decimal, Date, TimeOfDay, Timestamp, Interval, FixedSizeBinary, Duration:
		children = 0
	default:
		p.fail(ColumnType, "column %.64q: unknown type number %d", f.Name, f.Type)
	}
	if children >= 0 && len(f.Children) != children {
		p.fail(Shape, "column %.64q: type number %d with %d children", f.Name, f.Type, len(f.Children))
	}
	for i := range f.Children {
		f.nodes += f.Children[i].nodes
		f.buffers += f.Children[i].buffers
		f.views += f.Children[i].views
	}
	if f.Dict != nil {
		f.nodes, f.buffers, f.views = 1, 2, 0
	}
}

func (p *schemaParser) text(pos, slot int) string {
	b := p.f.textField(pos, slot)
	if len(b) > p.lim.Text {
		p.fail(TooLarge, "text of %d bytes in the schema, at most %d", len(b), p.lim.Text)
		return ""
	}
	return string(b)
}

// ownPrefix marks the metadata that plumbline reads; the rest (pandas' description may be long) is skipped.
const ownPrefix = "plumbline."

func (p *schemaParser) metadata(pos, slot int) map[string]string {
	start, n := p.f.vectorField(pos, slot, 4)
	if n > p.lim.Meta {
		p.fail(TooLarge, "%d metadata entries, at most %d", n, p.lim.Meta)
		return nil
	}
	var out map[string]string
	for i := 0; i < n && !p.f.bad && p.err == nil; i++ {
		kv := p.f.indirect(start + 4*i)
		key := p.f.textField(kv, 0)
		if len(key) <= len(ownPrefix) || string(key[:len(ownPrefix)]) != ownPrefix {
			continue
		}
		if out == nil {
			out = make(map[string]string)
		}
		out[p.text(kv, 0)] = p.text(kv, 1)
	}
	return out
}
