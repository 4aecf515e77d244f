// Package npy reads the few NumPy arrays that the benchmarks exchange: little-endian float32, float64, uint8, int32
// and int64 in row-major order, alone (.npy) or in an archive (.npz). Everything else is an error.
package npy

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Array is a NumPy array: exactly one of F32, F64 and Int is not nil.
type Array struct {
	Shape []int
	F32   []float32
	F64   []float64
	Int   []int32 // of any integer type
}

// Columns is the length of the second dimension, 1 where there is none.
func (a Array) Columns() int {
	if len(a.Shape) < 2 {
		return 1
	}
	return a.Shape[1]
}

// magic is the prefix of version 1 of the format; the length of the header follows in two bytes.
const magic = "\x93NUMPY\x01\x00"

var header = regexp.MustCompile(`'descr': '[<|]([fiu]\d)', 'fortran_order': False, 'shape': \(([\d, ]*)\)`)

// ReadFile reads a .npy file.
func ReadFile(name string) (Array, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return Array{}, err
	}
	return parse(name, b)
}

// ReadArchive reads the arrays of a .npz file, by name: those of the names in only, all where there are none.
func ReadArchive(name string, only ...string) (map[string]Array, error) {
	z, err := zip.OpenReader(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = z.Close() }()
	arrays := map[string]Array{}
	for _, f := range z.File {
		if len(only) > 0 && !slices.Contains(only, strings.TrimSuffix(path.Base(f.Name), ".npy")) {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, f.Name, err)
		}
		a, err := parse(name+": "+f.Name, b)
		if err != nil {
			return nil, err
		}
		arrays[strings.TrimSuffix(path.Base(f.Name), ".npy")] = a
	}
	return arrays, nil
}

func parse(name string, b []byte) (Array, error) {
	if len(b) < len(magic)+2 || string(b[:len(magic)]) != magic {
		return Array{}, fmt.Errorf("%s: not a NumPy array of version 1", name)
	}
	end := len(magic) + 2 + int(binary.LittleEndian.Uint16(b[len(magic):]))
	if end > len(b) {
		return Array{}, fmt.Errorf("%s: the header ends at byte %d of %d", name, end, len(b))
	}
	m := header.FindSubmatch(b[:end])
	if m == nil {
		return Array{}, fmt.Errorf("%s: header %q, allowed are row-major arrays of numbers", name, b[len(magic)+2:end])
	}
	a, n := Array{}, 1
	for _, s := range strings.FieldsFunc(string(m[2]), func(r rune) bool { return r == ',' || r == ' ' }) {
		d, err := strconv.Atoi(s)
		if err != nil {
			return Array{}, fmt.Errorf("%s: shape %s", name, m[2])
		}
		a.Shape, n = append(a.Shape, d), n*d
	}
	if err := a.fill(string(m[1]), n, b[end:]); err != nil {
		return Array{}, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

func (a *Array) fill(kind string, n int, b []byte) error {
	if size := int(kind[1] - '0'); len(b) != n*size {
		return fmt.Errorf("%d bytes for %d elements of %d", len(b), n, size)
	}
	le := binary.LittleEndian
	switch kind {
	case "f4":
		a.F32 = make([]float32, n)
		for i := range a.F32 {
			a.F32[i] = math.Float32frombits(le.Uint32(b[4*i:]))
		}
		return nil
	case "f8":
		a.F64 = make([]float64, n)
		for i := range a.F64 {
			a.F64[i] = math.Float64frombits(le.Uint64(b[8*i:]))
		}
		return nil
	}
	a.Int = make([]int32, n)
	for i := range a.Int {
		switch kind {
		case "u1":
			a.Int[i] = int32(b[i])
		case "i4":
			a.Int[i] = int32(le.Uint32(b[4*i:]))
		case "i8":
			v := int64(le.Uint64(b[8*i:]))
			if a.Int[i] = int32(v); int64(a.Int[i]) != v {
				return fmt.Errorf("element %d: %d, allowed are 32 bits", i, v)
			}
		default:
			return fmt.Errorf("elements of type %s, allowed are f4, f8, u1, i4 and i8", kind)
		}
	}
	return nil
}
