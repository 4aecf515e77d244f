package parquet

import (
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/plumbline/plumbline/arrowio/internal/record"
)

// Write writes a record as a file, with entries of the file's metadata.
func Write(w io.Writer, fixed arrow.Record, meta [][2]string) error {
	for i, c := range fixed.Columns() {
		if l, ok := c.(*array.FixedSizeList); ok && l.ListValues().Len() > math.MaxInt32 {
			return fmt.Errorf("column %s: %d values, a Parquet list has at most %d: split the table",
				fixed.ColumnName(i), l.ListValues().Len(), math.MaxInt32)
		}
	}
	rec := variableLists(fixed)
	defer rec.Release()
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd))
	// The library would close the file, which the caller does to see the error.
	fw, err := pqarrow.NewFileWriter(rec.Schema(), struct{ io.Writer }{w}, props,
		pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return err
	}
	for _, kv := range meta {
		if err := fw.AppendKeyValueMetadata(kv[0], kv[1]); err != nil {
			return err
		}
	}
	if err := fw.Write(rec); err != nil {
		return err
	}
	return fw.Close()
}

// variableLists turns fixed-size lists into lists: pqarrow v17 reads its own fixed-size lists back as nulls.
func variableLists(rec arrow.Record) arrow.Record {
	md, n := rec.Schema().Metadata(), int(rec.NumRows())
	b := record.New(n)
	for i, key := range md.Keys() {
		b.Meta(key, md.Values()[i])
	}
	for i, f := range rec.Schema().Fields() {
		l, ok := rec.Column(i).(*array.FixedSizeList)
		if !ok {
			rec.Column(i).Retain() // Add takes over
			b.Add(f.Name, f.Nullable, rec.Column(i))
			continue
		}
		k := int(l.DataType().(*arrow.FixedSizeListType).Len())
		offsets := make([]int32, n+1)
		for j := range offsets {
			offsets[j] = int32(j * k)
		}
		var valid []byte
		if l.NullN() > 0 {
			valid = l.NullBitmapBytes()
		}
		t, values := arrow.ListOf(l.ListValues().DataType()), []arrow.ArrayData{l.ListValues().Data()}
		b.Add(f.Name, f.Nullable, record.Array(t, n, l.NullN(), values, valid, record.Bytes(offsets)))
	}
	return b.Record()
}
