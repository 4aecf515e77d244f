package dataset

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/trainer/data"
)

var errNoArray = errors.New("no array")

// npzFile reads features, labels and times of an .npz file one array at a time.
type npzFile struct{ *npy.Archive }

// isNPZ reports whether FILE is an .npz whose features array is named, and returns both.
func isNPZ(file, array string) (path, name string, ok bool) {
	if i := strings.LastIndex(file, ".npz:"); i >= 0 {
		return file[:i+len(".npz")], file[i+len(".npz:"):], true
	}
	return file, array, array != "" && strings.HasSuffix(file, ".npz")
}

// npz adds the rows of a file whose features array is named; those without a label have -1. Features stay in the file
// where it holds them as they are (numpy.savez), else (numpy.savez_compressed) they are unpacked.
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
	z, err := npy.NewArchive(f, st.Size())
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
	if len(x.Shape) == 2 && x.Shape[0] == 0 {
		return fmt.Errorf("array %s has no rows", array)
	}
	if len(x.Shape) != 2 || x.Shape[1] < 1 || !x.IsFloat() {
		return fmt.Errorf("array %s of type %s has shape %v, allowed are floats of N×D", array, x.Dtype(), x.Shape)
	}
	if err := s.rowShape(path, x.Shape[1], 0); err != nil {
		return err
	}
	y, err := z.labels(array, labels, x.Shape[0])
	if err != nil {
		return err
	}
	s.places = append(s.places, sourceFile{path, "array " + array, "array " + y.Name, len(s.labels)})
	err = y.Ints(func(i int, v int64) error {
		if v < -1 || v >= math.MaxInt32 {
			return fmt.Errorf("array %s: label %d at row %d, allowed are 0..%d, and -1 where not known", y.Name, v, i,
				math.MaxInt32-1)
		}
		s.labels = append(s.labels, int32(v))
		return nil
	})
	if err != nil {
		return err
	}
	first, timed := len(s.labels)-x.Shape[0], len(s.times)
	if err := s.npzTimes(z, x.Shape[0]); err != nil {
		return err
	}
	s.Outside = append(s.Outside, s.Span.outside(first, s.times[timed:])...)
	return s.npzFeatures(x, f, path)
}

// npzTimes reads the array ts, where there is one; of integers the unit is not known. One that cannot be read is an
// error: rows would be divided by another order than that of their times, in silence.
func (s *Source) npzTimes(z npzFile, n int) error {
	ts, err := z.find("ts")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.untimed = true
		return nil
	case err != nil:
		return err
	case len(ts.Shape) != 1 || ts.Shape[0] != n || ts.Kind != 'M' && ts.Kind != 'i':
		return fmt.Errorf("array ts of type %s has shape %v, allowed are %d integers or datetime64", ts.Dtype(),
			ts.Shape, n)
	}
	unit, known := map[string]int64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[ts.Unit]
	if !known {
		unit, s.nanos = 1, false
	}
	return ts.Ints(func(i int, v int64) error {
		if limit := math.MaxInt64 / unit; v > limit || v < -limit {
			return fmt.Errorf("array ts: row %d is outside the years 1677 to 2262", i)
		}
		s.times = append(s.times, v*unit)
		return nil
	})
}

// npzFeatures adds the features of an array. All of its bytes are read once in either case: the file has a checksum.
func (s *Source) npzFeatures(x *npy.Entry, f *os.File, path string) error {
	r := data.Region{File: f, Name: path, Rows: x.Shape[0], Width: x.Size}
	at, err := x.Offset()
	if err != nil {
		return fmt.Errorf("array %s: %w", x.Name, err)
	}
	if at >= 0 {
		r.Offset = at
		s.regions = appendRegion(s.regions, r, s.d)
		return x.Each(func([]byte) error { return nil })
	}
	values := &spool{memory: s.memory, bound: s.Bound}
	s.open = append(s.open, values)
	r.File = values
	s.regions = appendRegion(s.regions, r, s.d)
	if err := x.Each(values.write); err != nil {
		return err
	}
	if want := int64(x.Shape[0]) * int64(x.Shape[1]*x.Size); values.size != want {
		return fmt.Errorf("array %s: %d bytes, want %d", x.Name, values.size, want)
	}
	return nil
}

// labels are the named array, else that named as the features with labels for features, else label, labels, y.
func (z npzFile) labels(array, name string, n int) (*npy.Entry, error) {
	names := []string{name}
	if name == "" {
		names = nil
		for _, other := range []string{strings.Replace(array, "features", "labels", 1), "label", "labels", "y"} {
			if other != array && !slices.Contains(names, other) {
				names = append(names, other)
			}
		}
	}
	for _, name := range names {
		y, err := z.find(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(y.Shape) != 1 || y.Shape[0] != n || y.Kind != 'i' && y.Kind != 'u' {
			return nil, fmt.Errorf("array %s of type %s has shape %v, allowed are %d integers", name, y.Dtype(),
				y.Shape, n)
		}
		return y, nil
	}
	if name != "" {
		_, err := z.need(name)
		return nil, fmt.Errorf("no labels: %w", err)
	}
	return nil, fmt.Errorf("no labels: none of the arrays %s; there are: %s; --labels names one",
		strings.Join(names, ", "), strings.Join(z.Names(), ", "))
}

func (z npzFile) need(name string) (*npy.Entry, error) {
	e, err := z.find(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w %q; there are: %s", errNoArray, name, strings.Join(z.Names(), ", "))
	}
	return e, err
}

// find reads the header of an array; the error is fs.ErrNotExist where there is none.
func (z npzFile) find(name string) (*npy.Entry, error) {
	e, err := z.Find(name)
	if err != nil {
		return nil, err
	}
	if e.Fortran {
		return nil, fmt.Errorf("array %s is stored by columns, save it in C order", name)
	}
	return e, e.Fits()
}
