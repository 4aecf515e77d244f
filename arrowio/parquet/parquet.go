package parquet

import (
	"context"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
)

// File is an open Parquet file.
type File struct{ r *file.Reader }

// Open reads the footer of a file.
func Open(r parquet.ReaderAtSeeker) (*File, error) {
	pr, err := file.NewParquetReader(r)
	if err != nil {
		return nil, err
	}
	return &File{pr}, nil
}

// Close frees the file's memory.
func (f *File) Close() error { return f.r.Close() }

// Rows is the number of rows, by the footer.
func (f *File) Rows() int { return int(f.r.NumRows()) }

// Meta is an entry of the file's metadata, "" where there is none.
func (f *File) Meta(key string) string {
	if v := f.r.MetaData().KeyValueMetadata().FindValue(key); v != nil {
		return *v
	}
	return ""
}

// Records reads the columns that want names, so many rows a record.
func (f *File) Records(rows int, want func(name string) bool) (array.RecordReader, error) {
	// The Arrow schema that a writer leaves in the file makes fixed-size lists of lists, which the library refuses where
	// one is null (pyarrow writes those). The types of Parquet say all that is needed here.
	kv := f.r.MetaData().KeyValueMetadata()
	for i := range kv {
		if kv[i].Key == "ARROW:schema" {
			kv[i].Key = ""
		}
	}
	ar, err := pqarrow.NewFileReader(f.r, pqarrow.ArrowReadProperties{BatchSize: int64(rows)}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	s := f.r.MetaData().Schema
	var leaves []int
	for i := range s.NumColumns() {
		if want(s.ColumnRoot(i).Name()) {
			leaves = append(leaves, i)
		}
	}
	return ar.GetRecordReader(context.Background(), leaves, nil)
}
