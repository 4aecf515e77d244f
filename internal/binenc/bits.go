package binenc

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

const (
	// riceLimit is the unary part from which a number is written in full.
	riceLimit = 20
	riceBits  = 6  // of the number of low bits
	bytesBits = 57 // that eight bytes have from any bit of the first
)

// ZigZag maps integers near 0 to small ones.
func ZigZag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// UnZigZag is the inverse of ZigZag.
func UnZigZag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// BitWriter appends bits to bytes, the lowest first. A count is 6 bits of length and the number. A column, of which the
// length is not written, is for numbers of like size (Rice, 1979): 6 bits L, which their mean suggests, then of each
// number x as many ones as x/2^L, a zero and the L low bits; or 20 ones and all 64 bits. Signed numbers are to be in
// zigzag.
type BitWriter struct {
	dst  []byte
	word uint64
	n    uint // bits of word
}

// NewBitWriter returns a writer that appends to dst.
func NewBitWriter(dst []byte) BitWriter { return BitWriter{dst: dst} }

// Bits appends the low n bits of v, which has no others.
func (w *BitWriter) Bits(v uint64, n uint) {
	w.word |= v << w.n
	if w.n += n; w.n >= 64 {
		w.dst = binary.LittleEndian.AppendUint64(w.dst, w.word)
		w.n -= 64
		w.word = v >> (n - w.n)
	}
}

// Count appends a number of items.
func (w *BitWriter) Count(n int) {
	size := uint(bits.Len64(uint64(n)))
	w.Bits(uint64(size), riceBits)
	w.Bits(uint64(n), size)
}

// Column appends numbers.
func (w *BitWriter) Column(column []uint64) {
	low := lowBits(column)
	w.Bits(uint64(low), riceBits)
	for _, v := range column {
		q := v >> low
		if q >= riceLimit {
			w.Bits(1<<riceLimit-1, riceLimit)
			w.Bits(v, 64)
			continue
		}
		w.Bits(1<<q-1, uint(q)+1)
		w.Bits(v&(1<<low-1), low)
	}
}

// lowBits is how many low bits the numbers of a column have: 2^lowBits is at most their mean.
func lowBits(column []uint64) uint {
	var hi, lo uint64
	for _, v := range column {
		var carry uint64
		lo, carry = bits.Add64(lo, v, 0)
		hi += carry
	}
	if len(column) == 0 {
		return 0
	}
	mean, _ := bits.Div64(hi, lo, uint64(len(column)))
	return uint(max(bits.Len64(mean), 1) - 1)
}

// Close returns the bytes, the last filled up with zeros.
func (w *BitWriter) Close() []byte {
	for ; w.n > 0; w.n -= min(w.n, 8) {
		w.dst = append(w.dst, byte(w.word))
		w.word >>= 8
	}
	return w.dst
}

// BitReader reads what a BitWriter wrote. After the end it reads zeros, and Err is not nil.
type BitReader struct {
	b   []byte
	pos uint // in bits
	err error
}

// NewBitReader returns a reader of b.
func NewBitReader(b []byte) BitReader { return BitReader{b: b} }

// Failf records an error, unless there is one already.
func (r *BitReader) Failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("bit %d: %s: %w", r.pos, fmt.Sprintf(format, args...), ErrCorrupt)
	}
}

// Err returns the first error.
func (r *BitReader) Err() error {
	if r.pos > 8*uint(len(r.b)) {
		r.Failf("%d bytes are too few", len(r.b))
	}
	return r.err
}

// Close returns the first error, or one if anything but the filling of the last byte remains.
func (r *BitReader) Close() error {
	if rest := 8*len(r.b) - int(r.pos); r.Err() == nil && (rest >= 8 || r.peek() != 0) {
		r.Failf("%d bits left over", rest)
	}
	return r.err
}

// peek returns the next bits, bytesBits at least; those after the end are 0.
func (r *BitReader) peek() uint64 {
	i := r.pos / 8
	if i+8 <= uint(len(r.b)) {
		return binary.LittleEndian.Uint64(r.b[i:]) >> (r.pos % 8)
	}
	var word [8]byte
	if i < uint(len(r.b)) {
		copy(word[:], r.b[i:])
	}
	return binary.LittleEndian.Uint64(word[:]) >> (r.pos % 8)
}

// Bits reads n bits.
func (r *BitReader) Bits(n uint) uint64 {
	if n > bytesBits {
		low := r.Bits(32)
		return low | r.Bits(n-32)<<32
	}
	v := r.peek() & (1<<n - 1)
	r.pos += n
	return v
}

// Count reads a number of items, each of at least one bit, of which most are allowed.
func (r *BitReader) Count(most int) int {
	n := r.Bits(uint(r.Bits(riceBits)))
	if rest := 8*uint(len(r.b)) - min(r.pos, 8*uint(len(r.b))); n > uint64(min(uint(most), rest)) {
		r.Failf("count %d, allowed up to %d in %d bits", n, most, rest)
		return 0
	}
	return int(n)
}

// Column reads n numbers into the memory of column.
func (r *BitReader) Column(column []uint64, n int) []uint64 {
	if cap(column) < n {
		column = make([]uint64, n)
	}
	column = column[:n]
	low := uint(r.Bits(riceBits))
	mask := uint64(1)<<low - 1
	var word uint64 // the next bits, of which so many are known
	var known uint
	for i := range column {
		q := uint(bits.TrailingZeros64(^word))
		if q+1+low > known {
			word, known = r.peek(), bytesBits
			q = uint(bits.TrailingZeros64(^word))
		}
		n := q + 1 + low
		if q >= riceLimit || n > known {
			column[i] = r.number(low)
			known = 0
			continue
		}
		column[i] = uint64(q)<<low | word>>(q+1)&mask
		word >>= n
		known -= n
		r.pos += n
	}
	return column
}

// number reads a number of a column.
func (r *BitReader) number(low uint) uint64 {
	q := uint(bits.TrailingZeros64(^r.peek()))
	if q >= riceLimit {
		r.pos += riceLimit
		return r.Bits(64)
	}
	r.pos += q + 1
	return uint64(q)<<low | r.Bits(low)
}
