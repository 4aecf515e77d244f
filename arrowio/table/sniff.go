package table

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// knownFormats is what a message about another format says.
const knownFormats = "known are CSV, JSON and JSON lines (also .gz), Parquet, Arrow and Feather, npz and npy"

// strangers are formats that people have and that are not read, by their first bytes.
var strangers = []struct{ magic, what string }{
	{"\x80\x02", "a Python pickle, which is a program; save arrays with numpy.savez, or a DataFrame with to_parquet"},
	{"\x80\x03", "a Python pickle, which is a program; save arrays with numpy.savez, or a DataFrame with to_parquet"},
	{"\x80\x04", "a Python pickle, which is a program; save arrays with numpy.savez, or a DataFrame with to_parquet"},
	{"\x80\x05", "a Python pickle, which is a program; save arrays with numpy.savez, or a DataFrame with to_parquet"},
	{"FEA1", "Feather version 1; pyarrow.feather.write_feather writes version 2"},
	{"ORC", "ORC; save it as Parquet"},
	{"Obj\x01", "Avro; save it as Parquet"},
	{"\x89HDF", "HDF5; save arrays with numpy.savez, or a DataFrame with to_parquet"},
	{"SQLite format 3", "an SQLite database; write the query's result as CSV"},
	{"\xff\xfe", "text in UTF-16; save it as UTF-8"},
	{"\xfe\xff", "text in UTF-16; save it as UTF-8"},
	{"\x28\xb5\x2f\xfd", "Zstandard; unpack it first"},
	{"BZh", "bzip2; unpack it first"},
	{"\xfd7zXZ", "xz; unpack it first"},
	{"\xd0\xcf\x11\xe0", "an old Excel workbook; save it as CSV"},
	{"%PDF", "a PDF"},
}

// readTable reads a file by its first bytes.
func readTable(f *os.File, head []byte, o Options) (*Table, error) {
	has := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case has("PK"):
		return readNPZ(f, o)
	case has("\x93NUMPY"):
		return readNPY(f, o)
	case o.Array != "":
		return nil, fmt.Errorf("array names (%q) are for .npz files; --logits or --prob names a column", o.Array)
	case has("ARROW1"):
		return readArrowFile(f, o)
	case has("\xff\xff\xff\xff"):
		return readArrowStream(f, o)
	case has("PAR1"):
		return readParquet(f, o)
	}
	open := func() (io.Reader, error) {
		_, err := f.Seek(0, io.SeekStart)
		return f, err
	}
	if has("\x1f\x8b") {
		open = func() (io.Reader, error) {
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return nil, err
			}
			return unzip(f)
		}
		r, err := open()
		if err != nil {
			return nil, err
		}
		n, _ := io.ReadFull(r, head[:cap(head)])
		head = head[:n]
	}
	return readText(open, head, o)
}

// unzipped says in words what is wrong with compressed text.
type unzipped struct{ *gzip.Reader }

func unzip(r io.Reader) (io.Reader, error) {
	z, err := gzip.NewReader(r)
	return unzipped{z}, err
}

func (u unzipped) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the gzip data have no end: the file is cut off")
	case err != nil && !errors.Is(err, io.EOF):
		err = fmt.Errorf("the gzip data are damaged: %w", err)
	}
	return n, err
}

// readText reads JSON or CSV.
func readText(open func() (io.Reader, error), head []byte, o Options) (*Table, error) {
	if err := plainText(head); err != nil {
		return nil, err
	}
	start := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	if len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		return readJSON(func() (io.Reader, error) {
			in, err := open()
			if err != nil {
				return nil, err
			}
			b := bufio.NewReaderSize(in, 1<<20)
			if mark, _ := b.Peek(3); string(mark) == "\ufeff" {
				_, err = b.Discard(len(mark))
			}
			return b, err
		}, o)
	}
	in, err := open()
	if err != nil {
		return nil, err
	}
	return readCSV(in, o)
}

// plainText refuses what is no text; nothing of it is printed but the hexadecimal first bytes.
func plainText(head []byte) error {
	for _, s := range strangers {
		if bytes.HasPrefix(head, []byte(s.magic)) {
			return fmt.Errorf("the file is %s; %s", s.what, knownFormats)
		}
	}
	binary := bytes.IndexFunc(head, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n\f\x1b", r) })
	if binary < 0 && invalid(head) < 4 {
		return nil
	}
	if binary < 0 {
		return errors.New("the text is not UTF-8, but perhaps Windows-1252, as Excel saves CSV: save it as CSV UTF-8")
	}
	return fmt.Errorf("a format that is not known (it begins with the bytes % x); %s", head[:min(len(head), 8)],
		knownFormats)
}

// invalid counts the bytes that are not UTF-8, but for a character that the end cuts.
func invalid(b []byte) int {
	n := 0
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 && utf8.FullRune(b) {
			n++
		}
		b = b[size:]
	}
	return n
}
