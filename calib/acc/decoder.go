package acc

import (
	"fmt"
	"sync"
	"unsafe"
)

// pieceBytes is the size of the pieces that a Decoder cuts into slices: the largest that the runtime allocates without
// a lock.
const pieceBytes = 32 << 10

// slab allocates zeroed slices from larger pieces of memory, so that many small ones cost one allocation. A piece
// stays in memory as long as any slice of it is used. The zero value allocates each slice by itself.
type slab[T any] struct {
	piece int // elements of a piece; 0 = no pieces
	whole []T // the latest piece
	rest  []T // of it
	used  bool
}

func newSlab[T any]() slab[T] {
	var v T
	return slab[T]{piece: pieceBytes / int(unsafe.Sizeof(v))}
}

// take returns n zeroed elements, nil for none. Large slices get an allocation of their own.
func (s *slab[T]) take(n int) []T {
	if n == 0 {
		return nil
	}
	if n > len(s.rest) {
		if 4*n > s.piece {
			return make([]T, n)
		}
		s.whole, s.used = make([]T, s.piece), false
		s.rest = s.whole
	}
	out := s.rest[:n:n]
	s.rest = s.rest[n:]
	if s.used {
		clear(out)
	}
	return out
}

// again starts handing out the latest piece from its start again.
func (s *slab[T]) again() { s.rest, s.used = s.whole, true }

func (s *slab[T]) one() *T { return &s.take(1)[0] }

// Decoder decodes many sets with few allocations, and computes once what sets of one configuration share. Sets that it
// has decoded share pieces of memory, and a piece is freed only when all its sets are: use it for a state that is
// restored and soon replaced, not to keep one set of many. Make it with NewDecoder. It is not safe for concurrent use;
// the sets do not depend on it and, except for writers, not on each other.
type Decoder struct {
	sets     slab[Set]
	seen     slab[Seen]
	labelled slab[labelledParts]

	entries   slab[entry]
	keys      slab[uint16]
	classKeys slab[uint32]
	ints      slab[int64]
	floats    slab[float64]
	ranks     slab[ranked]
	rows      slab[sampled]
	scores    slab[float32]

	// Empty accumulators of the shapes that came last, with the values derived from the shape.
	soft  *SoftBins
	class *ClassWise
	k     int // of lnK
	lnK   float64
}

// labelledParts is a labelled part and everything that it points to.
type labelledParts struct {
	l      Labelled
	soft   SoftBins
	class  ClassWise
	sample Sample
}

// single pools decoders of single sets. These sets share no pieces of memory, only what their configuration
// determines.
var single = sync.Pool{New: func() any { return new(Decoder) }}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder {
	return &Decoder{
		sets: newSlab[Set](), seen: newSlab[Seen](), labelled: newSlab[labelledParts](),
		entries: newSlab[entry](), keys: newSlab[uint16](), classKeys: newSlab[uint32](), ints: newSlab[int64](),
		floats: newSlab[float64](),
		ranks:  newSlab[ranked](), rows: newSlab[sampled](), scores: newSlab[float32](),
	}
}

// Reset lets the decoder reuse the memory of the sets that it has decoded, which must not be used any more.
func (d *Decoder) Reset() {
	d.sets.again()
	d.seen.again()
	d.labelled.again()
	d.entries.again()
	d.keys.again()
	d.classKeys.again()
	d.ints.again()
	d.floats.again()
	d.ranks.again()
	d.rows.again()
	d.scores.again()
}

// DecodeSet decodes what Set.AppendBinary has encoded. Errors are those of Set.UnmarshalBinary.
func (d *Decoder) DecodeSet(data []byte) (*Set, error) {
	s := d.sets.one()
	if err := d.set(s, data); err != nil {
		return nil, fmt.Errorf("decode set: %w", err)
	}
	return s, nil
}

// newLabelled returns an empty labelled part that only decodes.
func (d *Decoder) newLabelled() *Labelled {
	p := d.labelled.one()
	p.l.Soft, p.l.ClassWise, p.l.Sample = &p.soft, &p.class, &p.sample
	return &p.l
}

// lnClasses returns ln k.
func (d *Decoder) lnClasses(k int) float64 {
	if d.k != k {
		d.k, d.lnK = k, log(float64(k))
	}
	return d.lnK
}

// softBins makes b an empty accumulator of m bins at temperature t.
func (d *Decoder) softBins(b *SoftBins, m int, t float64) error {
	if d.soft == nil || d.soft.m != m || d.soft.t != t {
		shape, err := NewSoftBins(m, t)
		if err != nil {
			return err
		}
		d.soft = shape
	}
	*b = *d.soft
	padded := len(d.soft.u)
	b.u = d.floats.take(padded)
	b.cut(d.ints.take(softFields*padded), padded)
	return nil
}

// classWise makes c an empty accumulator of k classes and m bins.
func (d *Decoder) classWise(c *ClassWise, k, m int) error {
	if d.class == nil || d.class.k != k || d.class.m != m {
		shape, err := NewClassWise(k, m)
		if err != nil {
			return err
		}
		d.class = shape
	}
	*c = *d.class
	c.dense = d.ints.take(cap(d.class.dense))[:k]
	return nil
}
