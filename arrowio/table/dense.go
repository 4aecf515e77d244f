package table

import (
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/plumbline/plumbline/arrowio/half"
)

// appendDense appends the rows of a list column in one piece, where all are there and of k values. It reports whether
// they were; if not, nothing is appended.
func appendDense[T float](out *[]T, c arrow.Array, l array.ListLike, k int) bool {
	n := c.Len()
	if n == 0 || k == 0 || c.NullN() > 0 || l.ListValues().NullN() > 0 {
		return false
	}
	first, _ := l.ValueOffsets(0)
	next := first
	for i := range n {
		from, to := l.ValueOffsets(i)
		if from != next || int(to-from) != k {
			return false
		}
		next = to
	}
	appendValues(out, l.ListValues(), int(first), int(next))
	return true
}

// appendValues appends elements from..to of a float array, by a copy where the types are the same.
func appendValues[T float](out *[]T, c arrow.Array, from, to int) {
	switch c := c.(type) {
	case *array.Float32:
		if o, ok := any(out).(*[]float32); ok {
			*o = append(*o, c.Float32Values()[from:to]...)
			return
		}
	case *array.Float64:
		if o, ok := any(out).(*[]float64); ok {
			*o = append(*o, c.Float64Values()[from:to]...)
			return
		}
	case *array.Float16:
		for _, x := range c.Values()[from:to] {
			*out = append(*out, T(half.Value(x.Uint16())))
		}
		return
	}
	at := numberAt(c)
	for i := from; i < to; i++ {
		*out = append(*out, T(at(i)))
	}
}

// appendDenseInts appends a label column without nulls. It reports whether it did: false too where a label is
// outside int32.
func appendDenseInts(out *[]int32, c arrow.Array) bool {
	if c.NullN() > 0 {
		return false
	}
	switch c := c.(type) {
	case *array.Int32:
		*out = append(*out, c.Int32Values()...)
		return true
	case *array.Int64:
		return appendNarrow(out, c.Int64Values())
	case *array.Uint8:
		return appendNarrow(out, c.Uint8Values())
	case *array.Int16:
		return appendNarrow(out, c.Int16Values())
	}
	return false
}

func appendNarrow[V int16 | int64 | uint8](out *[]int32, v []V) bool {
	for _, x := range v {
		if int64(x) < math.MinInt32 || int64(x) > math.MaxInt32 {
			return false
		}
	}
	for _, x := range v {
		*out = append(*out, int32(x))
	}
	return true
}
