package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
)

// File is an open Parquet file. Its bytes may be anything: what they claim is believed within bounds.
type File struct {
	in      parquet.ReaderAtSeeker
	size    int64
	r       *file.Reader
	columns []*column

	pages, values int64 // bytes that pages may still inflate to, and values may still take
}

const (
	maxFooter = 16 << 20
	// A file of n bytes may hold expandFrom + expandBy*n bytes of pages, and of values.
	expandFrom = 256 << 20
	expandBy   = 1024
)

// Open reads the footer of a file.
func Open(in parquet.ReaderAtSeeker) (*File, error) { return open(in, expandFrom) }

// open lets a small file expand to so many bytes.
func open(in parquet.ReaderAtSeeker, expand int64) (f *File, err error) {
	defer recoverTo(&err)
	if err := registerCodecs(); err != nil {
		return nil, err
	}
	f = &File{in: in}
	if f.size, err = in.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	f.pages = expand + expandBy*min(f.size, math.MaxInt64/expandBy/2)
	f.values = f.pages
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	if f.r, err = file.NewParquetReader(in); err != nil {
		return nil, err
	}
	f.columns = columnsOf(f.r.MetaData().Schema)
	return f, nil
}

// recoverTo turns a panic of the library, which meets broken files with some, into an error.
func recoverTo(err *error) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = r
	default:
		*err = fmt.Errorf("%v", r)
	}
}

// check looks at the footer before the library does.
func (f *File) check() error {
	const tail = 8 // length of the footer, magic
	if f.size < tail {
		return io.ErrUnexpectedEOF
	}
	var end [tail]byte
	if _, err := f.in.ReadAt(end[:], f.size-tail); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	switch {
	case string(end[4:]) != "PAR1":
		return fmt.Errorf("no PAR1 at the end of %d bytes: the file is not complete, or encrypted", f.size)
	case n > f.size-tail || n > maxFooter:
		return fmt.Errorf("%d bytes in a file of %d, at most %d", n, f.size, maxFooter)
	}
	b := make([]byte, n)
	if _, err := f.in.ReadAt(b, f.size-tail-n); err != nil {
		return err
	}
	return checkFooter(b)
}

var errExpands = errors.New("the file expands to more than is allowed for its size")

// inflate counts the bytes of a page.
func (f *File) inflate(n int64) error {
	if f.pages -= n; f.pages < 0 {
		return errExpands
	}
	return nil
}

// decode counts bytes of values.
func (f *File) decode(n int64) error {
	if f.values -= n; f.values < 0 {
		return errExpands
	}
	return nil
}

// Rows is the number of rows that the footer claims.
func (f *File) Rows() int { return int(f.r.NumRows()) }

// Meta is an entry of the file's metadata, "" where there is none.
func (f *File) Meta(key string) string {
	if v := f.r.MetaData().KeyValueMetadata().FindValue(key); v != nil {
		return *v
	}
	return ""
}

// Fields are the columns by the order of the file; those that cannot be read have a type that is none of a column.
func (f *File) Fields() []arrow.Field {
	var out []arrow.Field
	for _, c := range f.columns {
		t := c.typ
		switch {
		case c.other != "":
			t = &arrow.StructType{}
		case c.list:
			t = arrow.ListOf(t)
		}
		out = append(out, arrow.Field{Name: c.name, Type: t})
	}
	return out
}

// ReadRecords reads the columns that want names, so many rows a record. A column of a type that cannot be read is an
// error where it is wanted by its name; text reports whether want is asked about a column of text.
func (f *File) ReadRecords(rows int, want func(name string, text bool) bool) (*Records, error) {
	r := &Records{file: f, rows: rows}
	var fields []arrow.Field
	for _, c := range f.columns {
		if !want(c.name, c.other == "" && !c.list && c.typ.ID() == arrow.STRING) {
			continue
		}
		if c.other != "" {
			return nil, fmt.Errorf("column %s: %s is not read", c.name, c.other)
		}
		t := c.typ
		if c.list {
			t = arrow.ListOf(t)
		}
		fields = append(fields, arrow.Field{Name: c.name, Type: t, Nullable: true})
		r.chunks = append(r.chunks, &chunk{file: f, column: c})
	}
	r.schema = arrow.NewSchema(fields, nil)
	return r, nil
}

// Records reads a file record by record.
type Records struct {
	file   *File
	rows   int
	schema *arrow.Schema
	chunks []*chunk
	done   int
	rec    arrow.Record
	err    error
}

// Schema is that of the records.
func (r *Records) Schema() *arrow.Schema { return r.schema }

// Record is valid until the next call of Next.
func (r *Records) Record() arrow.Record { return r.rec }

// Err is what ended the reading, nil at the end of the file.
func (r *Records) Err() error { return r.err }

// Next reads the next record.
func (r *Records) Next() bool {
	if r.err == nil {
		r.rec, r.err = r.next()
	}
	return r.err == nil && r.rec != nil
}

func (r *Records) next() (rec arrow.Record, err error) {
	defer recoverTo(&err)
	if len(r.chunks) == 0 {
		return nil, nil
	}
	var cols []arrow.Array
	n := 0
	for i, c := range r.chunks {
		a, err := c.read(r.rows)
		if err != nil {
			return nil, fmt.Errorf("column %s, after %d rows: %w", c.column.name, r.done, err)
		}
		if i > 0 && a.Len() != n {
			return nil, fmt.Errorf("column %s has %d rows, those before %d", c.column.name, r.done+a.Len(), r.done+n)
		}
		n = a.Len()
		cols = append(cols, a)
	}
	r.done += n
	if n == 0 {
		if r.done != r.file.Rows() {
			return nil, fmt.Errorf("%d rows, the footer says %d", r.done, r.file.Rows())
		}
		return nil, nil
	}
	return array.NewRecord(r.schema, cols, int64(n)), nil
}
