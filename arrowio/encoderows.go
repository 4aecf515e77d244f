package arrowio

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/plumbline/plumbline/arrowio/internal/record"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// Rows are rows to encode of which any value may be missing, as those that other formats than Arrow bring. A column
// that is nil is absent, else it has N entries.
type Rows struct {
	N    int
	Side Side
	// Model and Version are those of all rows, where there is no column of them.
	Model, Version   string
	Models, Versions *TextColumn
	IDs              *TextColumn // or
	NumberIDs        []uint64    // those below 0 in two's complement
	NoID             []bool      // of NumberIDs
	TS               []Time
	NoTS             []bool
	Form             ScoreForm // of Scores; of labels the zero value
	K                int       // of a row of Scores; 1 for one score
	Scores           []float32
	NoScores         []bool
	Label            []int64
	NoLabel          []bool
	D                int
	Features         []float32 // N×D; a row that begins with NaN is null
	Served, Weight   []float32
	NoServed         []bool
	NoWeight         []bool
	Slices           []NamedText
	// Lists: columns of lists have a type that does not say how long these are, so that rows of another K have the same
	// schema.
	Lists bool
}

// TextColumn is text of rows: that of row i ends at Ends[i] and begins where the one before ends. Empty is null.
type TextColumn struct {
	Data []byte
	Ends []int32
}

// NamedText is a slice column.
type NamedText struct {
	Name string
	Text *TextColumn
}

// At is the text of row i.
func (t *TextColumn) At(i int) []byte {
	from := int32(0)
	if i > 0 {
		from = t.Ends[i-1]
	}
	return t.Data[from:t.Ends[i]]
}

// RowsEncoder encodes rows as messages. It keeps schemas, which take longer than a few rows. Not safe for
// concurrent use.
type RowsEncoder struct {
	body    rowsBody
	schemas map[string][]byte // messages, by what the body's key says
	bytes   int               // of them and their keys
	// lastKey and lastHead are those of the rows before.
	lastKey, lastHead []byte
}

// maxSchemas is how many schemas are kept: names of models are the sender's. Rows of a model version have one of their
// own, so it is above the default of versions.max.
const maxSchemas = 2048

// rowsColumns takes the columns of rows in the order of their fields.
type rowsColumns interface {
	textColumn(name string, t *TextColumn)
	fixed(name string, t arrow.DataType, values []byte, null []bool)
	list(name string, values []float32, k int, null []bool)
}

// to gives the columns that there are to c.
func (r *Rows) to(c rowsColumns, featureNull []bool) {
	float := func(name string, v []float32, null []bool) {
		if v != nil {
			c.fixed(name, arrow.PrimitiveTypes.Float32, record.Bytes(v), null)
		}
	}
	c.textColumn("model", r.Models)
	c.textColumn("version", r.Versions)
	c.textColumn("id", r.IDs)
	if r.NumberIDs != nil {
		c.fixed("id", arrow.PrimitiveTypes.Uint64, record.Bytes(r.NumberIDs), r.NoID)
	}
	if r.TS != nil {
		c.fixed("ts", arrow.FixedWidthTypes.Timestamp_ns, record.Bytes(r.TS), r.NoTS)
	}
	if r.Form.Binary {
		float(r.Form.Column, r.Scores, r.NoScores)
	} else if r.Form.Column != "" {
		c.list(r.Form.Column, r.Scores, r.K, r.NoScores)
	}
	if r.Label != nil {
		c.fixed("label", arrow.PrimitiveTypes.Int64, record.Bytes(r.Label), r.NoLabel)
	}
	if r.Features != nil {
		c.list("features", r.Features, r.D, featureNull)
	}
	float("served", r.Served, r.NoServed)
	float("weight", r.Weight, r.NoWeight)
	for i := range r.Slices {
		c.textColumn(r.Slices[i].Name, r.Slices[i].Text)
	}
}

// rowsBody makes the body of a message, and a key that tells schemas apart.
type rowsBody struct {
	wire.Gather
	key   []byte
	null  []bool
	n     int
	lists bool
}

func (b *rowsBody) named(name string, t arrow.Type) {
	b.key = append(append(b.key, name...), 0, byte(t))
}

func (b *rowsBody) textColumn(name string, t *TextColumn) {
	if t != nil {
		b.named(name, arrow.STRING)
		b.TextOf(t.Data, t.Ends)
	}
}

func (b *rowsBody) fixed(name string, t arrow.DataType, values []byte, null []bool) {
	b.named(name, t.ID())
	b.Values(values, b.n, null)
}

func (b *rowsBody) list(name string, values []float32, k int, null []bool) {
	if b.lists {
		b.named(name, arrow.LIST)
		b.ListsOf(record.Bytes(values), b.n, k, null)
		return
	}
	b.named(name, arrow.FIXED_SIZE_LIST)
	b.key = binary.AppendUvarint(b.key, uint64(k))
	b.Lists(record.Bytes(values), b.n, len(values), null)
}

