package record

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// Builder collects the columns of a record.
type Builder struct {
	rows   int
	fields []arrow.Field
	cols   []arrow.Array
	keys   []string
	values []string
}

// New makes a builder of a record of so many rows.
func New(rows int) *Builder { return &Builder{rows: rows} }

// Meta adds an entry of the schema's metadata, unless value is empty.
func (b *Builder) Meta(key, value string) {
	if value != "" {
		b.keys, b.values = append(b.keys, key), append(b.values, value)
	}
}

// Add takes the array over.
func (b *Builder) Add(name string, nullable bool, a arrow.Array) {
	b.fields = append(b.fields, arrow.Field{Name: name, Type: a.DataType(), Nullable: nullable})
	b.cols = append(b.cols, a)
}

// Field adds a column that may be null without its values, for Schema.
func (b *Builder) Field(name string, t arrow.DataType) {
	b.fields = append(b.fields, arrow.Field{Name: name, Type: t, Nullable: true})
}

// Schema is the schema of the columns as a message. The builder is not used again.
func (b *Builder) Schema() ([]byte, error) {
	var buf bytes.Buffer
	md := arrow.NewMetadata(b.keys, b.values)
	w := ipc.NewWriter(&buf, ipc.WithSchema(arrow.NewSchema(b.fields, &md)))
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	const end = 8 // bytes of the end-of-stream marker
	return buf.Bytes()[:buf.Len()-end], nil
}

// Record is the record of the columns. The builder is not used again.
func (b *Builder) Record() arrow.Record {
	md := arrow.NewMetadata(b.keys, b.values)
	rec := array.NewRecord(arrow.NewSchema(b.fields, &md), b.cols, int64(b.rows))
	for _, a := range b.cols {
		a.Release()
	}
	return rec
}

// Encode encodes a record as an Arrow IPC stream of one record batch.
func Encode(rec arrow.Record) ([]byte, error) {
	size := 1024
	for _, c := range rec.Columns() {
		size += int(c.Data().SizeInBytes()) + 256
	}
	buf := bytes.NewBuffer(make([]byte, 0, size))
	w := ipc.NewWriter(buf, ipc.WithSchema(rec.Schema()), ipc.WithAllocator(memory.DefaultAllocator))
	if err := w.Write(rec); err != nil {
		return nil, fmt.Errorf("write record batch: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end stream: %w", err)
	}
	return buf.Bytes(), nil
}
