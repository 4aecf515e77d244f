package binenc

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// AppendUvarint appends v in 1 to 10 bytes, 7 bits each, low bits first.
func AppendUvarint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

// AppendVarint appends v zigzag-coded, (v << 1) ^ (v >> 63), as an unsigned varint.
func AppendVarint(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

// AppendFixed32 appends v in 4 bytes, little endian.
func AppendFixed32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }

// AppendFixed64 appends v in 8 bytes, little endian.
func AppendFixed64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

// AppendFloat64 appends the IEEE 754 bits of v, so NaN payloads and the sign of zero survive.
func AppendFloat64(b []byte, v float64) []byte { return AppendFixed64(b, math.Float64bits(v)) }

// AppendFloat64s appends each number as AppendFloat64 does.
func AppendFloat64s(b []byte, v ...float64) []byte {
	for _, x := range v {
		b = AppendFloat64(b, x)
	}
	return b
}

// AppendFloats appends the bits of each number as AppendFixed32 does, all at once: machines are little endian.
func AppendFloats(b []byte, v []float32) []byte { return append(b, bytesOf(v)...) }

// bytesOf views numbers as bytes.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// AppendBytes appends the length of v as a varint, then v.
func AppendBytes(b, v []byte) []byte { return append(AppendUvarint(b, uint64(len(v))), v...) }

// AppendString appends the length of v in bytes as a varint, then v.
func AppendString(b []byte, v string) []byte { return append(AppendUvarint(b, uint64(len(v))), v...) }

// AppendBlock appends what f appends, preceded by its length as a varint. It returns f's error, and b unchanged then.
// The block is written in place, without a buffer of its own, and moved where its length takes another number of bytes
// than most do: blocks within blocks would be copied once for each level.
func AppendBlock(b []byte, f func([]byte) ([]byte, error)) ([]byte, error) {
	const most = 2 // bytes of a length from 128 to 16383
	var length [binary.MaxVarintLen64]byte
	start := len(b)
	out, err := f(append(b, length[:most]...))
	if err != nil {
		return b, err
	}
	body := out[start+most:]
	n := binary.PutUvarint(length[:], uint64(len(body)))
	if n > most {
		out = append(out, length[:n-most]...) // room
	}
	if n != most {
		copy(out[start+n:], body)
	}
	copy(out[start:], length[:n])
	return out[:start+n+len(body)], nil
}

// Flags packs up to eight truth values, the first in the lowest bit.
func Flags(flags ...bool) byte {
	var b byte
	for i, f := range flags {
		if f {
			b |= 1 << i
		}
	}
	return b
}
