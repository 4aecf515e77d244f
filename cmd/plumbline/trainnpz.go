package main

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/trainer/data"
)

// npzFile reads features, labels and times of an .npz file one array at a time: float16 features stay float16, so a
// file takes as much memory as its features do.
type npzFile struct {
	zip *zip.ReadCloser
}

// npzArray is the header of an array and where its values come from.
type npzArray struct {
	name  string
	kind  string // f2, f4, f8, u1, i8, M8[ns], …
	shape []int
	size  int // bytes of a value
	open  func() (io.ReadCloser, error)
	skip  int64 // bytes of the header
}

// isNPZ reports whether FILE is an .npz whose features array is named, and returns both.
func (f inputFlags) isNPZ(file string) (path, array string, ok bool) {
	if i := strings.LastIndex(file, ".npz:"); i >= 0 {
		return file[:i+len(".npz")], file[i+len(".npz:"):], true
	}
	return file, f.array, f.array != "" && strings.HasSuffix(file, ".npz")
}

// readNPZ reads a file whose features array is named. Rows keep their places; those without a label have -1.
func (f inputFlags) readNPZ(file, array string) (*data.Set, error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	defer z.Close()
	s, err := npzFile{z}.rows(array, f.labels)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return s, nil
}

func (z npzFile) rows(array, labels string) (*data.Set, error) {
	x, err := z.need(array)
	if err != nil {
		return nil, err
	}
	if len(x.shape) != 2 || x.shape[1] < 1 || x.shape[0] < 1 || x.kind[0] != 'f' {
		return nil, fmt.Errorf("array %s of type %s has shape %v, allowed are floats of N×D", array, x.kind, x.shape)
	}
	s := &data.Set{D: x.shape[1]}
	if s.X, s.Half, err = x.floats(); err != nil {
		return nil, err
	}
	y, err := z.labels(array, labels, x.shape[0])
	if err != nil {
		return nil, err
	}
	err = y.ints(func(i int, v int64) error {
		if v < -1 || v > math.MaxInt32 {
			return fmt.Errorf("array %s: label %d at row %d, allowed are -1 and more", y.name, v, i)
		}
		s.Y = append(s.Y, int32(v))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if ts, err := z.find("ts"); err == nil && len(ts.shape) == 1 && ts.shape[0] == x.shape[0] && (ts.kind[0] == 'M' || ts.kind[0] == 'i') {
		return s, ts.ints(func(_ int, v int64) error { s.Time = append(s.Time, v); return nil }) // of any unit
	}
	return s, nil
}

// labels are the named array, else that named as the features with labels for features, else label, labels, y.
func (z npzFile) labels(array, name string, n int) (*npzArray, error) {
	names := []string{name}
	if name == "" {
		names = []string{strings.Replace(array, "features", "labels", 1), "label", "labels", "y"}
	}
	for _, name := range names {
		if name == array {
			continue
		}
		y, err := z.find(name)
		if err != nil {
			continue
		}
		if len(y.shape) != 1 || y.shape[0] != n || y.kind[0] != 'i' && y.kind[0] != 'u' {
			return nil, fmt.Errorf("array %s of type %s has shape %v, allowed are %d integers", name, y.kind, y.shape, n)
		}
		return y, nil
	}
	if name != "" {
		_, err := z.need(name)
		return nil, err
	}
	return nil, fmt.Errorf("no labels: none of the arrays %s; --labels names one", strings.Join(names, ", "))
}

func (z npzFile) need(name string) (*npzArray, error) {
	a, err := z.find(name)
	if err == nil || !os.IsNotExist(err) {
		return a, err
	}
	var have []string
	for _, e := range z.zip.File {
		have = append(have, strings.TrimSuffix(e.Name, ".npy"))
	}
	return nil, fmt.Errorf("no array %q; there are: %s", name, strings.Join(have, ", "))
}

var npyHeader = regexp.MustCompile(`^\{'descr': '[<|]([a-zA-Z]\d+(?:\[\w+\])?)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), *\}\s*$`)

// find reads the header of an array; the error is os.ErrNotExist where there is none.
func (z npzFile) find(name string) (*npzArray, error) {
	for _, e := range z.zip.File {
		if e.Name != name+".npy" {
			continue
		}
		a, err := newNPZArray(name, e)
		if err != nil {
			return nil, fmt.Errorf("array %s: %w", name, err)
		}
		return a, nil
	}
	return nil, os.ErrNotExist
}

func newNPZArray(name string, e *zip.File) (*npzArray, error) {
	r, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	lead := make([]byte, 10)
	if _, err := io.ReadFull(r, lead); err != nil || string(lead[:6]) != "\x93NUMPY" {
		return nil, fmt.Errorf("no npy header")
	}
	n := int(binary.LittleEndian.Uint16(lead[8:]))
	if lead[6] != 1 { // a longer length
		more := make([]byte, 2)
		if _, err := io.ReadFull(r, more); err != nil {
			return nil, err
		}
		n, lead = n|int(binary.LittleEndian.Uint16(more))<<16, append(lead, more...)
	}
	const longest = 1 << 16
	if n > longest {
		return nil, fmt.Errorf("header of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	m := npyHeader.FindSubmatch(text)
	if m == nil || string(m[2]) == "True" {
		return nil, fmt.Errorf("header %q, allowed are little-endian numbers by rows", text)
	}
	a := &npzArray{name: name, kind: string(m[1]), open: e.Open, skip: int64(len(lead) + n)}
	return a, a.setShape(string(m[3]), e)
}

// setShape takes the shape, where the bytes bear it out: deflate makes at most 1,032 bytes of one.
func (a *npzArray) setShape(text string, e *zip.File) error {
	digits, _, _ := strings.Cut(a.kind[1:], "[")
	var err error
	if a.size, err = strconv.Atoi(digits); err != nil || a.size < 1 || a.size > 8 {
		return fmt.Errorf("values of type %s", a.kind)
	}
	count := uint64(1)
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n > math.MaxInt32 || count*uint64(n) > 1<<40 {
			return fmt.Errorf("shape (%s)", text)
		}
		a.shape, count = append(a.shape, n), count*uint64(n)
	}
	const mostInflated = 1032
	if want := count * uint64(a.size); e.UncompressedSize64 != want+uint64(a.skip) || want/mostInflated > e.CompressedSize64 {
		return fmt.Errorf("%d bytes for shape (%s) of %d-byte values", e.UncompressedSize64-uint64(a.skip), text, a.size)
	}
	return nil
}

// each calls f with runs of whole values, in order.
func (a *npzArray) each(f func(b []byte) error) error {
	r, err := a.open()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, a.skip); err != nil {
		return err
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := io.ReadFull(r, buf)
		if n%a.size != 0 {
			return fmt.Errorf("array %s: %w", a.name, io.ErrUnexpectedEOF)
		}
		if ferr := f(buf[:n]); ferr != nil {
			return ferr
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("array %s: %w", a.name, err)
		}
	}
}

// floats are the values, as float16 where they are that, else as float32.
func (a *npzArray) floats() (x []float32, half []uint16, err error) {
	count := 1
	for _, n := range a.shape {
		count *= n
	}
	switch a.kind {
	case "f2":
		half = make([]uint16, 0, count)
		err = a.each(func(b []byte) error {
			for ; len(b) > 0; b = b[2:] {
				half = append(half, binary.LittleEndian.Uint16(b))
			}
			return nil
		})
	case "f4":
		x = make([]float32, 0, count)
		err = a.each(func(b []byte) error {
			for ; len(b) > 0; b = b[4:] {
				x = append(x, math.Float32frombits(binary.LittleEndian.Uint32(b)))
			}
			return nil
		})
	case "f8":
		x = make([]float32, 0, count)
		err = a.each(func(b []byte) error {
			for ; len(b) > 0; b = b[8:] {
				x = append(x, float32(math.Float64frombits(binary.LittleEndian.Uint64(b))))
			}
			return nil
		})
	default:
		err = fmt.Errorf("array %s of type %s, allowed are f2, f4, f8", a.name, a.kind)
	}
	if err == nil && len(x)+len(half) != count {
		err = fmt.Errorf("array %s: %d values, want %d", a.name, len(x)+len(half), count)
	}
	return x, half, err
}

// ints calls f with every value.
func (a *npzArray) ints(f func(i int, v int64) error) error {
	at := 0
	err := a.each(func(b []byte) error {
		for ; len(b) > 0; b = b[a.size:] {
			var raw [8]byte
			copy(raw[:], b[:a.size])
			v := int64(binary.LittleEndian.Uint64(raw[:]))
			if shift := 64 - 8*a.size; a.kind[0] != 'u' {
				v = v << shift >> shift // the sign
			}
			if err := f(at, v); err != nil {
				return err
			}
			at++
		}
		return nil
	})
	if err == nil && at != a.shape[0] {
		err = fmt.Errorf("array %s: %d values, want %d", a.name, at, a.shape[0])
	}
	return err
}
