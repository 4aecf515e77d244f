package parquet

import (
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/metadata"
	"github.com/apache/arrow/go/v17/parquet/schema"
)

// Write writes a record as a file compressed by zstd, with the metadata of its schema. Columns are text, int32,
// float32, timestamps of nanoseconds, and fixed-size lists of float32 or float64, which are written as lists: many
// readers do not know lists of a fixed size.
func Write(w io.Writer, rec arrow.Record) error {
	var fields schema.FieldList
	for _, f := range rec.Schema().Fields() {
		n, err := nodeOf(f)
		if err != nil {
			return err
		}
		fields = append(fields, n)
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Repeated, fields, -1)
	if err != nil {
		return err
	}
	var meta metadata.KeyValueMetadata
	md := rec.Schema().Metadata()
	for i, key := range md.Keys() {
		if err := meta.Append(key, md.Values()[i]); err != nil {
			return err
		}
	}
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd))
	// The library would close the file, which the caller does to see the error.
	out := struct{ io.Writer }{w}
	fw := file.NewParquetWriter(out, root, file.WithWriterProps(props), file.WithWriteMetadata(meta))
	group := fw.AppendRowGroup()
	for i, c := range rec.Columns() {
		cw, err := group.NextColumn()
		if err == nil {
			err = writeColumn(cw, c, rec.Schema().Field(i).Nullable)
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", rec.ColumnName(i), err)
		}
	}
	if err := group.Close(); err != nil {
		return err
	}
	return fw.Close()
}

func repetition(nullable bool) parquet.Repetition {
	if nullable {
		return parquet.Repetitions.Optional
	}
	return parquet.Repetitions.Required
}

// nodeOf is the schema of a column.
func nodeOf(f arrow.Field) (schema.Node, error) {
	var physical parquet.Type
	logical := schema.LogicalType(schema.NoLogicalType{})
	switch t := f.Type.(type) {
	case *arrow.FixedSizeListType:
		n, err := nodeOf(arrow.Field{Name: f.Name, Type: t.Elem(), Nullable: true})
		if err != nil {
			return nil, err
		}
		return schema.ListOfWithName(f.Name, n, repetition(f.Nullable), -1)
	case *arrow.StringType:
		physical, logical = parquet.Types.ByteArray, schema.StringLogicalType{}
	case *arrow.Int32Type:
		physical, logical = parquet.Types.Int32, schema.NewIntLogicalType(32, true)
	case *arrow.Float32Type:
		physical = parquet.Types.Float
	case *arrow.Float64Type:
		physical = parquet.Types.Double
	case *arrow.TimestampType:
		physical, logical = parquet.Types.Int64, schema.NewTimestampLogicalTypeForce(true, schema.TimeUnitNanos)
	default:
		return nil, fmt.Errorf("column %s: type %s is not written", f.Name, t)
	}
	return schema.NewPrimitiveNodeLogical(f.Name, repetition(f.Nullable), logical, physical, -1, -1)
}

// writeRows is how many rows of a column have levels in memory.
const writeRows = 1 << 14

func writeColumn(w file.ColumnChunkWriter, c arrow.Array, nullable bool) error {
	for at := 0; at < c.Len(); at += writeRows {
		if err := writePart(w, c, nullable, [2]int{at, min(at+writeRows, c.Len())}); err != nil {
			return err
		}
	}
	return w.Close()
}

// writePart writes rows from span[0] to span[1].
func writePart(w file.ColumnChunkWriter, c arrow.Array, nullable bool, span [2]int) error {
	var def, rep []int16
	full, size := int16(0), 1
	if nullable {
		full++
	}
	values := c
	if l, ok := c.(*array.FixedSizeList); ok {
		full, size, values = full+2, int(l.DataType().(*arrow.FixedSizeListType).Len()), l.ListValues()
	}
	for i := span[0]; i < span[1] && full > 0; i++ {
		if c.IsNull(i) {
			def, rep = append(def, 0), append(rep, 0)
			continue
		}
		for j := range size {
			def, rep = append(def, full), append(rep, int16(min(j, 1)))
		}
	}
	if values == c {
		rep = nil
	}
	there := func(yield func(from, to int) bool) {
		for i := span[0]; i < span[1]; i++ {
			if !c.IsNull(i) && !yield(i*size, (i+1)*size) {
				return
			}
		}
	}
	return writeValues(w, values, there, levels{def, rep})
}

// levels are nil where a column has none.
type levels struct{ def, rep []int16 }

// writeValues writes the values of the spans of there, one after the other.
func writeValues(w file.ColumnChunkWriter, v arrow.Array, there func(func(from, to int) bool), l levels) (err error) {
	switch w := w.(type) {
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch(pick(v.(*array.Int32).Int32Values(), there), l.def, l.rep)
	case *file.Float32ColumnChunkWriter:
		_, err = w.WriteBatch(pick(v.(*array.Float32).Float32Values(), there), l.def, l.rep)
	case *file.Float64ColumnChunkWriter:
		_, err = w.WriteBatch(pick(v.(*array.Float64).Float64Values(), there), l.def, l.rep)
	case *file.Int64ColumnChunkWriter:
		var out []int64
		for from := range there {
			out = append(out, int64(v.(*array.Timestamp).Value(from)))
		}
		_, err = w.WriteBatch(out, l.def, l.rep)
	case *file.ByteArrayColumnChunkWriter:
		var out []parquet.ByteArray
		for from := range there {
			out = append(out, parquet.ByteArray(v.(*array.String).Value(from)))
		}
		_, err = w.WriteBatch(out, l.def, l.rep)
	default:
		err = fmt.Errorf("values of type %s are not written", w.Type())
	}
	return err
}

func pick[T any](v []T, there func(func(from, to int) bool)) []T {
	var out []T
	for from, to := range there {
		out = append(out, v[from:to]...)
	}
	return out
}
