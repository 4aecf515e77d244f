package inputs

import (
	"encoding/binary"
	"math"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// avroDecoder reads Avro as section "Binary Encoding" of the specification has it, from bytes that may be hostile. The
// libraries for Go make maps of a whole record first, and follow recursive schemas as deep as the sender likes.
type avroDecoder struct {
	b    []byte
	i    int
	work work
	// kids are the nodes of a record type's fields at a node; nil = no column is there.
	kids map[avroAt][]*node
}

type avroAt struct {
	t *avroType
	n *node
}

// NotAvro is why a record is refused whose bytes are not of its schema.
const NotAvro = "not_avro"

func newAvro(_ *Config, o *Options) (decoder, error) {
	d := &avroDecoder{}
	return newRegistered("AVRO", o, parseAvro, d.read)
}

// read reads a value: a record is a document, and so is each item of an array of them.
func (d *avroDecoder) read(t *avroType, value []byte, c *collector) error {
	d.b, d.i, d.work = value, 0, workOf(len(value))
	if len(d.kids) > maxCompiled {
		d.kids = nil
	}
	document := func(t *avroType) error {
		if err := c.begin(); err != nil {
			return err
		}
		if err := d.value(c, t, c.root); err != nil {
			return err
		}
		return c.end()
	}
	var err error
	if t.kind == avroArray && c.root.each == nil && len(c.root.items) == 0 {
		err = d.blocks(func(int) error { return document(t.items) })
	} else {
		err = document(t)
	}
	if err == nil && d.i < len(d.b) {
		err = d.fail("%d bytes after the value", len(d.b)-d.i)
	}
	return err
}

func (d *avroDecoder) fail(format string, args ...any) error {
	err := wire.Errorf(NotAvro, format, args...)
	return wire.Errorf(NotAvro, "byte %d: %s", frame+d.i, err.Detail)
}

// long reads an int or a long.
func (d *avroDecoder) long() (int64, error) {
	if d.i < len(d.b) && d.b[d.i] < 0x80 {
		u := uint64(d.b[d.i])
		d.i++
		return int64(u>>1) ^ -int64(u&1), nil
	}
	u, n := binary.Uvarint(d.b[d.i:])
	if n <= 0 {
		return 0, d.fail("no number of at most 64 bits")
	}
	d.i += n
	return int64(u>>1) ^ -int64(u&1), nil
}

func (d *avroDecoder) take(n int64) ([]byte, error) {
	if n < 0 || n > int64(len(d.b)-d.i) {
		return nil, d.fail("a length of %d, %d bytes are left", n, len(d.b)-d.i)
	}
	v := d.b[d.i : d.i+int(n)]
	d.i += int(n)
	return v, nil
}

func (d *avroDecoder) text() ([]byte, error) {
	n, err := d.long()
	if err != nil {
		return nil, err
	}
	return d.take(n)
}

// block reads the head of a block of an array or a map: how many items, and their bytes where it says so, else -1.
func (d *avroDecoder) block() (items, size int64, err error) {
	size = -1
	if items, err = d.long(); err == nil && items < 0 {
		if items == math.MinInt64 {
			return 0, 0, d.fail("a block of %d items", items)
		}
		items = -items
		size, err = d.long()
	}
	return items, size, err
}

// blocks calls item for each item of an array, which reads it.
func (d *avroDecoder) blocks(item func(i int) error) error {
	for i := 0; ; {
		n, _, err := d.block()
		if err != nil || n == 0 {
			return err
		}
		for ; n > 0; n-- {
			if d.work.left--; d.work.left < 0 {
				return wire.Errorf(wire.TooLarge, "more items than the bytes of the record can hold")
			}
			if err := item(i); err != nil {
				return err
			}
			i++
		}
	}
}

// branch is the type of a union's value.
func (d *avroDecoder) branch(t *avroType) (*avroType, error) {
	i, err := d.long()
	if err == nil && (i < 0 || i >= int64(len(t.of))) {
		err = d.fail("branch %d of a union of %d", i, len(t.of))
	}
	if err != nil {
		return nil, err
	}
	return t.of[i], nil
}

// value reads what lies at a node.
func (d *avroDecoder) value(c *collector, t *avroType, n *node) error {
	if n == nil {
		return d.skip(t)
	}
	if err := d.work.down(); err != nil {
		return err
	}
	defer d.work.up()
	switch {
	case t.kind == avroUnion:
		t, err := d.branch(t)
		if err != nil {
			return err
		}
		return d.value(c, t, n)
	case len(n.columns) > 0:
		return d.columns(c, t, n)
	case t.kind == avroNull:
		return nil
	case n.each != nil || n.items != nil:
		return d.list(c, t, n)
	case t.kind == avroRecord:
		for i, kid := range d.kidsOf(t, n) {
			if err := d.value(c, t.fields[i].t, kid); err != nil {
				return err
			}
		}
		return nil
	case t.kind == avroMap:
		return d.blocks(func(int) error {
			key, err := d.text()
			if err != nil {
				return err
			}
			return d.value(c, t.items, n.kidOf(key))
		})
	}
	return misplaced(c, n, t.String(), "an object")
}

// misplaced refuses a value that columns should be inside of.
func misplaced(c *collector, n *node, is, want string) error {
	hint := ""
	if want == "an object" && is == "an array" {
		hint = "; write [] in the path if each item is a row"
	}
	where := "the record"
	if len(n.below) > 0 {
		where = n.below[0].path
	}
	return wire.Errorf(wire.ColumnType, "row %d, %s: %s in the schema where %s must be%s", c.at, where, is, want, hint)
}

func (d *avroDecoder) kidsOf(t *avroType, n *node) []*node {
	kids, ok := d.kids[avroAt{t, n}]
	if !ok {
		for _, f := range t.fields {
			kids = append(kids, n.kid(f.name))
		}
		if d.kids == nil {
			d.kids = map[avroAt][]*node{}
		}
		d.kids[avroAt{t, n}] = kids
	}
	return kids
}

// list reads an array whose items are rows, or some of which are columns.
func (d *avroDecoder) list(c *collector, t *avroType, n *node) error {
	if t.kind != avroArray {
		return misplaced(c, n, t.String(), "an array")
	}
	if n.each == nil {
		return d.blocks(func(i int) error { return d.value(c, t.items, n.items[i]) })
	}
	if err := c.beginList(n); err != nil {
		return err
	}
	err := d.blocks(func(int) error {
		if err := d.value(c, t.items, n.each); err != nil {
			return err
		}
		return c.endItem(n)
	})
	c.endList()
	return err
}

// columns sets the columns of a node.
func (d *avroDecoder) columns(c *collector, t *avroType, n *node) error {
	from := d.i
	for _, col := range n.columns {
		d.i = from
		if err := c.once(col); err != nil {
			return err
		}
		if err := d.fill(col, t); err != nil {
			return err
		}
	}
	return nil
}

func (d *avroDecoder) fill(col *column, t *avroType) error {
	switch t.kind {
	case avroNull:
		return col.addNull()
	case avroBoolean:
		b, err := d.take(1)
		if err != nil {
			return err
		}
		return col.addBool(b[0] != 0)
	case avroInt, avroLong:
		v, err := d.long()
		if err != nil {
			return err
		}
		if t.unit > 0 && col.kind == instant {
			return col.addInstant(times(v, t.unit))
		}
		return col.addInt(v)
	case avroFloat, avroDouble:
		f, err := d.float(t)
		if err != nil {
			return err
		}
		return col.addAny(f)
	case avroEnum:
		i, err := d.long()
		if err == nil && (i < 0 || i >= int64(len(t.symbols))) {
			err = d.fail("symbol %d of an enum of %d", i, len(t.symbols))
		}
		if err != nil {
			return err
		}
		return col.addText([]byte(t.symbols[i]))
	case avroArray:
		if col.whole() {
			return d.numbers(col, t.items)
		}
	case avroBytes, avroString, avroFixed:
		if t.decimal {
			break
		}
		v, err := d.bytes(t)
		if err != nil {
			return err
		}
		return col.addText(v)
	}
	return col.fail(col.n, "is %s in the schema, must be %s", t, col.wantsAny())
}

// times is a number of units in nanoseconds; beyond what they hold, no time that a row may have.
func times(n, unit int64) int64 {
	if n > math.MaxInt64/unit || n < -math.MaxInt64/unit {
		return math.MaxInt64
	}
	return n * unit
}

func (d *avroDecoder) bytes(t *avroType) ([]byte, error) {
	if t.kind == avroFixed {
		return d.take(int64(t.size))
	}
	return d.text()
}

func (d *avroDecoder) float(t *avroType) (float64, error) {
	if t.kind == avroFloat {
		b, err := d.take(4)
		if err != nil {
			return 0, err
		}
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), nil
	}
	b, err := d.take(8)
	if err != nil {
		return 0, err
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
}

// numbers reads a list of numbers.
func (d *avroDecoder) numbers(col *column, items *avroType) error {
	null := false
	for i := 0; ; {
		n, _, err := d.block()
		if err != nil {
			return err
		}
		if n == 0 {
			return col.endList(null)
		}
		for ; n > 0; n-- {
			if d.work.left--; d.work.left < 0 {
				return wire.Errorf(wire.TooLarge, "more items than the bytes of the record can hold")
			}
			f, none, err := d.number(col, items, i)
			if null = null || none; err == nil && !none {
				err = col.addItem(f)
			}
			if err != nil {
				return err
			}
			i++
		}
	}
}

// number reads an item of a list of numbers.
func (d *avroDecoder) number(col *column, t *avroType, i int) (f float32, none bool, err error) {
	if t.kind == avroUnion {
		if t, err = d.branch(t); err != nil {
			return 0, false, err
		}
	}
	switch t.kind {
	case avroNull:
		return 0, true, nil
	case avroInt, avroLong:
		v, err := d.long()
		return float32(v), false, err
	case avroFloat, avroDouble:
		f, err := d.float(t)
		return float32(f), false, err
	}
	return 0, false, col.fail(col.n, "item %d is %s in the schema, must be a number", i, t)
}

// skip passes over a value.
func (d *avroDecoder) skip(t *avroType) error {
	if err := d.work.down(); err != nil {
		return err
	}
	defer d.work.up()
	switch t.kind {
	case avroInt, avroLong, avroEnum:
		_, err := d.long()
		return err
	case avroBoolean:
		_, err := d.take(1)
		return err
	case avroFloat, avroDouble:
		_, err := d.float(t)
		return err
	case avroBytes, avroString, avroFixed:
		_, err := d.bytes(t)
		return err
	case avroUnion:
		t, err := d.branch(t)
		if err != nil {
			return err
		}
		return d.skip(t)
	case avroRecord:
		for _, f := range t.fields {
			if err := d.skip(f.t); err != nil {
				return err
			}
		}
	case avroArray, avroMap:
		return d.skipBlocks(t)
	}
	return nil
}

func (d *avroDecoder) skipBlocks(t *avroType) error {
	for {
		n, size, err := d.block()
		if err != nil || n == 0 {
			return err
		}
		if size >= 0 {
			if _, err := d.take(size); err != nil {
				return err
			}
			continue
		}
		for ; n > 0; n-- {
			if t.kind == avroMap {
				if _, err := d.text(); err != nil {
					return err
				}
			}
			if err := d.skip(t.items); err != nil {
				return err
			}
		}
	}
}

func (t *avroType) String() string {
	switch t.kind {
	case avroArray:
		return "an array"
	case avroMap:
		return "a map"
	case avroRecord:
		return "a record"
	case avroUnion:
		return "a union"
	case avroEnum:
		return "an enum"
	case avroFixed:
		return "a fixed"
	}
	if t.decimal {
		return "a decimal"
	}
	for name, kind := range avroPrimitives {
		if kind == t.kind {
			return "a " + name
		}
	}
	return "?"
}
