package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var (
	errShort  = errors.New("a page ends before its values")
	errLevels = errors.New("broken levels")
)

// hybrid reads numbers in the RLE and bit-packing hybrid encoding: levels, dictionary indices, booleans.
type hybrid struct {
	b      []byte
	width  int // bits of a number
	same   int // of a run, still to come
	value  uint32
	packed int // of a bit-packed run, still to come
	bit    int // where in b the next of them begins
}

func newHybrid(b []byte, width int) (hybrid, error) {
	if width > 32 {
		return hybrid{}, fmt.Errorf("numbers of %d bits, at most 32", width)
	}
	return hybrid{b: b, width: width}, nil
}

// prefixed splits off bytes with their length before them.
func prefixed(b []byte) (head, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errShort
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, errShort
	}
	return b[4 : 4+n], b[4+n:], nil
}

// next is the next number.
func (h *hybrid) next() (uint32, error) {
	for h.same == 0 && h.packed == 0 {
		if err := h.run(); err != nil {
			return 0, err
		}
	}
	if h.same > 0 {
		h.same--
		return h.value, nil
	}
	v := bitsAt(h.b, h.bit, h.width)
	h.bit += h.width
	if h.packed--; h.packed == 0 {
		h.b = h.b[min(len(h.b), (h.bit+7)/8):]
	}
	return uint32(v), nil
}

// run reads the head of a run.
func (h *hybrid) run() error {
	head, n := binary.Uvarint(h.b)
	if n <= 0 || head>>1 > math.MaxInt32 {
		return errShort
	}
	h.b = h.b[n:]
	if head&1 == 1 {
		h.packed, h.bit = int(head>>1)*8, 0
		if h.width > 0 { // the last group may be cut off
			h.packed = min(h.packed, len(h.b)*8/h.width)
			if h.packed == 0 {
				return errShort
			}
		}
		return nil
	}
	size := (h.width + 7) / 8
	if size > len(h.b) {
		return errShort
	}
	h.value, h.same = 0, int(head>>1)
	for i, x := range h.b[:size] {
		h.value |= uint32(x) << (8 * i)
	}
	h.b = h.b[size:]
	return nil
}

// bitsAt is the number of so many bits, at most 64, at a bit of b; bits behind the end of b are 0.
func bitsAt(b []byte, at, width int) uint64 {
	i, shift := at>>3, at&7
	var v uint64
	if len(b)-i >= 8 && width+shift <= 64 {
		v = binary.LittleEndian.Uint64(b[i:]) >> shift
	} else {
		for j := 0; j < 9 && i+j < len(b); j++ {
			if s := 8*j - shift; s < 0 {
				v |= uint64(b[i+j]) >> -s
			} else {
				v |= uint64(b[i+j]) << s
			}
		}
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}
