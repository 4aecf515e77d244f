package inputs

import (
	"encoding/binary"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// protoDecoder reads messages of registered types from their bytes, without making messages of Go.
type protoDecoder struct {
	work    work
	kids    map[protoAt]protoKids
	scratch [][][]occurrence // by depth and kid
}

type protoAt struct {
	m *protoMessage
	n *node
}

// protoKids are the fields of a message that columns are at or inside of.
type protoKids struct {
	fields []*protoField
	nodes  []*node
	at     map[protowire.Number]int
}

// occurrence is one of a field in a message's bytes.
type occurrence struct {
	wire protowire.Type
	v    []byte
	n    uint64
}

func newProtobuf(_ *Config, o *Options) (decoder, error) {
	d := &protoDecoder{}
	return newRegistered("PROTOBUF", o, parseProtobuf, d.read)
}

// read reads a message. Before it is which message of the file it is: the number of indexes, and these.
func (d *protoDecoder) read(p *protoFiles, value []byte, c *collector) error {
	d.work = workOf(len(value))
	if len(d.kids) > maxCompiled {
		d.kids = nil
	}
	n, used := protowire.ConsumeVarint(value)
	count := protowire.DecodeZigZag(n)
	if used < 0 || count < 0 || count > maxDepth {
		return wire.Errorf(NotProtobuf, "byte %d: no list of message indexes", frame)
	}
	value = value[used:]
	indexes := []int64{0} // written as no indexes
	for i := range count {
		n, used := protowire.ConsumeVarint(value)
		if used < 0 {
			return wire.Errorf(NotProtobuf, "byte %d: no message index", frame)
		}
		if value = value[used:]; i == 0 {
			indexes[0] = protowire.DecodeZigZag(n)
		} else {
			indexes = append(indexes, protowire.DecodeZigZag(n))
		}
	}
	m := p.indexed(indexes)
	if m == nil {
		return wire.Errorf(NotProtobuf, "the schema has no message of the indexes %v", indexes)
	}
	if err := c.begin(); err != nil {
		return err
	}
	if err := d.message(c, m, c.root, value); err != nil {
		return err
	}
	return c.end()
}

func (d *protoDecoder) kidsOf(m *protoMessage, n *node) *protoKids {
	kids, ok := d.kids[protoAt{m, n}]
	if !ok {
		kids.at = map[protowire.Number]int{}
		for _, f := range m.fields {
			if kid := n.kid(f.name); kid != nil {
				kids.at[f.number] = len(kids.fields)
				kids.fields, kids.nodes = append(kids.fields, f), append(kids.nodes, kid)
			}
		}
		if d.kids == nil {
			d.kids = map[protoAt]protoKids{}
		}
		d.kids[protoAt{m, n}] = kids
	}
	return &kids
}

// message reads a message at a node: first where its fields are, which come in any order and any number, then each.
func (d *protoDecoder) message(c *collector, m *protoMessage, n *node, b []byte) error {
	if err := d.work.down(); err != nil {
		return err
	}
	defer d.work.up()
	kids := d.kidsOf(m, n)
	for len(d.scratch) <= d.work.depth {
		d.scratch = append(d.scratch, nil)
	}
	for len(d.scratch[d.work.depth]) < len(kids.fields) {
		d.scratch[d.work.depth] = append(d.scratch[d.work.depth], nil)
	}
	found := d.scratch[d.work.depth][:len(kids.fields)]
	for i := range found {
		found[i] = found[i][:0]
	}
	err := eachField(b, func(number protowire.Number, o occurrence) {
		if i, ok := kids.at[number]; ok {
			found[i] = append(found[i], o)
		}
	})
	if err != nil {
		return err
	}
	for i, f := range kids.fields {
		if err := d.field(c, f, kids.nodes[i], found[i]); err != nil {
			return err
		}
		if cap(found[i]) > maxScratch {
			found[i] = nil
		}
	}
	return nil
}

// maxScratch is how many occurrences there is room for after a message.
const maxScratch = 1 << 12

// eachField calls each for every field of a message.
func eachField(b []byte, each func(number protowire.Number, o occurrence)) error {
	size := len(b)
	for len(b) > 0 {
		number, kind, head := protowire.ConsumeTag(b)
		if head < 0 {
			return wire.Errorf(NotProtobuf, "%d bytes before the end: %v", len(b), protowire.ParseError(head))
		}
		b = b[head:]
		o := occurrence{wire: kind}
		length := 0
		switch kind {
		case protowire.VarintType:
			o.n, length = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var n uint32
			n, length = protowire.ConsumeFixed32(b)
			o.n = uint64(n)
		case protowire.Fixed64Type:
			o.n, length = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			o.v, length = protowire.ConsumeBytes(b)
		default:
			length = protowire.ConsumeFieldValue(number, kind, b)
		}
		if length < 0 {
			return wire.Errorf(NotProtobuf, "byte %d, field %d: %v", size-len(b), number, protowire.ParseError(length))
		}
		b = b[length:]
		each(number, o)
	}
	return nil
}

// field reads what a message has of a field.
func (d *protoDecoder) field(c *collector, f *protoField, n *node, found []occurrence) error {
	switch {
	case f.isMap:
		return d.entries(c, f, n, found)
	case f.repeated:
		return d.repeated(c, f, n, found)
	case len(found) == 0 && f.presence:
		return nil
	}
	last := occurrence{}
	if len(found) > 0 {
		last = found[len(found)-1]
	}
	if f.message != nil && len(found) > 1 { // the parts of a message may come apart
		last.v = nil
		for _, o := range found {
			last.v = append(last.v, o.v...)
		}
	}
	return d.one(c, f, n, last)
}

// one reads one value at a node.
func (d *protoDecoder) one(c *collector, f *protoField, n *node, o occurrence) error {
	if n == nil {
		return nil
	}
	if len(n.columns) > 0 {
		for _, col := range n.columns {
			if err := c.once(col); err != nil {
				return err
			}
			if err := d.fill(col, f, o); err != nil {
				return err
			}
		}
		return nil
	}
	if f.message == nil || n.each != nil || n.items != nil {
		want := "an object"
		if n.each != nil || n.items != nil {
			want = "a repeated field"
		}
		return misplaced(c, n, f.String(), want)
	}
	return d.message(c, f.message, n, o.v)
}

// entries reads a map, whose keys are names.
func (d *protoDecoder) entries(c *collector, f *protoField, n *node, found []occurrence) error {
	if len(n.columns) > 0 || n.each != nil || n.items != nil {
		return misplaced(c, n, "a map", "a field of the map")
	}
	key, value := f.message.by[1], f.message.by[2]
	if key == nil || value == nil {
		return nil
	}
	for _, entry := range found {
		var name []byte
		last := occurrence{}
		err := eachField(entry.v, func(number protowire.Number, o occurrence) {
			switch {
			case number == 2:
				last = o
			case number == 1 && o.wire == protowire.BytesType:
				name = o.v
			case number == 1:
				name = strconv.AppendInt(nil, key.integer(o), 10)
			}
		})
		if err != nil {
			return err
		}
		if err := d.one(c, value, n.kidOf(name), last); err != nil {
			return err
		}
	}
	return nil
}

// repeated reads a repeated field.
func (d *protoDecoder) repeated(c *collector, f *protoField, n *node, found []occurrence) error {
	switch {
	case len(n.columns) > 0:
		for _, col := range n.columns {
			if err := c.once(col); err != nil {
				return err
			}
			if len(found) == 0 {
				continue
			}
			if col.kind != vector || col.part >= 0 {
				return col.fail(col.n, "is repeated; write [] in the path if each item is a row")
			}
			if err := d.numbers(col, f, found); err != nil {
				return err
			}
		}
		return nil
	case n.each == nil && n.items == nil:
		return misplaced(c, n, "a repeated field", "an object")
	case n.each == nil:
		i := -1
		return d.items(f, found, func(o occurrence) error {
			i++
			return d.one(c, f, n.items[i], o)
		})
	}
	if err := c.beginList(n); err != nil {
		return err
	}
	err := d.items(f, found, func(o occurrence) error {
		if err := d.one(c, f, n.each, o); err != nil {
			return err
		}
		return c.endItem(n)
	})
	c.endList()
	return err
}

// items calls item for each of a repeated field, packed or not.
func (d *protoDecoder) items(f *protoField, found []occurrence, item func(occurrence) error) error {
	for _, o := range found {
		if !f.packed(o) {
			if err := item(o); err != nil {
				return err
			}
			continue
		}
		for b := o.v; len(b) > 0; {
			one, used := f.unpack(b)
			if used < 0 {
				return wire.Errorf(NotProtobuf, "field %d: %v", f.number, protowire.ParseError(used))
			}
			b = b[used:]
			if err := item(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// packed reports whether an occurrence of a repeated field holds several values.
func (f *protoField) packed(o occurrence) bool {
	return o.wire == protowire.BytesType && !f.bytes() && f.message == nil
}

// unpack takes the first of several values.
func (f *protoField) unpack(b []byte) (o occurrence, used int) {
	switch f.width() {
	case 4:
		n, used := protowire.ConsumeFixed32(b)
		return occurrence{wire: protowire.Fixed32Type, n: uint64(n)}, used
	case 8:
		n, used := protowire.ConsumeFixed64(b)
		return occurrence{wire: protowire.Fixed64Type, n: n}, used
	}
	o.n, used = protowire.ConsumeVarint(b)
	return o, used
}

// numbers reads a list of numbers.
func (d *protoDecoder) numbers(col *column, f *protoField, found []occurrence) error {
	for _, o := range found {
		if f.kind == "float" && o.wire == protowire.BytesType && len(o.v)%4 == 0 {
			for b := o.v; len(b) > 0; b = b[4:] {
				if err := col.addItem(math.Float32frombits(binary.LittleEndian.Uint32(b))); err != nil {
					return err
				}
			}
			continue
		}
		one := [1]occurrence{o}
		if err := d.items(f, one[:], func(o occurrence) error { return f.number32(col, o) }); err != nil {
			return err
		}
	}
	return col.endList(false)
}

// number32 adds an item of a list of numbers.
func (f *protoField) number32(col *column, o occurrence) error {
	switch {
	case f.kind == "float" && o.wire == protowire.Fixed32Type:
		return col.addItem(math.Float32frombits(uint32(o.n)))
	case f.kind == "double" && o.wire == protowire.Fixed64Type:
		return col.addItem(float32(math.Float64frombits(o.n)))
	case f.kind == "float" || f.kind == "double" || f.kind == "group" || f.bytes() || f.message != nil ||
		f.width() == 0 && o.wire != protowire.VarintType:
		return col.fail(col.n, "has %s in the schema or the bytes, must have numbers", f)
	}
	return col.addItem(float32(f.integer(o)))
}

// fill sets a column. A time, text, weight or confidence that is the zero value of a field that cannot be absent is
// not there.
func (d *protoDecoder) fill(col *column, f *protoField, o occurrence) error {
	zero := o.n == 0 && len(o.v) == 0 && !f.presence && f.message == nil
	if zero && (col.kind == instant || col.kind == text || col.name == "weight" || col.name == "served") {
		return col.addAbsent()
	}
	switch {
	case f.message != nil:
		return d.known(col, f, o)
	case f.bytes():
		return col.addText(o.v)
	case f.kind == "bool":
		return col.addBool(o.n != 0)
	case f.kind == "float":
		return col.addAny(float64(math.Float32frombits(uint32(o.n))))
	case f.kind == "double":
		return col.addAny(math.Float64frombits(o.n))
	case f.kind == "enum" && (col.kind == text || col.classes != nil):
		return col.addText([]byte(f.enum[int32(o.n)]))
	case f.kind == "uint64" || f.kind == "fixed64":
		return col.addAny(o.n)
	case f.kind == "group":
		return col.fail(col.n, "is a group in the schema, must be %s", col.wantsAny())
	}
	return col.addInt(f.integer(o))
}

// known sets a column by a message of a well-known type.
func (d *protoDecoder) known(col *column, f *protoField, o occurrence) error {
	m := f.message
	inner := m.by[1]
	if inner == nil || len(m.name) <= len(wellKnown) || m.name[:len(wellKnown)] != wellKnown {
		return col.fail(col.n, "is a message, must be %s", col.wantsAny())
	}
	var parts [3]occurrence
	err := eachField(o.v, func(number protowire.Number, o occurrence) {
		if number < protowire.Number(len(parts)) {
			parts[number] = o
		}
	})
	if err != nil {
		return err
	}
	if m.name == wellKnown+"Timestamp" {
		if seconds := times(int64(parts[1].n), 1e9); seconds != math.MaxInt64 {
			return col.addInstant(seconds + int64(int32(parts[2].n)))
		}
		return col.addInstant(math.MaxInt64)
	}
	present := *inner
	present.presence = true
	return d.fill(col, &present, parts[1])
}

// bytes reports whether the values are text or bytes.
func (f *protoField) bytes() bool { return f.kind == "string" || f.kind == "bytes" }

// width is that of values of fixed size, else 0.
func (f *protoField) width() int {
	switch f.kind {
	case "float", "fixed32", "sfixed32":
		return 4
	case "double", "fixed64", "sfixed64":
		return 8
	}
	return 0
}

// integer is the value of a field that is a whole number.
func (f *protoField) integer(o occurrence) int64 {
	switch f.kind {
	case "sint32", "sint64":
		return protowire.DecodeZigZag(o.n)
	case "int32", "sfixed32", "enum":
		return int64(int32(o.n))
	case "uint32":
		return int64(uint32(o.n))
	}
	return int64(o.n)
}

func (f *protoField) String() string {
	if f.message != nil {
		return "a message"
	}
	return "a " + f.kind
}
