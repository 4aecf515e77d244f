package wire

import (
	"encoding/binary"
	"slices"
)

// Gather collects rows of columns into the body of a record batch. Begin with Reset, add the columns in the order of
// the schema's fields, end with one of the Append methods.
type Gather struct {
	body    []byte
	nodes   []int64 // length and nulls of each
	buffers []int64 // offset and length of each
	offsets []int64 // scratch of Offsets
	meta    composer
	last    []int64 // what meta was made of
}

// Gathers reports whether Column can gather a field: those of the types that plumbline reads, Bool, and text or binary
// by dictionary.
func Gathers(f *Field) bool {
	switch f.Type {
	case Utf8, LargeUtf8, Binary, LargeBinary:
		return true
	case Int, Float, Timestamp, Bool:
		return f.Dict == nil
	case List, LargeList, FixedSizeList:
		return f.Dict == nil && f.Children[0].Type == Float && f.Children[0].Dict == nil
	}
	return false
}

// Reset begins a body.
func (g *Gather) Reset() { g.body, g.nodes, g.buffers = g.body[:0], g.nodes[:0], g.buffers[:0] }

// Size is about how long the message will be.
func (g *Gather) Size() int { return len(g.body) + 8*(len(g.nodes)+len(g.buffers)) + 128 }

// Take adds rows of a column, whose indices must lie in it. Of a dictionary-encoded one, see Indices.
func (g *Gather) Take(c *Column, rows []int32) error {
	g.valid(c, rows)
	switch c.Field.Type {
	case Bool:
		if len(c.Data) < (c.N+7)/8 {
			return Errorf(Shape, "column %.64q: buffer of %d bytes for %d bits", c.Field.Name, len(c.Data), c.N)
		}
		start := g.begin()
		g.bits(c.Data, rows)
		g.end(start)
		return nil
	case Utf8, LargeUtf8, Binary, LargeBinary:
		return g.variable(c, rows, len(c.Text), func(from, to int64) { g.body = append(g.body, c.Text[from:to]...) })
	case List, LargeList:
		return g.list(c, rows)
	case FixedSizeList:
		return g.fixedList(c, rows)
	}
	return g.fixed(c, rows)
}

// valid adds the field node and the validity buffer.
func (g *Gather) valid(c *Column, rows []int32) {
	start, nulls := g.begin(), 0
	if c.Valid != nil {
		for _, r := range rows {
			if c.IsNull(int(r)) {
				nulls++
			}
		}
		if nulls > 0 {
			g.bits(c.Valid, rows)
		}
	}
	g.nodes = append(g.nodes, int64(len(rows)), int64(nulls))
	g.end(start)
}

func (g *Gather) bits(from []byte, rows []int32) {
	start := len(g.body)
	g.body = append(g.body, make([]byte, (len(rows)+7)/8)...)
	to := g.body[start:]
	for j, r := range rows {
		to[j>>3] |= from[r>>3] >> (r & 7) & 1 << (j & 7)
	}
}

// begin and end enclose a buffer.
func (g *Gather) begin() int { return len(g.body) }

func (g *Gather) end(start int) {
	g.buffers = append(g.buffers, int64(start), int64(len(g.body)-start))
	for len(g.body)%8 != 0 {
		g.body = append(g.body, 0)
	}
}

// width is the size of a value of fixed size in bytes.
func width(f *Field) int {
	if f.Type == Timestamp {
		return 8
	}
	return f.Bits / 8
}

// whole refuses a column of values of fixed size whose buffer is too short.
func (c *Column) whole() error {
	if w := width(c.Field); len(c.Data)/w < c.N {
		return Errorf(Shape, "column %.64q: buffer of %d bytes for %d values of %d", c.Field.Name, len(c.Data), c.N, w)
	}
	return nil
}

func (g *Gather) fixed(c *Column, rows []int32) error {
	if err := c.whole(); err != nil {
		return err
	}
	w := width(c.Field)
	start := g.begin()
	for _, r := range rows {
		g.body = append(g.body, c.Data[int(r)*w:int(r)*w+w]...)
	}
	g.end(start)
	return nil
}

// variable adds the offsets of rows, and what put adds of each.
func (g *Gather) variable(c *Column, rows []int32, size int, put func(from, to int64)) error {
	off, reuse, err := Offsets(c, size, g.offsets)
	g.offsets = reuse
	if err != nil {
		return err
	}
	start, sum := g.begin(), int64(0)
	g.offset(c.Field, 0)
	for _, r := range rows {
		sum += off[r+1] - off[r]
		g.offset(c.Field, sum)
	}
	g.end(start)
	start = g.begin()
	for _, r := range rows {
		put(off[r], off[r+1])
	}
	if c.Child == nil { // of a list, these are no buffer yet
		g.end(start)
	}
	return nil
}

func (g *Gather) offset(f *Field, v int64) {
	switch f.Type {
	case LargeUtf8, LargeBinary, LargeList:
		g.body = binary.LittleEndian.AppendUint64(g.body, uint64(v))
	default: // not more than in the column that the rows are of
		g.body = binary.LittleEndian.AppendUint32(g.body, uint32(v))
	}
}

func (g *Gather) list(c *Column, rows []int32) error {
	if err := c.Child.whole(); err != nil {
		return err
	}
	var elements []int32
	err := g.variable(c, rows, c.Child.N, func(from, to int64) {
		for i := from; i < to; i++ {
			elements = append(elements, int32(i))
		}
	})
	if err != nil {
		return err
	}
	return g.Take(c.Child, elements)
}

