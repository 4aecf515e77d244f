package arrowio

import (
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// The arrays here view the given slices without copying; they are garbage collected with them.

func bytesOf[T wire.Number](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

func buffer(b []byte) *memory.Buffer {
	if b == nil {
		return nil
	}
	return memory.NewBufferBytes(b)
}

// bitmap is the validity of n rows; nil where none is null.
func bitmap(n int, null func(int) bool) (valid []byte, nulls int) {
	if null == nil {
		return nil, 0
	}
	valid = make([]byte, bitutil.BytesForBits(int64(n)))
	for i := range n {
		if null(i) {
			nulls++
		} else {
			bitutil.SetBit(valid, i)
		}
	}
	if nulls == 0 {
		return nil, 0
	}
	return valid, nulls
}

// fixedArray is an array of fixed-width values; null may be nil.
func fixedArray[T wire.Number](t arrow.DataType, v []T, null func(int) bool) arrow.Array {
	valid, nulls := bitmap(len(v), null)
	return arrayOf(t, len(v), nulls, nil, valid, bytesOf(v))
}

// arrayOf makes an array over buffers; a nil buffer is absent.
func arrayOf(t arrow.DataType, n, nulls int, children []arrow.ArrayData, bufs ...[]byte) arrow.Array {
	buffers := make([]*memory.Buffer, len(bufs))
	for i, b := range bufs {
		if buffers[i] = buffer(b); b == nil && i > 0 {
			buffers[i] = memory.NewBufferBytes([]byte{})
		}
	}
	data := array.NewData(t, n, buffers, children, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// nanNull is a float32 array with NaN as null.
func nanNull(v []float32) arrow.Array {
	return fixedArray(arrow.PrimitiveTypes.Float32, v, func(i int) bool { return v[i] != v[i] })
}

func stringArray(v []string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(v, nil)
	return b.NewArray()
}

// slabArray is a fixed_size_list<float32>[k] over an n×k slab.
func slabArray(slab []float32, k int) arrow.Array {
	return listArray(fixedArray(arrow.PrimitiveTypes.Float32, slab, nil), len(slab)/k, k, nil)
}

// listArray makes a fixed-size list over its elements, which it takes over.
func listArray(elements arrow.Array, n, k int, null func(int) bool) arrow.Array {
	defer elements.Release()
	valid, nulls := bitmap(n, null)
	t := arrow.FixedSizeListOf(int32(k), elements.DataType())
	return arrayOf(t, n, nulls, []arrow.ArrayData{elements.Data()}, valid)
}

// featureArray is an n×d slab as float32 or float16; rows that begin with NaN are null.
func featureArray(slab []float32, d int, half bool) arrow.Array {
	null := func(i int) bool { return slab[i*d] != slab[i*d] }
	if !half {
		return listArray(fixedArray(arrow.PrimitiveTypes.Float32, slab, nil), len(slab)/d, d, null)
	}
	bits := make([]uint16, len(slab))
	for i, x := range slab {
		bits[i] = float16.New(x).Uint16()
	}
	return listArray(fixedArray(arrow.FixedWidthTypes.Float16, bits, nil), len(slab)/d, d, null)
}