// startNaN says of rows of d numbers which begin with NaN.
func (b *rowsBody) startNaN(v []float32, d int) []bool {
	b.null = b.null[:0]
	for i := 0; i < len(v); i += d {
		b.null = append(b.null, v[i] != v[i])
	}
	return b.null
}

// rowsSchema makes the fields of a message.
type rowsSchema struct {
	*record.Builder
	lists bool
}

func (s rowsSchema) textColumn(name string, t *TextColumn) {
	if t != nil {
		s.Field(name, arrow.BinaryTypes.String)
	}
}

func (s rowsSchema) fixed(name string, t arrow.DataType, _ []byte, _ []bool) { s.Field(name, t) }

func (s rowsSchema) list(name string, _ []float32, k int, _ []bool) {
	if s.lists {
		s.Field(name, arrow.ListOf(arrow.PrimitiveTypes.Float32))
		return
	}
	s.Field(name, arrow.FixedSizeListOf(int32(k), arrow.PrimitiveTypes.Float32))
}

// Append appends the rows as the value of a record of the logits or the labels topic, a record batch each, which must
// have one schema. It does not judge the values.
func (e *RowsEncoder) Append(dst []byte, rows ...*Rows) ([]byte, error) {
	b := &e.body
	for i, r := range rows {
		b.Reset()
		b.n, b.lists, b.key = r.N, r.Lists, append(b.key[:0], byte(r.Side))
		for _, s := range [...]string{r.Model, r.Version} {
			b.key = append(binary.AppendUvarint(b.key, uint64(len(s))), s...)
		}
		r.to(b, b.startNaN(r.Features, r.D))
		if !bytes.Equal(b.key, e.lastKey) || e.lastHead == nil {
			if i > 0 {
				return dst, fmt.Errorf("encode rows: those of %d scores have another schema", r.K)
			}
			head, err := e.schema(r)
			if err != nil {
				return dst, err
			}
			e.lastKey, e.lastHead = append(e.lastKey[:0], b.key...), head
		}
		dst = slices.Grow(dst, len(e.lastHead)+b.Size()+64)
		if i == 0 {
			dst = append(dst, e.lastHead...)
		}
		dst = b.AppendBatch(dst, r.N)
	}
	return wire.AppendEnd(dst), nil
}

// schema is the message of the rows' schema.
func (e *RowsEncoder) schema(r *Rows) ([]byte, error) {
	if head, known := e.schemas[string(e.body.key)]; known {
		return head, nil
	}
	s := rowsSchema{newRecord(r.N, r.Model, r.Version), r.Lists}
	s.Meta(MetaSide, sides[r.Side])
	r.to(s, nil)
	head, err := s.Schema()
	if err != nil {
		return nil, fmt.Errorf("encode rows: %w", err)
	}
	bytes := len(e.body.key) + len(head)
	if bytes > maxCachedSchema {
		return head, nil
	}
	if e.bytes += bytes; e.schemas == nil || len(e.schemas) >= maxSchemas || e.bytes > maxPlanBytes {
		e.schemas, e.bytes = map[string][]byte{}, bytes
	}
	e.schemas[string(e.body.key)] = head
	return head, nil
}

// Halves are the rows of the first half, and the others. N is 2 or more.
func (r *Rows) Halves() (first, second *Rows) {
	return r.cut(0, r.N/2), r.cut(r.N/2, r.N)
}

func (r *Rows) cut(from, to int) *Rows {
	out := *r
	out.N = to - from
	out.Models, out.Versions, out.IDs = r.Models.cut(from, to), r.Versions.cut(from, to), r.IDs.cut(from, to)
	out.NumberIDs, out.NoID = part(r.NumberIDs, from, to), part(r.NoID, from, to)
	out.TS, out.NoTS = part(r.TS, from, to), part(r.NoTS, from, to)
	out.Scores, out.NoScores = part(r.Scores, from*r.K, to*r.K), part(r.NoScores, from, to)
	out.Label, out.NoLabel = part(r.Label, from, to), part(r.NoLabel, from, to)
	out.Features = part(r.Features, from*r.D, to*r.D)
	out.Served, out.NoServed = part(r.Served, from, to), part(r.NoServed, from, to)
	out.Weight, out.NoWeight = part(r.Weight, from, to), part(r.NoWeight, from, to)
	out.Slices = nil
	for _, s := range r.Slices {
		out.Slices = append(out.Slices, NamedText{s.Name, s.Text.cut(from, to)})
	}
	return &out
}

func part[T any](v []T, from, to int) []T {
	if v == nil {
		return nil
	}
	return v[from:to]
}

func (t *TextColumn) cut(from, to int) *TextColumn {
	if t == nil {
		return nil
	}
	out := &TextColumn{Data: t.Data}
	start := int32(0)
	if from > 0 {
		start = t.Ends[from-1]
	}
	out.Data = t.Data[start:]
	for _, end := range t.Ends[from:to] {
		out.Ends = append(out.Ends, end-start)
	}
	if n := len(out.Ends); n > 0 {
		out.Data = out.Data[:out.Ends[n-1]]
	}
	return out
}
