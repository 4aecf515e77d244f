package npy

import (
	"fmt"
	"os"
	"slices"
)

// Numbers is an array of numbers for tests and benchmarks: exactly one of F32, F64 and Int is not nil.
type Numbers struct {
	Shape []int
	F32   []float32 // of float16, too
	F64   []float64
	Int   []int32 // of any integer type
}

// Columns is the length of the second dimension, 1 where there is none.
func (a Numbers) Columns() int {
	if len(a.Shape) < 2 {
		return 1
	}
	return a.Shape[1]
}

// ReadFile reads a .npy file of numbers.
func ReadFile(name string) (Numbers, error) {
	a, err := OpenArray(name)
	if err != nil {
		return Numbers{}, err
	}
	return a.numbers()
}

// ReadArchive reads the arrays of a .npz file, all of numbers, by name: those of the names in only, all where there are
// none. A name that the file does not have is not in the result.
func ReadArchive(name string, only ...string) (map[string]Numbers, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	z, err := NewArchive(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := map[string]Numbers{}
	for _, array := range z.Names() {
		if len(only) > 0 && !slices.Contains(only, array) {
			continue
		}
		if out[array], err = z.numbers(array); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

func (a *Archive) numbers(name string) (Numbers, error) {
	e, err := a.Find(name)
	if err != nil {
		return Numbers{}, err
	}
	x, err := e.Read()
	if err != nil {
		return Numbers{}, err
	}
	return x.numbers()
}

func (a *Array) numbers() (Numbers, error) {
	n := Numbers{Shape: a.Shape}
	switch {
	case a.IsFloat() && a.Size == 8:
		n.F64 = a.Float64s()
	case a.IsFloat():
		n.F32 = a.Float32s()
	case a.IsInt():
		n.Int = make([]int32, a.Len())
		for i := range n.Int {
			v := a.Int(i)
			if n.Int[i] = int32(v); int64(n.Int[i]) != v {
				return n, fmt.Errorf("array %s: element %d is %d, allowed are 32 bits", a.Name, i, v)
			}
		}
	default:
		return n, fmt.Errorf("array %s holds no numbers", a)
	}
	return n, nil
}