func (g *Gather) fixedList(c *Column, rows []int32) error {
	size, e := c.Field.Size, c.Child
	if err := e.whole(); err != nil {
		return err
	}
	if int64(c.N)*int64(size) > int64(e.N) {
		return Errorf(Shape, "column %.64q: %d values for %d rows of %d", c.Field.Name, e.N, c.N, size)
	}
	if e.Valid != nil {
		elements := make([]int32, 0, len(rows)*size)
		for _, r := range rows {
			for i := range size {
				elements = append(elements, r*int32(size)+int32(i))
			}
		}
		return g.Take(e, elements)
	}
	w := width(e.Field) * size
	g.nodes = append(g.nodes, int64(len(rows)*size), 0)
	g.buffers = append(g.buffers, int64(len(g.body)), 0)
	start := g.begin()
	for _, r := range rows {
		g.body = append(g.body, e.Data[int(r)*w:int(r)*w+w]...)
	}
	g.end(start)
	return nil
}

// Indices adds rows of a dictionary-encoded column, each index put through change, which returns an index not greater.
func (g *Gather) Indices(c *Column, rows []int32, change func(uint64) (uint64, error)) error {
	w := c.Field.Dict.Bits / 8
	if len(c.Data)/w < c.N {
		return Errorf(Shape, "column %.64q: buffer of %d bytes for %d indices of %d", c.Field.Name, len(c.Data), c.N, w)
	}
	g.valid(c, rows)
	start := g.begin()
	for _, r := range rows {
		v := uint64(0)
		if !c.IsNull(int(r)) {
			var err error
			if v, err = change(c.index(int(r), w)); err != nil {
				return err
			}
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		g.body = append(g.body, b[:w]...)
	}
	g.end(start)
	return nil
}

// index is the dictionary index of a row that is not null, read as unsigned: a negative one lies beyond any dictionary.
func (c *Column) index(row, w int) uint64 {
	var b [8]byte
	copy(b[:w], c.Data[row*w:])
	v := binary.LittleEndian.Uint64(b[:])
	if c.Field.Dict.Signed && v >= 1<<(8*w-1) {
		return 1<<64 - 1
	}
	return v
}

// Constant adds a column of n times the same 8 bytes.
func (g *Gather) Constant(v int64, n int) {
	g.nodes = append(g.nodes, int64(n), 0)
	g.buffers = append(g.buffers, int64(len(g.body)), 0)
	start := g.begin()
	for range n {
		g.body = binary.LittleEndian.AppendUint64(g.body, uint64(v))
	}
	g.end(start)
}

// Texts adds the values of a dictionary of a field's text or binary type; a nil one is null.
func (g *Gather) Texts(f *Field, values [][]byte) {
	start, nulls := g.begin(), 0
	bits := make([]byte, (len(values)+7)/8)
	for i, v := range values {
		if v == nil {
			nulls++
		} else {
			bits[i>>3] |= 1 << (i & 7)
		}
	}
	if nulls > 0 {
		g.body = append(g.body, bits...)
	}
	g.nodes = append(g.nodes, int64(len(values)), int64(nulls))
	g.end(start)
	start, sum := g.begin(), int64(0)
	g.offset(f, 0)
	for _, v := range values {
		sum += int64(len(v))
		g.offset(f, sum)
	}
	g.end(start)
	start = g.begin()
	for _, v := range values {
		g.body = append(g.body, v...)
	}
	g.end(start)
}

// AppendBatch appends a record batch message of what was added.
func (g *Gather) AppendBatch(dst []byte, rows int) []byte {
	if !g.sameBatch(rows) {
		header := g.meta.message(HeaderBatch, len(g.body))
		g.meta.link(header, g.batch(rows))
		g.last = append(append(append(g.last[:0], int64(rows)), g.nodes...), g.buffers...)
	}
	return g.meta.appendMessage(dst, g.body)
}

// sameBatch reports whether the header of the batch before is that of this one: they often are alike where one is one
// row.
func (g *Gather) sameBatch(rows int) bool {
	nodes := 1 + len(g.nodes)
	return len(g.last) == nodes+len(g.buffers) && g.last[0] == int64(rows) &&
		slices.Equal(g.last[1:nodes], g.nodes) && slices.Equal(g.last[nodes:], g.buffers)
}

// AppendDictionary appends a message with the values of a dictionary.
func (g *Gather) AppendDictionary(dst []byte, id int64, entries int) []byte {
	g.last = g.last[:0]
	header := g.meta.message(HeaderDictionary, len(g.body))
	pos, at := g.meta.table(slot{8, uint64(id)}, offsetSlot())
	g.meta.link(header, pos)
	g.meta.link(at[1], g.batch(entries))
	return g.meta.appendMessage(dst, g.body)
}

// batch writes the RecordBatch table.
func (g *Gather) batch(rows int) (pos int) {
	pos, at := g.meta.table(slot{8, uint64(rows)}, offsetSlot(), offsetSlot())
	for i, structs := range [][]int64{g.nodes, g.buffers} {
		v, first := g.meta.vector(len(structs)/2, 16)
		g.meta.link(at[1+i], v)
		for j, x := range structs {
			binary.LittleEndian.PutUint64(g.meta.b[first+8*j:], uint64(x))
		}
	}
	return pos
}
