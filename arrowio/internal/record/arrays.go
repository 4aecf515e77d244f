package record

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

// Bytes are the bytes of v.
func Bytes[T wire.Number](v []T) []byte {
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

// Bitmap is the validity of n rows; nil where none is null.
func Bitmap(n int, null func(int) bool) (valid []byte, nulls int) {
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

// Fixed is an array of fixed-width values; null may be nil.
func Fixed[T wire.Number](t arrow.DataType, v []T, null func(int) bool) arrow.Array {
	valid, nulls := Bitmap(len(v), null)
	return Array(t, len(v), nulls, nil, valid, Bytes(v))
}

// Array makes an array over buffers; a nil buffer is absent.
func Array(t arrow.DataType, n, nulls int, children []arrow.ArrayData, bufs ...[]byte) arrow.Array {
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

// NaNNull is a float32 array with NaN as null.
func NaNNull(v []float32) arrow.Array {
	return Fixed(arrow.PrimitiveTypes.Float32, v, func(i int) bool { return v[i] != v[i] })
}

// Strings is a utf8 array without nulls.
func Strings(v []string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(v, nil)
	return b.NewArray()
}

// Slab is a fixed_size_list<float32>[k] over an n×k slab.
func Slab(slab []float32, k int) arrow.Array {
	return List(Fixed(arrow.PrimitiveTypes.Float32, slab, nil), len(slab)/k, k, nil)
}

// List makes a fixed-size list over its elements, which it takes over.
func List(elements arrow.Array, n, k int, null func(int) bool) arrow.Array {
	defer elements.Release()
	valid, nulls := Bitmap(n, null)
	t := arrow.FixedSizeListOf(int32(k), elements.DataType())
	return Array(t, n, nulls, []arrow.ArrayData{elements.Data()}, valid)
}

// Features is an n×d slab as float32 or float16; rows that begin with NaN are null.
func Features(slab []float32, d int, half bool) arrow.Array {
	null := func(i int) bool { return slab[i*d] != slab[i*d] }
	if !half {
		return List(Fixed(arrow.PrimitiveTypes.Float32, slab, nil), len(slab)/d, d, null)
	}
	bits := make([]uint16, len(slab))
	for i, x := range slab {
		bits[i] = float16.New(x).Uint16()
	}
	return List(Fixed(arrow.FixedWidthTypes.Float16, bits, nil), len(slab)/d, d, null)
}

// Texts is a utf8 array; "" is null.
func Texts(v []string) arrow.Array {
	offsets, text := make([]int32, 1, len(v)+1), []byte(nil)
	for _, s := range v {
		text = append(text, s...)
		offsets = append(offsets, int32(len(text)))
	}
	valid, nulls := Bitmap(len(v), func(i int) bool { return v[i] == "" })
	return Array(arrow.BinaryTypes.String, len(v), nulls, nil, valid, Bytes(offsets), text)
}
