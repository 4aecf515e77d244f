package binenc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// ErrCorrupt is wrapped by every error of a Reader: the bytes are not an encoding of anything.
var ErrCorrupt = errors.New("corrupt encoding")

// Reader reads primitives from a byte slice. The first error sticks: later reads return zero values, so a
// decoder may check Err once before it uses what it read. The zero value is a reader of no bytes.
type Reader struct {
	b   []byte
	off int
	err error
}

// NewReader returns a reader of b, which must not change while it is read.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first error, which names the offset.
func (r *Reader) Err() error { return r.err }

// Offset is the number of bytes read so far.
func (r *Reader) Offset() int { return r.off }

// Len is the number of bytes that remain; 0 after an error.
func (r *Reader) Len() int {
	if r.err != nil {
		return 0
	}
	return len(r.b) - r.off
}

// Failf records an error at the current offset, unless there is one already.
func (r *Reader) Failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("offset %d: %s: %w", r.off, fmt.Sprintf(format, args...), ErrCorrupt)
	}
}

// Close returns the first error, or one if bytes remain.
func (r *Reader) Close() error {
	if n := r.Len(); n > 0 {
		r.Failf("%d bytes left over", n)
	}
	return r.err
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// Version reads the version byte and fails unless it is want.
func (r *Reader) Version(want byte) {
	if v := r.Byte(); r.err == nil && v != want {
		r.Failf("version %d, this build reads %d", v, want)
	}
}

// Uvarint reads an unsigned varint; a non-minimal one is an error.
func (r *Reader) Uvarint() uint64 {
	if r.err == nil && r.off < len(r.b) && r.b[r.off] < 0x80 { // most are
		r.off++
		return uint64(r.b[r.off-1])
	}
	return r.uvarint()
}

func (r *Reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	if len(r.b)-r.off >= 8 {
		if v, n := uvarint8(binary.LittleEndian.Uint64(r.b[r.off:])); n > 0 {
			r.off += n
			return v
		}
	}
	v, n := binary.Uvarint(r.b[r.off:])
	if n <= 0 {
		r.Failf("varint truncated or longer than 64 bits")
		return 0
	}
	if n > 1 && r.b[r.off+n-1] == 0 {
		r.Failf("varint not minimal")
		return 0
	}
	r.off += n
	return v
}

// uvarint8 reads a minimal varint of 1 to n = 8 bytes from eight bytes at once; n is 0 where there is none.
func uvarint8(b uint64) (v uint64, n int) {
	last := ^b & 0x8080808080808080
	if last == 0 {
		return 0, 0
	}
	n = bits.TrailingZeros64(last)/8 + 1
	v = b & (last ^ (last - 1)) & 0x7f7f7f7f7f7f7f7f
	v = v&0x007f007f007f007f | v>>1&0x3f803f803f803f80
	v = v&0x00003fff00003fff | v>>2&0x0fffc0000fffc000
	v = v&0x000000000fffffff | v>>4&0x00fffffff0000000
	if n > 1 && v>>(7*(n-1)) == 0 {
		return 0, 0
	}
	return v, n
}

// Varint reads a zigzag-coded varint.
func (r *Reader) Varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// Int reads an unsigned varint that must lie in [lo, hi]; it returns lo after an error. lo must not be negative.
func (r *Reader) Int(name string, lo, hi int64) int64 {
	v := r.Uvarint()
	if r.err != nil {
		return lo
	}
	if v < uint64(lo) || v > uint64(hi) {
		r.Failf("%s is %d, allowed %d to %d", name, v, lo, hi)
		return lo
	}
	return int64(v)
}

// Count reads the number of items that follow, each of at least minBytes bytes: it is at most maxItems and at
// most what the remaining bytes can hold, so a slice of that many items may be allocated.
func (r *Reader) Count(minBytes, maxItems int) int {
	if minBytes < 1 {
		panic("binenc: items of no bytes")
	}
	v := r.Uvarint()
	if r.err != nil {
		return 0
	}
	if limit := uint64(min(maxItems, r.Len()/minBytes)); v > limit {
		r.Failf("count %d, allowed up to %d", v, limit)
		return 0
	}
	return int(v)
}

// Fixed32 reads 4 bytes, little endian.
func (r *Reader) Fixed32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Floats reads as many numbers as v has room for, as AppendFloats wrote them.
func (r *Reader) Floats(v []float32) { copy(bytesOf(v), r.take(4*len(v))) }

// Fixed64 reads 8 bytes, little endian.
func (r *Reader) Fixed64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Float64 reads the bits of a float64, NaN included.
func (r *Reader) Float64() float64 { return math.Float64frombits(r.Fixed64()) }

// Raw reads n bytes without a length prefix. The result shares the reader's memory; nil after an error.
func (r *Reader) Raw(n int) []byte { return r.take(n) }

// Bytes reads length-prefixed bytes, at most maxLen. The result shares the reader's memory.
func (r *Reader) Bytes(maxLen int) []byte { return r.take(r.Count(1, maxLen)) }

// String reads a length-prefixed string of at most maxLen bytes.
func (r *Reader) String(maxLen int) string { return string(r.Bytes(maxLen)) }

func (r *Reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.b)-r.off {
		r.Failf("%d bytes wanted, %d remain", n, len(r.b)-r.off)
		return nil
	}
	b := r.b[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

// Bounds on what encoded bytes may claim.
const (
	MaxName  = 1 << 12 // bytes of a name
	MaxItems = 1 << 28 // items of a list
	MaxBytes = 1 << 32 // bytes of a block
)
