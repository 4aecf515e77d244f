package acc

import (
	"fmt"
	"math/bits"

	"github.com/plumbline/plumbline/internal/binenc"
)

const classWiseVersion = 1

// AppendBinary appends the encoding: u8 version, uvarint K, uvarint M, the total, K times uvarint Σ w·p of the class's
// bin 0, uvarint n, n entries in ascending order of their keys:
//
//	key = class·(M+1) + bin   uvarint, difference from the key before
//	N, Σw                     total
//	Σ w·p                     varint Σ w·p − ⌊Σw · (2·bin+1) / 2M⌋; for bin M the plain sum, which is 0
//	Σ w·1[y = class]          uvarint of the 64 bits turned by 32
//
// Bins are (b/M, (b+1)/M]. Bin 0 has only its Σ w·p: its N and Σw are the totals less those of the class's other
// entries. Bin M stands for the probability 0, which is in no bin.
func (c *ClassWise) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, classWiseVersion)
	b = binenc.AppendUvarint(b, uint64(c.k))
	b = binenc.AppendUvarint(b, uint64(c.m))
	b = appendTotal(b, c.n, c.w)
	for _, v := range c.dense {
		b = binenc.AppendUvarint(b, uint64(v))
	}
	b = binenc.AppendUvarint(b, uint64(len(c.t.keys)))
	prev := uint32(0)
	o := c.t.sorted()
	for i, k := range o.keys {
		e := o.nth(i)
		b = binenc.AppendUvarint(b, uint64(k-prev))
		b = appendTotal(b, e[cN], e[cW])
		b = binenc.AppendVarint(b, e[cWP]-c.predictWP(k, e[cW]))
		// Whole weights leave the low half 0: turned round, a small number is left.
		b = binenc.AppendUvarint(b, bits.RotateLeft64(uint64(e[cWA]), fixBits))
		prev = k
	}
	return b, nil
}

// predictWP is what the codec takes off Σ w·p: Σw times the middle of the bin, 0 for the pseudo-bin of zeros.
func (c *ClassWise) predictWP(key uint32, w int64) int64 {
	bin := int64(key % uint32(c.m+1))
	if bin == int64(c.m) {
		return 0
	}
	return mulDiv(w, 2*bin+1, 2*int64(c.m))
}

// UnmarshalBinary replaces configuration and contents by the encoded ones; after an error they are as they were.
func (c *ClassWise) UnmarshalBinary(data []byte) error { return replace(c, data) }

func (c *ClassWise) decode(data []byte, d *Decoder) error {
	r := binenc.NewReader(data)
	r.Version(classWiseVersion)
	k, m := r.Count(1, MaxClasses), r.Int("bins", 1, maxBins)
	if r.Err() != nil {
		return fmt.Errorf("decode class-wise bins: %w", r.Err())
	}
	if err := d.classWise(c, k, int(m)); err != nil {
		return fmt.Errorf("decode class-wise bins: %w: %w", err, ErrCorrupt)
	}
	c.n, c.w = readTotal(&r)
	for i := range c.dense {
		c.dense[i] = r.Int("sum of bin 0", 0, c.w)
	}
	c.readTable(&r, d)
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode class-wise bins: %w", err)
	}
	return nil
}

func (c *ClassWise) readTable(r *binenc.Reader, d *Decoder) {
	limit := int64(c.k) * int64(c.m+1)
	const entryBytes = 5
	key := int64(-1)
	var class, n, w, hits int64 // sums of the class, and Σ WA of all
	count := r.Count(entryBytes, int(limit))
	c.t.keys, c.t.ents = d.classKeys.take(count), d.entries.take(count)
	for i := range count {
		if key < 0 {
			key = r.Int("key", 0, limit-1)
		} else {
			key += r.Int("key step", 1, limit)
		}
		if key >= limit {
			r.Failf("key is %d, allowed below %d", key, limit)
			return
		}
		if k := key / int64(c.m+1); k != class {
			class, n, w = k, 0, 0
		}
		var e entry
		e[cN], e[cW] = readTotal(r)
		e[cWP] = r.Varint() + c.predictWP(uint32(key), e[cW])
		e[cWA] = int64(bits.RotateLeft64(r.Uvarint(), fixBits))
		bin := key % int64(c.m+1)
		if e[cWP] < 0 || e[cWP] > e[cW] || e[cWA] < 0 || (bin == 0) != (e[cN] == 0) ||
			bin > 0 && e[cWA] > e[cW] || bin == int64(c.m) && e[cWP] != 0 {
			r.Failf("sums %v of class %d bin %d", e, class, bin)
			return
		}
		if e[cN] > c.n-n || e[cW] > c.w-w || e[cWA] > c.w-hits {
			r.Failf("sums %v of class %d exceed the total of %d rows", e, class, c.n)
			return
		}
		n, w, hits = n+e[cN], w+e[cW], hits+e[cWA]
		if r.Err() != nil {
			return
		}
		c.t.keys[i], c.t.ents[i] = uint32(key), e
	}
	if r.Err() == nil && hits != c.w {
		r.Failf("hits %d of weight %d", hits, c.w)
	}
}
