package dataset

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/trainer/data"
)

var errNoArray = errors.New("no array")

// npzFile reads features, labels and times of an .npz file one array at a time.
type npzFile struct {
	zip *zip.Reader
}

// npzArray is the header of an array and where its values come from.
type npzArray struct {
	name  string
	kind  string // f2, f4, f8, u1, i8, M8[ns], …
	shape []int
	size  int // bytes of a value
	open  func() (io.ReadCloser, error)
	skip  int64 // bytes of the header
	at    int64 // where it begins in the file; -1 = it is compressed
}

// isNPZ reports whether FILE is an .npz whose features array is named, and returns both.
func isNPZ(file, array string) (path, name string, ok bool) {
	if i := strings.LastIndex(file, ".npz:"); i >= 0 {
		return file[:i+len(".npz")], file[i+len(".npz:"):], true
	}
	return file, array, array != "" && strings.HasSuffix(file, ".npz")
}

// npz adds the rows of a file whose features array is named; those without a label have -1. Features stay in the file where
// it holds them as they are (numpy.savez), else (numpy.savez_compressed) they are unpacked.
func (s *Source) npz(path, array, labels string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	s.open = append(s.open, f)
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	z, err := zip.NewReader(f, st.Size())
	if errors.Is(err, zip.ErrFormat) {
		err = fmt.Errorf("no .npz file, or not complete: %w", err)
	}
	if err == nil {
		err = s.arrays(npzFile{z}, f, path, array, labels)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	s.Used.Files++
	return nil
}

func (s *Source) arrays(z npzFile, f *os.File, path, array, labels string) error {
	x, err := z.need(array)
	if errors.Is(err, errNoArray) {
		err = fmt.Errorf("no features: %w; FILE.npz:array or --array names one", err)
	}
	if err != nil {
		return err
	}
	if len(x.shape) == 2 && x.shape[0] == 0 {
		return fmt.Errorf("array %s has no rows", array)
	}
	if len(x.shape) != 2 || x.shape[1] < 1 || x.kind[0] != 'f' || x.size == 1 {
		return fmt.Errorf("array %s of type %s has shape %v, allowed are floats of N×D", array, x.kind, x.shape)
	}
	if err := s.rowShape(path, x.shape[1], 0); err != nil {
		return err
	}
	y, err := z.labels(array, labels, x.shape[0])
	if err != nil {
		return err
	}
	s.places = append(s.places, sourceFile{path, "array " + array, "array " + y.name, len(s.labels)})
	err = y.ints(func(i int, v int64) error {
		if v < -1 || v >= math.MaxInt32 {
			return fmt.Errorf("array %s: label %d at row %d, allowed are 0..%d, and -1 where not known", y.name, v, i, math.MaxInt32-1)
		}
		s.labels = append(s.labels, int32(v))
		return nil
	})
	if err != nil {
		return err
	}
	first, timed := len(s.labels)-x.shape[0], len(s.times)
	if err := s.npzTimes(z, x.shape[0]); err != nil {
		return err
	}
	s.spanned(first, s.times[timed:])
	return s.npzFeatures(x, f, path)
}

// npzTimes reads the array ts, where there is one; of integers the unit is not known. One that cannot be read is an error:
// rows would be divided by another order than that of their times, in silence.
func (s *Source) npzTimes(z npzFile, n int) error {
	ts, err := z.find("ts")
	switch {
	case errors.Is(err, os.ErrNotExist):
		s.untimed = true
		return nil
	case err != nil:
		return err
	case len(ts.shape) != 1 || ts.shape[0] != n || ts.kind[0] != 'M' && ts.kind[0] != 'i':
		return fmt.Errorf("array ts of type %s has shape %v, allowed are %d integers or datetime64", ts.kind, ts.shape, n)
	}
	unit, known := map[string]int64{"M8[ns]": 1, "M8[us]": 1e3, "M8[ms]": 1e6, "M8[s]": 1e9}[ts.kind]
	if !known {
		unit, s.nanos = 1, false
	}
	return ts.ints(func(i int, v int64) error {
		if limit := math.MaxInt64 / unit; v > limit || v < -limit {
			return fmt.Errorf("array ts: row %d is outside the years 1677 to 2262", i)
		}
		s.times = append(s.times, v*unit)
		return nil
	})
}

// npzFeatures adds the features of an array. All of its bytes are read once in either case: the file has a checksum.
func (s *Source) npzFeatures(x *npzArray, f *os.File, path string) error {
	r := data.Region{File: f, Name: path, Rows: x.shape[0], Width: x.size}
	if x.at >= 0 {
		r.Offset = x.at + x.skip
		s.regions = appendRegion(s.regions, r, s.d)
		return x.each(func([]byte) error { return nil })
	}
	values := &spool{memory: s.memory, bound: s.Bound}
	s.open = append(s.open, values)
	r.File = values
	s.regions = appendRegion(s.regions, r, s.d)
	if err := x.each(values.write); err != nil {
		return err
	}
	if want := int64(x.shape[0]) * int64(x.shape[1]*x.size); values.size != want {
		return fmt.Errorf("array %s: %d bytes, want %d", x.name, values.size, want)
	}
	return nil
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
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(y.shape) != 1 || y.shape[0] != n || y.kind[0] != 'i' && y.kind[0] != 'u' {
			return nil, fmt.Errorf("array %s of type %s has shape %v, allowed are %d integers", name, y.kind, y.shape, n)
		}
		return y, nil
	}
	if name != "" {
		_, err := z.need(name)
		return nil, fmt.Errorf("no labels: %w", err)
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
	return nil, fmt.Errorf("%w %q; there are: %s", errNoArray, name, strings.Join(have, ", "))
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
	a := &npzArray{name: name, kind: string(m[1]), open: e.Open, skip: int64(len(lead) + n), at: -1}
	if e.Method == zip.Store {
		if a.at, err = e.DataOffset(); err != nil {
			return nil, err
		}
	}
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
