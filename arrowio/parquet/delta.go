package parquet

import (
	"encoding/binary"
	"fmt"
	"math"
)

// delta reads integers in the encoding DELTA_BINARY_PACKED.
type delta struct {
	b        []byte
	count    int // numbers still to come
	last     int64
	first    bool // the next number is the first
	perMini  int
	minis    int
	least    int64
	widths   []byte // of the miniblocks of the block that are still to come
	width    int
	inMini   int // numbers of the miniblock still to come
	bit      int
	miniSize int // bytes of the miniblock
}

func newDelta(b []byte) (*delta, error) {
	d := &delta{b: b, first: true}
	var head [3]uint64
	for i := range head {
		v, n := binary.Uvarint(d.b)
		if n <= 0 || v > math.MaxInt32 {
			return nil, errShort
		}
		head[i], d.b = v, d.b[n:]
	}
	block, minis := int(head[0]), int(head[1])
	if minis == 0 || block%minis != 0 || block/minis%8 != 0 || block == 0 {
		return nil, fmt.Errorf("blocks of %d numbers in %d parts", block, minis)
	}
	d.minis, d.perMini, d.count = minis, block/minis, int(head[2])
	return d, d.zigzag(&d.last)
}

func (d *delta) zigzag(to *int64) error {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		return errShort
	}
	*to, d.b = v, d.b[n:]
	return nil
}

// next is the next number.
func (d *delta) next() (int64, error) {
	if d.count == 0 {
		return 0, errShort
	}
	d.count--
	if d.first {
		d.first = false
		return d.last, nil
	}
	if d.inMini == 0 {
		if err := d.mini(); err != nil {
			return 0, err
		}
	}
	d.last += d.least + int64(bitsAt(d.b, d.bit, d.width))
	d.bit += d.width
	if d.inMini--; d.inMini == 0 {
		d.b = d.b[d.miniSize:]
	}
	return d.last, nil
}

// mini begins a miniblock, and a block where one is due.
func (d *delta) mini() error {
	if len(d.widths) == 0 {
		if err := d.zigzag(&d.least); err != nil {
			return err
		}
		if len(d.b) < d.minis {
			return errShort
		}
		d.widths, d.b = d.b[:d.minis], d.b[d.minis:]
	}
	d.width, d.widths = int(d.widths[0]), d.widths[1:]
	d.miniSize = d.width * d.perMini / 8
	if d.width > 64 || d.miniSize > len(d.b) {
		return errShort
	}
	d.inMini, d.bit = d.perMini, 0
	return nil
}

// rest is what follows the numbers, which have all been read: the last miniblock is there as a whole.
func (d *delta) rest() []byte {
	if d.inMini > 0 {
		return d.b[d.miniSize:]
	}
	return d.b
}
