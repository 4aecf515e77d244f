package wire

import "math/bits"

// Column is one column of a record batch: slices into the message (or into decompressed memory).
type Column struct {
	Field *Field
	N     int
	Nulls int
	// Valid is the validity bitmap, at least N bits; nil where there are no nulls.
	Valid []byte
	// Data is the values, indices or offsets buffer; Text the bytes of a string or binary column.
	Data, Text []byte
	// Child is the element column of a list.
	Child *Column
}

// IsNull says whether row i is null.
func (c *Column) IsNull(i int) bool { return c.Valid != nil && c.Valid[i>>3]>>(i&7)&1 == 0 }

// header is a checked RecordBatch table.
type header struct {
	f              fb
	rows           int64
	nodes, buffers int // start of the vectors
	nNodes, nBufs  int
	views, nViews  int
	codec          int // -1 none
	body           []byte
}

func (m Message) readHeader(pos int) (header, error) {
	h := header{f: fb{b: m.Meta}, codec: -1, body: m.Body}
	h.rows = h.f.int64Field(pos, 0)
	h.nodes, h.nNodes = h.f.vectorField(pos, 1, 16)
	h.buffers, h.nBufs = h.f.vectorField(pos, 2, 16)
	if c := h.f.tableField(pos, 3); c != 0 {
		h.codec = int(h.f.byteField(c, 0))
		if method := h.f.byteField(c, 1); method != 0 {
			return h, Errorf(Compressed, "compression method %d", method)
		}
	}
	h.views, h.nViews = h.f.vectorField(pos, 4, 8)
	if h.f.bad {
		return h, Errorf(NotArrow, "record batch is no valid flatbuffer")
	}
	return h, nil
}

// maxLength keeps products of a column's length inside 64 bits; no body has as many values.
const maxLength = 1 << 40

// node is the length and null count of field node i: 0 <= nulls <= length <= maxLength.
func (h *header) node(i int) (n, nulls int64, err error) {
	n, nulls = h.f.i64(h.nodes+16*i), h.f.i64(h.nodes+16*i+8)
	if n < 0 || n > maxLength || nulls < 0 || nulls > n {
		return 0, 0, Errorf(Shape, "field node %d: length %d with %d nulls", i, n, nulls)
	}
	return n, nulls, nil
}

// buffer is buffer i of the body, decompressed where the batch is compressed.
func (h *header) buffer(i int, z *Inflater) ([]byte, error) {
	off, n := h.f.i64(h.buffers+16*i), h.f.i64(h.buffers+16*i+8)
	size := int64(len(h.body))
	if off < 0 || n < 0 || off > size || n > size-off {
		return nil, Errorf(Shape, "buffer %d: offset %d and length %d in a body of %d bytes", i, off, n, size)
	}
	b := h.body[off : off+n : off+n]
	if h.codec < 0 || n == 0 {
		return b, nil
	}
	return z.inflate(h.codec, b)
}

// Batch checks a record batch message against the schema and calls visit for each field with want[i] true,
// in order. rows is the batch's length, not above maxRows.
func (s *Schema) Batch(
	m Message,
	want []bool,
	maxRows int,
	z *Inflater,
	visit func(i int, c *Column) error,
) (rows int, err error) {
	h, err := m.readHeader(m.pos)
	if err != nil {
		return 0, err
	}
	if h.rows < 0 || h.rows > int64(maxRows) {
		return 0, Errorf(TooManyRows, "record batch of %d rows, at most %d", h.rows, maxRows)
	}
	if h.nNodes != s.nodes {
		return 0, Errorf(Shape, "record batch with %d field nodes, the schema has %d", h.nNodes, s.nodes)
	}
	if err := h.checkBuffers(s); err != nil {
		return 0, err
	}
	node, buf, view := 0, 0, 0
	for i := range s.Fields {
		f := &s.Fields[i]
		n, _, err := h.node(node)
		if err != nil {
			return 0, err
		}
		if n != h.rows {
			return 0, Errorf(Shape, "column %.64q: %d rows in a batch of %d", f.Name, n, h.rows)
		}
		if want[i] {
			c, err := h.column(f, node, buf, z)
			if err != nil {
				return 0, err
			}
			if err := visit(i, c); err != nil {
				return 0, err
			}
		}
		node += f.nodes
		buf += f.buffers + h.variadic(view, f.views)
		view += f.views
	}
	return int(h.rows), nil
}

// variadic is the number of data buffers of n view columns from the first-th on. checkBuffers has made
// sure that the counts are non-negative and add up.
func (h *header) variadic(first, n int) int {
	sum := 0
	for i := first; i < first+n; i++ {
		sum += int(h.f.i64(h.views + 8*i))
	}
	return sum
}

