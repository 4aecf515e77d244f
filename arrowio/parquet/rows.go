package parquet

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/parquet"

	"github.com/plumbline/plumbline/arrowio/internal/record"
)

// rows are those of a column that are read so far.
type rows struct {
	n       int
	values  buffer
	pending int     // values that are there and still to be read
	missing []int32 // values that are null
	null    []int32 // rows of lists that are null
	starts  []int32 // of the lists, in values
}

// read reads the next rows, fewer at the end of the file only.
func (c *chunk) read(n int) (arrow.Array, error) {
	c.out = rows{values: buffer{width: c.column.width(), file: c.file}}
	for {
		if c.page.left == 0 {
			// The rows of a page's last list end with the page: pages begin with rows, or go on with the list.
			ok, err := c.nextPage()
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
		}
		full, err := c.fill(n)
		if err == nil {
			err = c.flush()
		}
		if err != nil {
			return nil, err
		}
		if full {
			break
		}
	}
	if c.column.list {
		return c.lists()
	}
	return c.array()
}

// fill reads from the page, and reports whether there are n rows and the next one begins.
func (c *chunk) fill(n int) (full bool, err error) {
	switch {
	case c.column.list:
		return c.fillLists(n)
	case c.column.full == 0:
		m := min(n-c.out.n, c.page.left)
		c.out.n, c.page.left = c.out.n+m, c.page.left-m
		return c.out.n == n, c.page.values.append(&c.out.values, m)
	}
	for c.out.n < n && c.page.left > 0 {
		def, err := c.page.def.next()
		if err != nil {
			return false, err
		}
		if err := c.value(int16(def) == c.column.full); err != nil {
			return false, err
		}
		c.out.n++
		c.page.left--
	}
	return c.out.n == n, nil
}

// value appends a value, or a null.
func (c *chunk) value(there bool) error {
	if there {
		c.out.pending++
		return nil
	}
	if err := c.flush(); err != nil {
		return err
	}
	c.out.missing = append(c.out.missing, int32(c.out.values.len()))
	return c.out.values.null()
}

// flush reads the values that are pending; they are of the page.
func (c *chunk) flush() error {
	n := c.out.pending
	if c.out.pending = 0; n == 0 {
		return nil
	}
	return c.page.values.append(&c.out.values, n)
}

func (c *chunk) fillLists(n int) (full bool, err error) {
	p, o := &c.page, &c.out
	for p.left > 0 {
		if p.ahead < 0 {
			r, err := p.repeated.next()
			if err != nil {
				return false, err
			}
			p.ahead = int(r)
		}
		if p.ahead == 0 && o.n == n {
			return true, nil
		}
		def := uint32(0)
		if def, err = p.def.next(); err != nil {
			return false, err
		}
		if p.ahead == 0 {
			if err := c.file.decode(4); err != nil {
				return false, err
			}
			o.starts = append(o.starts, int32(o.values.len()+o.pending))
			o.n++
		} else if o.n == 0 || int16(def) <= c.column.nulls {
			return false, errLevels // a list goes on that did not begin, or without an element
		}
		p.ahead = -1
		p.left--
		if err := c.element(int16(def)); err != nil {
			return false, err
		}
	}
	return false, nil
}

// element appends what a definition level says: a null list, an empty one, a null, or a value. In a row of values that
// are all there, the levels cost more than the values.
func (c *chunk) element(def int16) error {
	switch {
	case def < c.column.nulls:
		c.out.null = append(c.out.null, int32(c.out.n-1))
		return nil
	case def < c.column.empties:
		return nil
	case def > c.column.full:
		return errLevels
	}
	return c.value(def == c.column.full)
}

// bitmap is the validity of n entries but those of null, in ascending order.
func bitmap(n int, null []int32) []byte {
	if len(null) == 0 {
		return nil
	}
	at := 0
	valid, _ := record.Bitmap(n, func(i int) bool {
		if at < len(null) && int(null[at]) == i {
			at++
			return true
		}
		return false
	})
	return valid
}

func (c *chunk) lists() (arrow.Array, error) {
	elements, err := c.array()
	if err != nil {
		return nil, err
	}
	o := &c.out
	if elements.Len() > math.MaxInt32 {
		return nil, fmt.Errorf("%d values in a list column", elements.Len())
	}
	offsets := append(o.starts, int32(elements.Len()))
	t, values := arrow.ListOf(elements.DataType()), []arrow.ArrayData{elements.Data()}
	return record.Array(t, o.n, len(o.null), values, bitmap(o.n, o.null), record.Bytes(offsets)), nil
}

// array is the values as an Arrow array.
func (c *chunk) array() (arrow.Array, error) {
	v, n := &c.out.values, c.out.values.len()
	valid, nulls := bitmap(n, c.out.missing), len(c.out.missing)
	switch t := c.column.typ.(type) {
	case *arrow.NullType:
		return array.NewNull(n), nil
	case *arrow.StringType, *arrow.BinaryType:
		ends := append([]int32{0}, v.ends...)
		return record.Array(t, n, nulls, nil, valid, record.Bytes(ends), v.data), nil
	case *arrow.BooleanType:
		set := make([]byte, (n+7)/8)
		for i, x := range v.data {
			set[i/8] |= x << (i % 8)
		}
		return record.Array(t, n, nulls, nil, valid, set), nil
	case *arrow.Decimal128Type:
		data, err := c.decimals(n)
		return record.Array(t, n, nulls, nil, valid, data), err
	}
	data := v.data
	if c.column.kind == parquet.Types.Int96 {
		data = days(v.data)
	}
	return record.Array(c.column.typ, n, nulls, nil, valid, data), nil
}

// days are the nanoseconds since 1970 of timestamps in 12 bytes: nanoseconds of the day, Julian day. Those beyond the
// years of 64 bits, such as 9999-12-31 for no end, become math.MaxInt64.
func days(b []byte) []byte {
	const epoch, day = 2440588, 24 * 3600 * 1e9
	out := make([]byte, 0, len(b)/12*8)
	for ; len(b) >= 12; b = b[12:] {
		since := int64(binary.LittleEndian.Uint32(b[8:])) - epoch
		ns := int64(binary.LittleEndian.Uint64(b)) + since*day
		if since > 106_750 || since < -106_750 { // days of 2⁶³ ns
			ns = math.MaxInt64 // no time of a row
		}
		out = binary.LittleEndian.AppendUint64(out, uint64(ns))
	}
	return out
}

// decimals are the numbers in 16 bytes, little endian.
func (c *chunk) decimals(n int) ([]byte, error) {
	out := make([]byte, 0, 16*n)
	whole := c.column.kind == parquet.Types.Int32 || c.column.kind == parquet.Types.Int64
	for i := range n {
		b := c.out.values.at(i)
		if len(b) > 16 {
			return nil, fmt.Errorf("a decimal of %d bytes", len(b))
		}
		var x [16]byte
		for j := range b {
			if whole {
				x[j] = b[j]
			} else {
				x[j] = b[len(b)-1-j]
			}
		}
		if len(b) > 0 && x[len(b)-1]&0x80 != 0 {
			for j := len(b); j < 16; j++ {
				x[j] = 0xff
			}
		}
		out = append(out, x[:]...)
	}
	return out, nil
}
