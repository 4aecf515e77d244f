package arrowio

import (
	"math"

	"github.com/plumbline/plumbline/arrowio/wire"
)

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
		slab, err = wire.Floats(c.Child, c.N*k, mem)
		return k, slab, err
	}
	off, reuse, err := wire.Offsets(c, c.Child.N, r.d.offsets)
	r.d.offsets = reuse
	if err != nil {
		return 0, nil, err
	}
	k, dense, err := wire.ListSize(c, off, maxK)
	if err != nil {
		return 0, nil, err
	}
	values, err := wire.Floats(c.Child, c.Child.N, mem)
	if err != nil {
		return 0, nil, err
	}
	if dense {
		return k, values[off[0]:off[c.N]], nil
	}
	// Null rows of length zero leave gaps; the memory is fresh because values may lie in *mem.
	size := int64(c.N) * int64(k)
	if size > r.sparse {
		return 0, nil, wire.Errorf(wire.TooLarge,
			"column %q: %d rows of %d with empty null rows, %d values are left to the message", name, c.N, k, r.sparse)
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
	err = wire.ChildNulls(c, b.N, d, func(i int) {
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
	v, err := wire.Floats(c, b.N, &b.mem.served)
	if err != nil {
		return err
	}
	b.Served = wire.Take(&b.mem.served, b.N)
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

// weights reads the sampling weight: 1 where null, but NaN in requests and responses, of which the other may have one.
func (r *reader) weights(b *Batch, c *wire.Column) error {
	if c == nil {
		return nil
	}
	v, err := wire.Floats(c, b.N, &b.mem.weight)
	if err != nil {
		return err
	}
	absent := float32(1)
	if b.Side != Whole {
		absent = nan32
	}
	b.Weight = wire.Take(&b.mem.weight, b.N)
	for i, x := range v {
		switch {
		case c.IsNull(i):
			x = absent
		case !(x > 0 && x <= maxWeight):
			b.reject(i, BadWeight)
		}
		b.Weight[i] = x
	}
	return nil
}
