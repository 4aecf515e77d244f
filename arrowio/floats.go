package arrowio

import (
	"math"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// floats are the first n values of a float column as float32: a view of the message where the column is
// float32, else converted into *mem. Values under a null are whatever the producer left there.
func floats(c *wire.Column, n int, mem *[]float32) ([]float32, error) {
	switch c.Field.Bits {
	case 32:
		return wire.Values[float32](c.Field.Name, c.Data, n)
	case 64:
		v, err := wire.Values[float64](c.Field.Name, c.Data, n)
		if err != nil {
			return nil, err
		}
		out := take(mem, n)
		for i, x := range v {
			out[i] = float32(x)
		}
		return out, nil
	default:
		v, err := wire.Values[uint16](c.Field.Name, c.Data, n)
		if err != nil {
			return nil, err
		}
		out := take(mem, n)
		for i, x := range v {
			out[i] = HalfValue(x)
		}
		return out, nil
	}
}

// slab reads a list column as a row-major N×K slab. K is the list size, which all rows that are not null
// share. Rows under a null are present in the slab, with any values.
func (r *reader) slab(c *wire.Column, maxK int, mem *[]float32) (k int, slab []float32, err error) {
	name := c.Field.Name
	if c.Field.Type == wire.FixedSizeList {
		k = c.Field.Size
		if k > maxK {
			return 0, nil, wire.Errorf(wire.TooLarge, "column %q: %d values a row, at most %d", name, k, maxK)
		}
		if int64(c.Child.N) != int64(c.N)*int64(k) {
			return 0, nil, wire.Errorf(wire.Shape, "column %q: %d values for %d rows of %d", name, c.Child.N, c.N, k)
		}
		slab, err = floats(c.Child, c.N*k, mem)
		return k, slab, err
	}
	off, reuse, err := wire.Offsets(c, c.Child.N, r.d.offsets)
	r.d.offsets = reuse
	if err != nil {
		return 0, nil, err
	}
	k, dense, err := listSize(c, off, maxK)
	if err != nil {
		return 0, nil, err
	}
	values, err := floats(c.Child, c.Child.N, mem)
	if err != nil {
		return 0, nil, err
	}
	if dense {
		return k, values[off[0]:off[c.N]], nil
	}
	// Null rows of length zero leave gaps; the memory is fresh because values may lie in *mem.
	size := int64(c.N) * int64(k)
	if size > r.sparse {
		return 0, nil, wire.Errorf(wire.TooLarge, "column %q: %d rows of %d with empty null rows, %d values are left to the message", name, c.N, k, r.sparse)
	}
	r.sparse -= size
	slab = make([]float32, c.N*k)
	for i := range c.N {
		if row := values[off[i]:off[i+1]]; len(row) == k {
			copy(slab[i*k:], row)
		}
	}
	return k, slab, nil
}

// sparseValues bounds the values of the slabs of one message that are larger than what they come from: those with empty
// null rows. Without it, one row of many classes and many nulls, batch after batch, would cost gigabytes.
func sparseValues(messageBytes int) int64 { return 1<<20 + 4*int64(messageBytes) }

// listSize is the common length of the rows that are not null; dense is true where null rows have it too.
func listSize(c *wire.Column, off []int64, maxK int) (k int, dense bool, err error) {
	size, dense := int64(-1), true
	for i := range c.N {
		n := off[i+1] - off[i]
		switch {
		case c.IsNull(i):
		case size < 0:
			size = n
		case n != size:
			return 0, false, wire.Errorf(wire.Shape, "column %q: row %d has %d values, the rows before %d", c.Field.Name, i, n, size)
		}
	}
	if size > int64(maxK) {
		return 0, false, wire.Errorf(wire.TooLarge, "column %q: %d values a row, at most %d", c.Field.Name, size, maxK)
	}
	if size < 0 {
		return 0, false, nil
	}
	for i := range c.N {
		dense = dense && off[i+1]-off[i] == size
	}
	return int(size), dense, nil
}

// childNulls calls null for every row that is null or has a null element.
func childNulls(c *wire.Column, n, k int, null func(row int)) error {
	if c.Valid != nil {
		for i := range n {
			if c.IsNull(i) {
				null(i)
			}
		}
	}
	if c.Child == nil || c.Child.Valid == nil {
		return nil
	}
	if c.Field.Type != wire.FixedSizeList {
		off, _, err := wire.Offsets(c, c.Child.N, nil)
		if err != nil {
			return err
		}
		for i := range n {
			for j := off[i]; j < off[i+1]; j++ {
				if c.Child.IsNull(int(j)) {
					null(i)
					break
				}
			}
		}
		return nil
	}
	for i := range n {
		for j := range k {
			if c.Child.IsNull(i*k + j) {
				null(i)
				break
			}
		}
	}
	return nil
}

var nan32 = float32(math.NaN())

// features reads the features slab; null rows become NaN.
func (r *reader) features(b *Batch, c *wire.Column) error {
	if c == nil {
		return nil
	}
	d, slab, err := r.slab(c, r.d.opt.MaxFeatures, &b.mem.features)
	if err != nil || d == 0 {
		return err
	}
	owned := false
	err = childNulls(c, b.N, d, func(i int) {
		if !owned { // the message itself is read-only
			slab, owned = append([]float32(nil), slab...), true
		}
		for j := range d {
			slab[i*d+j] = nan32
		}
	})
	b.D, b.Features = d, slab
	return err
}

// served reads the served confidence: NaN where null.
func (r *reader) served(b *Batch, c *wire.Column) error {
	if c == nil {
		return nil
	}
	v, err := floats(c, b.N, &b.mem.served)
	if err != nil {
		return err
	}
	b.Served = take(&b.mem.served, b.N)
	for i, x := range v {
		switch {
		case c.IsNull(i):
			x = nan32
		case !(x >= 0 && x <= 1):
			b.reject(i, BadServed)
		}
		b.Served[i] = x
	}
	return nil
}

// maxWeight keeps weighted sums inside the accumulators' fixed-point range.
const maxWeight = 1 << 20

// weights reads the sampling weight: 1 where null.
func (r *reader) weights(b *Batch, c *wire.Column) error {
	if c == nil {
		return nil
	}
	v, err := floats(c, b.N, &b.mem.weight)
	if err != nil {
		return err
	}
	b.Weight = take(&b.mem.weight, b.N)
	for i, x := range v {
		switch {
		case c.IsNull(i):
			x = 1
		case !(x > 0 && x <= maxWeight):
			b.reject(i, BadWeight)
		}
		b.Weight[i] = x
	}
	return nil
}
