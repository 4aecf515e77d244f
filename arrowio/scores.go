package arrowio

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// sumTolerance is how far the probabilities of a row may sum from 1: float16 columns of many classes pass, scores that
// are no distribution do not. That of figures with two decimals is a multiple of .01, but for rounding.
const sumTolerance = 0.05 + 1e-5

// scores reads the score column and marks the rows that are no scores.
func (r *reader) scores(b *Batch, c *wire.Column) error {
	b.Probs = r.plan.form.Probs
	if r.plan.form.Binary {
		return r.binaryScores(b, c)
	}
	k, slab, err := r.slab(c, r.d.opt.MaxClasses, &b.mem.scores)
	if err != nil {
		return err
	}
	if k == 0 && b.N > 0 && allNull(c) {
		// Null lists without values do not say how many there would be. Every row is rejected, so any number will do.
		if k = 2; int64(k*b.N) > r.sparse {
			return wire.Errorf(wire.TooLarge,
				"column %q: %d null rows without values, %d values are left to the message", c.Field.Name, b.N,
				r.sparse)
		}
		r.sparse -= int64(k * b.N)
		slab = make([]float32, k*b.N)
		for i := range b.N {
			b.rejectNull(i, c.Field.Name)
		}
		b.K, b.Scores = k, slab
		return nil
	}
	if k < 2 {
		return wire.Errorf(wire.Shape, "column %q: %d scores a row, at least 2", c.Field.Name, k)
	}
	b.K, b.Scores = k, slab
	if err := wire.ChildNulls(c, b.N, k, func(i int) { b.rejectNull(i, c.Field.Name) }); err != nil {
		return err
	}
	check := finite
	if !b.Probs && finite(slab[:b.N*k]) {
		return nil // as nearly all messages are
	}
	if b.Probs {
		check = IsDistribution
	}
	for i := range b.N {
		if !check(slab[i*k : (i+1)*k]) {
			b.reject(i, NonfiniteScores)
		}
	}
	return nil
}

// allNull reports whether no row of a column has a value.
func allNull(c *wire.Column) bool {
	for i := range c.N {
		if !c.IsNull(i) {
			return false
		}
	}
	return true
}

// binaryScores expands one score a row to K = 2: (0, z) or (1-p, p).
func (r *reader) binaryScores(b *Batch, c *wire.Column) error {
	var mem []float32
	v, err := wire.Floats(c, b.N, &mem)
	if err != nil {
		return err
	}
	b.K, b.Scores = 2, wire.Take(&b.mem.scores, 2*b.N)
	for i, x := range v {
		ok := !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0)
		rest := float32(0)
		if b.Probs {
			ok, rest = x >= 0 && x <= 1, 1-x
		}
		switch {
		case c.IsNull(i):
			b.rejectNull(i, c.Field.Name)
		case !ok:
			b.reject(i, NonfiniteScores)
		}
		b.Scores[2*i], b.Scores[2*i+1] = rest, x
	}
	return nil
}

// finite says whether no logit is NaN or infinite, which is all-ones in the exponent: adding 1 to the exponent then
// carries into the sign bit. Two logits are looked at together.
func finite(z []float32) bool {
	const exponent, one, carry = 0x7f800000_7f800000, 0x00800000_00800000, 0x80000000_80000000
	var c0, c1, c2, c3 uint64
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(z))), 4*len(z))
	for ; len(raw) >= 32; raw = raw[32:] {
		c0 |= binary.NativeEndian.Uint64(raw)&exponent + one
		c1 |= binary.NativeEndian.Uint64(raw[8:])&exponent + one
		c2 |= binary.NativeEndian.Uint64(raw[16:])&exponent + one
		c3 |= binary.NativeEndian.Uint64(raw[24:])&exponent + one
	}
	z = z[len(z)-len(raw)/4:]
	for _, x := range z {
		c0 |= uint64(math.Float32bits(x))&exponent + one
	}
	return (c0|c1|c2|c3)&carry == 0
}

// IsDistribution says whether p is a distribution within sumTolerance. NaN fails every comparison.
func IsDistribution(p []float32) bool {
	sum := 0.0
	for _, x := range p {
		if !(x >= 0 && x <= 1) {
			return false
		}
		sum += float64(x)
	}
	return math.Abs(sum-1) <= sumTolerance
}
