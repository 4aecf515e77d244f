package arrowio

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/zeebo/xxh3"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// HashID is the ID of a textual or binary prediction id.
func HashID(id string) ID { return ID(xxh3.HashString128(id).Bytes()) }

// HashIntID is the ID of an integer prediction id: that of its 8 bytes, big endian.
func HashIntID(id uint64) ID {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], id)
	return HashIDBytes(b[:])
}

// HashIDBytes is the ID of the bytes that Splitter.Split names a row by.
func HashIDBytes(b []byte) ID { return ID(xxh3.Hash128(b).Bytes()) }

// ids hashes the id column. An empty id is taken as null: it would join every row that lacks one.
func (r *reader) ids(b *Batch, c *wire.Column) error {
	if c == nil {
		return nil
	}
	b.IDs = wire.Take(&b.mem.ids, b.N)
	if c.Field.Type == wire.Int {
		v, err := wire.Values[uint64](c.Field.Name, c.Data, b.N)
		if err != nil {
			return err
		}
		for i, id := range v {
			b.IDs[i] = HashIntID(id)
			if c.IsNull(i) {
				b.rejectNull(i, c.Field.Name)
			}
		}
		return nil
	}
	off, reuse, err := wire.Offsets(c, len(c.Text), r.d.offsets)
	r.d.offsets = reuse
	if err != nil {
		return err
	}
	for i := range b.IDs {
		if off[i] == off[i+1] || c.IsNull(i) {
			b.IDs[i] = ID{}
			b.rejectNull(i, c.Field.Name)
			continue
		}
		b.IDs[i] = HashIDBytes(c.Text[off[i]:off[i+1]])
	}
	return nil
}

// times reads the ts column, or gives every row the record's time where there is none.
func (r *reader) times(b *Batch, c *wire.Column) error {
	if c == nil {
		b.TS = wire.Take(&b.mem.ts, b.N)
		for i := range b.TS {
			b.TS[i] = r.origin.Time
		}
		return nil
	}
	v, err := wire.Values[int64](c.Field.Name, c.Data, b.N)
	if err != nil {
		return err
	}
	unit := wire.Nanoseconds[c.Field.Unit]
	if unit == 1 && c.Valid == nil {
		b.TS = v
		return nil
	}
	b.TS = wire.Take(&b.mem.ts, b.N)
	limit := math.MaxInt64 / unit
	for i, t := range v {
		switch {
		case c.IsNull(i):
			b.rejectNull(i, c.Field.Name)
			t = 0
		case t > limit || t < -limit:
			b.reject(i, TimeRange)
			t = 0
		}
		b.TS[i] = t * unit
	}
	return nil
}

// labels reads the label column: -1 is "not yet known", which a row of the labels topic may not be.
func (r *reader) labels(b *Batch, c *wire.Column) error {
	if c == nil {
		return nil
	}
	b.Label = wire.Take(&b.mem.label, b.N)
	k := int64(r.d.opt.MaxClasses)
	if b.K > 0 {
		k = int64(b.K)
	}
	switch f := c.Field; {
	case f.Bits == 8 && f.Signed:
		return labelsOf[int8](b, c, k)
	case f.Bits == 8:
		return labelsOf[uint8](b, c, k)
	case f.Bits == 16 && f.Signed:
		return labelsOf[int16](b, c, k)
	case f.Bits == 16:
		return labelsOf[uint16](b, c, k)
	case f.Bits == 32 && f.Signed:
		return labelsOf[int32](b, c, k)
	case f.Bits == 32:
		return labelsOf[uint32](b, c, k)
	case f.Signed:
		return labelsOf[int64](b, c, k)
	default:
		return labelsOf[uint64](b, c, k)
	}
}

func labelsOf[T wire.Number](b *Batch, c *wire.Column, k int64) error {
	v, err := wire.Values[T](c.Field.Name, c.Data, b.N)
	if err != nil {
		return err
	}
	for i, y := range v {
		b.Label[i] = -1
		switch {
		case c.IsNull(i):
			if b.Kind == Labels {
				b.rejectNull(i, c.Field.Name)
			}
		case y < 0 || uint64(y) >= uint64(k):
			b.reject(i, LabelRange)
			if b.BadLabel == "" && b.Reject[i] == LabelRange {
				b.BadLabel = fmt.Sprint(y)
			}
		default:
			b.Label[i] = int32(y)
		}
	}
	return nil
}
