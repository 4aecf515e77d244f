package wire

import "unsafe"

// Number is a fixed-width element of an Arrow buffer.
type Number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Nanoseconds by Arrow time unit.
var Nanoseconds = [4]int64{1e9, 1e6, 1e3, 1}

// Values views the first n elements of b. It copies where b is not aligned for T, which the bytes of a
// Kafka record need not be. Assumes a little-endian machine, as all that Go's cloud targets are.
func Values[T Number](name string, b []byte, n int) ([]T, error) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if n < 0 || n > len(b)/size {
		return nil, Errorf(Shape, "column %.64q: buffer of %d bytes for %d values of %d", name, len(b), n, size)
	}
	if n == 0 {
		return nil, nil
	}
	if uintptr(unsafe.Pointer(&b[0]))%unsafe.Alignof(zero) == 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), nil
	}
	out := make([]T, n)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), n*size), b)
	return out, nil
}

// Offsets returns the n+1 offsets of a variable-size column, checked to be monotone and within size.
// The 32-bit ones are widened into scratch, which is returned for reuse.
func Offsets(c *Column, size int, scratch []int64) (offsets, reuse []int64, err error) {
	name := c.Field.Name
	if c.N == 0 {
		return append(scratch[:0], 0), scratch, nil
	}
	switch c.Field.Type {
	case LargeUtf8, LargeBinary, LargeList:
		offsets, err = Values[int64](name, c.Data, c.N+1)
	default:
		var narrow []int32
		if narrow, err = Values[int32](name, c.Data, c.N+1); err == nil {
			scratch = scratch[:0]
			for _, o := range narrow {
				scratch = append(scratch, int64(o))
			}
			offsets = scratch
		}
	}
	if err != nil {
		return nil, scratch, err
	}
	last := int64(0)
	for i, o := range offsets {
		if o < last {
			return nil, scratch, Errorf(Shape, "column %.64q: offset %d at row %d after %d", name, o, i, last)
		}
		last = o
	}
	if last > int64(size) {
		return nil, scratch, Errorf(Shape, "column %.64q: offset %d in %d values", name, last, size)
	}
	return offsets, scratch, nil
}