// checkBuffers checks the number of buffers, and that each lies in the body, for ignored columns too.
func (h *header) checkBuffers(s *Schema) error {
	views := 0
	for i := range s.Fields {
		views += s.Fields[i].views
	}
	if h.nViews != views && views != 0 {
		return Errorf(Shape, "record batch with %d variadic counts, the schema has %d view columns", h.nViews, views)
	}
	want := int64(s.buffers)
	for i := range views {
		v := h.f.i64(h.views + 8*i)
		if v < 0 || v > int64(h.nBufs) {
			return Errorf(Shape, "variadic buffer count %d of %d buffers", v, h.nBufs)
		}
		want += v
	}
	if int64(h.nBufs) != want {
		return Errorf(Shape, "record batch with %d buffers, the schema has %d", h.nBufs, want)
	}
	size := int64(len(h.body))
	for i := range h.nBufs {
		off, n := h.f.i64(h.buffers+16*i), h.f.i64(h.buffers+16*i+8)
		if off < 0 || n < 0 || off > size || n > size-off {
			return Errorf(Shape, "buffer %d: offset %d and length %d in a body of %d bytes", i, off, n, size)
		}
	}
	return nil
}

// column takes the buffers of a field of one of the types that plumbline reads.
func (h *header) column(f *Field, node, buf int, z *Inflater) (*Column, error) {
	n, nulls, err := h.node(node)
	if err != nil {
		return nil, err
	}
	c := &Column{Field: f, N: int(n), Nulls: int(nulls)}
	if c.Valid, err = h.buffer(buf, z); err != nil {
		return nil, err
	}
	if err := c.checkValid(); err != nil {
		return nil, err
	}
	if f.Type == FixedSizeList && f.Dict == nil {
		c.Child, err = h.child(f, node, buf+1, z)
		return c, err
	}
	if c.Data, err = h.buffer(buf+1, z); err != nil {
		return nil, err
	}
	if err := c.backed(); err != nil {
		return nil, err
	}
	switch {
	case f.Dict != nil:
	case f.Type == List || f.Type == LargeList:
		c.Child, err = h.child(f, node, buf+2, z)
	case f.Type == Utf8 || f.Type == LargeUtf8 || f.Type == Binary || f.Type == LargeBinary:
		c.Text, err = h.buffer(buf+2, z)
	}
	return c, err
}

// backed refuses a column whose data buffer is too short for its rows, before anyone allocates by the number of rows.
func (c *Column) backed() error {
	bits := int64(c.Field.Bits)
	switch f := c.Field; {
	case f.Dict != nil:
		bits = int64(f.Dict.Bits)
	case f.Type == Timestamp || f.Type == LargeUtf8 || f.Type == LargeBinary || f.Type == LargeList:
		bits = 64
	case f.Type == Utf8 || f.Type == Binary || f.Type == List:
		bits = 32
	}
	if need := int64(c.N) * bits / 8; int64(len(c.Data)) < need {
		return Errorf(Shape, "column %.64q: buffer of %d bytes for %d values, at least %d", c.Field.Name, len(c.Data),
			c.N, need)
	}
	return nil
}

// child is the element column of a list; elements must be plain values, as logits and features are.
func (h *header) child(f *Field, node, buf int, z *Inflater) (*Column, error) {
	e := &f.Children[0]
	if e.Type != Float || e.Dict != nil {
		return nil, Errorf(ColumnType,
			"column %.64q: list elements of type number %d, allowed are float16, float32, float64", f.Name, e.Type)
	}
	return h.column(e, node+1, buf, z)
}

// checkValid drops the bitmap of a column without nulls and refuses one that contradicts the null count.
func (c *Column) checkValid() error {
	if len(c.Valid) == 0 {
		if c.Nulls > 0 {
			return Errorf(Shape, "column %.64q: %d nulls without a validity bitmap", c.Field.Name, c.Nulls)
		}
		c.Valid = nil
		return nil
	}
	if len(c.Valid) < (c.N+7)/8 {
		return Errorf(Shape, "column %.64q: validity bitmap of %d bytes for %d rows", c.Field.Name, len(c.Valid), c.N)
	}
	set := 0
	for _, b := range c.Valid[:c.N/8] {
		set += bits.OnesCount8(b)
	}
	if r := c.N & 7; r != 0 {
		set += bits.OnesCount8(c.Valid[c.N/8] & (1<<r - 1))
	}
	if c.N-set != c.Nulls {
		return Errorf(Shape, "column %.64q: bitmap with %d nulls, null count %d", c.Field.Name, c.N-set, c.Nulls)
	}
	if c.Nulls == 0 {
		c.Valid = nil
	}
	return nil
}
