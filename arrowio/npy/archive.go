package npy

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Archive is an .npz file: arrays in the .npy format by name.
type Archive struct{ zip *zip.Reader }

// NewArchive reads the directory of an archive.
func NewArchive(r io.ReaderAt, size int64) (*Archive, error) {
	z, err := zip.NewReader(r, size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, errors.New("the zip archive has no end: the file is cut off, or damaged")
	}
	if err != nil {
		return nil, err
	}
	return &Archive{z}, nil
}

// Names are the names of the arrays by the order of the file.
func (a *Archive) Names() []string {
	var names []string
	for _, e := range a.zip.File {
		if name, ok := strings.CutSuffix(e.Name, ".npy"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Stranger says what an archive without arrays is.
func (a *Archive) Stranger() error {
	for _, f := range a.zip.File {
		switch {
		case f.Name == "[Content_Types].xml":
			return errors.New("the file is an Excel workbook: save it as CSV")
		case strings.HasSuffix(f.Name, "/data.pkl"):
			return errors.New("the file is a PyTorch file, which is a program: save the arrays with numpy.savez")
		}
	}
	return errors.New("a zip archive without arrays; numpy.savez makes one with them")
}

// Find reads the header of an array; the error is fs.ErrNotExist where there is none of that name.
func (a *Archive) Find(name string) (*Entry, error) {
	for _, e := range a.zip.File {
		if e.Name != name+".npy" {
			continue
		}
		r, err := e.Open()
		if err != nil {
			return nil, fmt.Errorf("array %s: %w", name, err)
		}
		defer r.Close()
		h, err := readHeader(name, r)
		if err != nil {
			return nil, err
		}
		return &Entry{*h, e}, nil
	}
	return nil, fs.ErrNotExist
}

// Entry is an array of an archive whose elements are still in the file.
type Entry struct {
	Header
	file *zip.File
}

// Fits compares the shape, which is the file's claim, with its bytes: deflate makes at most 1,032 bytes of one.
func (e *Entry) Fits() error {
	const mostInflated = 1032
	want := uint64(e.Count) * uint64(e.Size)
	if e.file.UncompressedSize64 != want+uint64(e.start) || want/mostInflated > e.file.CompressedSize64 {
		return fmt.Errorf("array %s: %d bytes for %d elements of %d bytes", e.Name,
			e.file.UncompressedSize64-uint64(e.start), e.Count, e.Size)
	}
	return nil
}

// Offset is where the elements begin in the file; -1 where they are compressed, or big endian.
func (e *Entry) Offset() (int64, error) {
	if e.file.Method != zip.Store || e.swap > 0 {
		return -1, nil
	}
	at, err := e.file.DataOffset()
	return at + int64(e.start), err
}

// Read reads the array.
func (e *Entry) Read() (*Array, error) {
	if err := e.Fits(); err != nil {
		return nil, err
	}
	a := &Array{Header: e.Header, data: make([]byte, 0, e.Count*e.Size)}
	err := e.Each(func(b []byte) error {
		a.data = append(a.data, b...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a, a.finish()
}

// Each calls f with runs of whole elements in the file's order, little endian. The file's checksum is compared at the
// end.
func (e *Entry) Each(f func(b []byte) error) error {
	r, err := e.file.Open()
	if err != nil {
		return fmt.Errorf("array %s: %w", e.Name, err)
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, int64(e.start)); err != nil {
		return fmt.Errorf("array %s: %w", e.Name, err)
	}
	const run = 1 << 16
	buf := make([]byte, max(run/e.Size, 1)*e.Size)
	for left := e.Count * e.Size; ; {
		n, err := io.ReadFull(r, buf)
		if left -= n; left < 0 {
			return fmt.Errorf("array %s: more than %d elements of %d bytes", e.Name, e.Count, e.Size)
		}
		if n%e.Size != 0 {
			return fmt.Errorf("array %s: %w", e.Name, io.ErrUnexpectedEOF)
		}
		e.toLittle(buf[:n])
		if ferr := f(buf[:n]); ferr != nil {
			return ferr
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("array %s: %w", e.Name, err)
		}
	}
}

// Ints calls f with every element of an array of integers, booleans or times.
func (e *Entry) Ints(f func(i int, v int64) error) error {
	at := 0
	err := e.Each(func(b []byte) error {
		for ; len(b) > 0; b = b[e.Size:] {
			if err := f(at, integer(b[:e.Size], e.Kind)); err != nil {
				return err
			}
			at++
		}
		return nil
	})
	if err == nil && at != e.Count {
		err = fmt.Errorf("array %s: %d values, want %d", e.Name, at, e.Count)
	}
	return err
}

// integer is a little-endian number of at most 8 bytes; a uint64 above the int64 range becomes negative.
func integer(b []byte, kind byte) int64 {
	var raw [8]byte
	copy(raw[:], b)
	u := binary.LittleEndian.Uint64(raw[:])
	if shift := 64 - 8*len(b); shift > 0 && (kind == 'i' || kind == 'M') {
		return int64(u<<shift) >> shift
	}
	return int64(u)
}
