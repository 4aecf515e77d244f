package acc

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
)

// SampleRow is one labelled row of a Sample.
type SampleRow struct {
	ID          [16]byte
	TS, LabelTS int64 // ns since 1970
	W           float32
	Y           int32
	Z           []float32 // K logits or log-probabilities
}

// Sample keeps the rows with the k smallest seeded hashes of their ID: a simple random sample of the IDs that does
// not depend on the order or the split of the stream. Ties go by ID, then TS, then the other fields.
// Make it with NewSample; the zero value only decodes. A capacity of 0 keeps nothing.
type Sample struct {
	k, capacity int
	seed        uint64
	heap        []ranked  // max-heap by order; grows to capacity rows
	rows        []sampled // by slot
	slab        []float32 // len(rows)×K: scores, by slot
}

// ranked is a row in the heap, which moves many: so it is small.
type ranked struct {
	hash uint64
	slot int
}

type sampled struct {
	id          [16]byte
	ts, labelTS int64
	w           float32
	y           int32
}

const maxSampleRows = math.MaxInt32

// NewSample returns an empty sample of at most capacity rows of k scores, else ErrShape.
func NewSample(k, capacity int, seed uint64) (*Sample, error) {
	if err := checkSample(k, capacity); err != nil {
		return nil, err
	}
	return &Sample{k: k, capacity: capacity, seed: seed}, nil
}

func checkSample(k, capacity int) error {
	if k < 1 || k > MaxClasses {
		return fmt.Errorf("classes is %d, allowed 1 to %d: %w", k, MaxClasses, ErrShape)
	}
	if capacity < 0 || capacity > maxSampleRows {
		return fmt.Errorf("sample rows is %d, allowed 0 to %d: %w", capacity, maxSampleRows, ErrShape)
	}
	return nil
}

// SampleHash is the order of the rows: 64 well-mixed bits of the id and the seed.
func SampleHash(id [16]byte, seed uint64) uint64 {
	h := mix64(seed + 0x9E3779B97F4A7C15)
	h = mix64(h ^ binary.LittleEndian.Uint64(id[:8]))
	return mix64(h ^ binary.LittleEndian.Uint64(id[8:]))
}

// mix64 is the finaliser of SplitMix64 (Steele, Lea, Flood, 2014), a bijection.
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Shape returns K and the capacity in rows.
func (s *Sample) Shape() (k, capacity int) { return s.k, s.capacity }

// Len returns the number of rows held.
func (s *Sample) Len() int { return len(s.heap) }

// Add offers a row, in O(log capacity). It copies Z.
func (s *Sample) Add(r SampleRow) error {
	if len(r.Z) != s.k {
		return fmt.Errorf("sample a row of %d scores for %d classes: %w", len(r.Z), s.k, ErrShape)
	}
	s.offer(SampleHash(r.ID, s.seed), &sampled{r.ID, r.TS, r.LabelTS, r.W, r.Y}, r.Z)
	return nil
}

// takes reports whether a row of an id may find a place.
func (s *Sample) takes(id [16]byte) bool {
	n := len(s.heap)
	return n < s.capacity || n > 0 && SampleHash(id, s.seed) <= s.heap[0].hash
}

func (s *Sample) offer(hash uint64, r *sampled, z []float32) {
	n := len(s.heap)
	if n < s.capacity {
		s.slab, s.rows = append(s.slab, z...), append(s.rows, *r)
		s.heap = append(s.heap, ranked{hash, n})
		s.up(n)
		return
	}
	if n == 0 || hash > s.heap[0].hash {
		return
	}
	top := s.heap[0]
	if hash == top.hash && compareSampled(r, z, &s.rows[top.slot], s.scores(top.slot)) >= 0 {
		return
	}
	s.rows[top.slot] = *r
	copy(s.scores(top.slot), z)
	s.down(ranked{hash, top.slot})
}

func (s *Sample) scores(slot int) []float32 { return s.slab[slot*s.k : (slot+1)*s.k] }

// compare is the order of rows.
func (s *Sample) compare(a, b ranked) int {
	if a.hash != b.hash {
		return cmp.Compare(a.hash, b.hash)
	}
	return compareSampled(&s.rows[a.slot], s.scores(a.slot), &s.rows[b.slot], s.scores(b.slot))
}

// compareSampled is a total order of rows of one hash: equal only where every field is, bit for bit.
func compareSampled(a *sampled, za []float32, b *sampled, zb []float32) int {
	if c := bytes.Compare(a.id[:], b.id[:]); c != 0 {
		return c
	}
	if c := cmp.Or(cmp.Compare(a.ts, b.ts), cmp.Compare(a.labelTS, b.labelTS), cmp.Compare(a.y, b.y),
		compareBits(a.w, b.w)); c != 0 {
		return c
	}
	return slices.CompareFunc(za, zb, compareBits)
}

func compareBits(a, b float32) int { return cmp.Compare(math.Float32bits(a), math.Float32bits(b)) }

// after reports whether row a is behind row b.
func (s *Sample) after(a, b ranked) bool {
	return a.hash > b.hash || a.hash == b.hash && s.compare(a, b) > 0
}

// up moves the last row of the heap to its place.
func (s *Sample) up(i int) {
	x := s.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !s.after(x, s.heap[parent]) {
			break
		}
		s.heap[i] = s.heap[parent]
		i = parent
	}
	s.heap[i] = x
}

// down puts a row in the place of the first.
func (s *Sample) down(x ranked) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s.heap) {
			break
		}
		if child+1 < len(s.heap) && s.after(s.heap[child+1], s.heap[child]) {
			child++
		}
		if !s.after(s.heap[child], x) {
			break
		}
		s.heap[i] = s.heap[child]
		i = child
	}
	s.heap[i] = x
}

// ordered returns the rows in ascending order.
func (s *Sample) ordered() []ranked {
	rows := slices.Clone(s.heap)
	slices.SortFunc(rows, s.compare)
	return rows
}

// Rows returns the rows in the order of their hashes. Z shares the sample's memory: valid until the next change.
func (s *Sample) Rows() []SampleRow {
	rows := make([]SampleRow, 0, len(s.heap))
	for _, x := range s.ordered() {
		r := &s.rows[x.slot]
		rows = append(rows, SampleRow{r.id, r.ts, r.labelTS, r.w, r.y, s.scores(x.slot)})
	}
	return rows
}

// Merge offers the rows of o, which stays as it is. Of two capacities the smaller counts, so that the order of merges
// does not matter. Another K or seed is ErrShape.
func (s *Sample) Merge(o *Sample) error {
	if err := s.check(o); err != nil {
		return err
	}
	s.merge(o)
	return nil
}

func (s *Sample) check(o *Sample) error {
	if s.k != o.k || s.seed != o.seed {
		return fmt.Errorf("merge a sample of %d scores (seed %d) into one of %d (seed %d): %w", o.k, o.seed, s.k,
			s.seed, ErrShape)
	}
	return nil
}

func (s *Sample) merge(o *Sample) {
	if s == o {
		o = o.Clone() // offers rewrite the slots
	}
	s.bound(o.capacity)
	for _, x := range o.heap {
		s.offer(x.hash, &o.rows[x.slot], o.scores(x.slot))
	}
}

// bound lowers the capacity to at most n.
func (s *Sample) bound(n int) {
	if s.capacity <= n {
		return
	}
	all := *s
	*s = Sample{k: s.k, capacity: n, seed: s.seed}
	for _, x := range all.heap {
		s.offer(x.hash, &all.rows[x.slot], all.scores(x.slot))
	}
}

// Reset drops the rows and keeps the memory.
func (s *Sample) Reset() {
	s.heap, s.rows, s.slab = s.heap[:0], s.rows[:0], s.slab[:0]
}

// Clone returns a deep copy.
func (s *Sample) Clone() *Sample {
	d := *s
	d.heap, d.rows, d.slab = slices.Clone(s.heap), slices.Clone(s.rows), slices.Clone(s.slab)
	return &d
}

const sampleVersion = 1

// AppendBinary appends the encoding: u8 version, uvarint K, uvarint capacity, fixed64 seed, uvarint n ≤ capacity,
// then n rows ascending by (hash, id, ts, label ts, label, bits of the weight, bits of the scores): id (16 bytes);
// ts in ns (varint, difference from the row before, from 0); label ts − ts (varint); weight (f32); label (varint);
// K scores (f32).
//
// hash = m(m(m(seed + 0x9E3779B97F4A7C15) ⊕ id[0:8]) ⊕ id[8:16]), little endian, m the finaliser of SplitMix64.
func (s *Sample) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, sampleVersion)
	b = binenc.AppendUvarint(b, uint64(s.k))
	b = binenc.AppendUvarint(b, uint64(s.capacity))
	b = binenc.AppendFixed64(b, s.seed)
	b = binenc.AppendUvarint(b, uint64(len(s.heap)))
	b = slices.Grow(b, len(s.heap)*(minSampledBytes+4*s.k))
	ts := int64(0)
	for _, x := range s.ordered() {
		r := &s.rows[x.slot]
		b = append(b, r.id[:]...)
		b = binenc.AppendVarint(b, r.ts-ts)
		b = binenc.AppendVarint(b, r.labelTS-r.ts)
		b = binenc.AppendFixed32(b, math.Float32bits(r.w))
		b = binenc.AppendVarint(b, int64(r.y))
		b = binenc.AppendFloats(b, s.scores(x.slot))
		ts = r.ts
	}
	return b, nil
}

// minSampledBytes is the least that a row takes beside its scores: id, two times, weight, label.
const minSampledBytes = 16 + 1 + 1 + 4 + 1

// UnmarshalBinary replaces configuration and contents by the encoded ones; after an error they are as they were.
func (s *Sample) UnmarshalBinary(data []byte) error { return replace(s, data) }

// decode decodes into a new one.
func (s *Sample) decode(data []byte, d *Decoder) error {
	r := binenc.NewReader(data)
	r.Version(sampleVersion)
	s.k = int(r.Int("classes", 1, MaxClasses))
	s.capacity = int(r.Int("capacity", 0, maxSampleRows))
	s.seed = r.Fixed64()
	n := r.Count(minSampledBytes+4*s.k, s.capacity)
	s.heap, s.rows, s.slab = d.ranks.take(n)[:0], d.rows.take(n), d.scores.take(n*s.k)
	ts := int64(0)
	for i := range n {
		row := &s.rows[i]
		copy(row.id[:], r.Raw(len(row.id)))
		x := ranked{SampleHash(row.id, s.seed), i}
		row.ts = ts + r.Varint()
		row.labelTS = row.ts + r.Varint()
		row.w = math.Float32frombits(r.Fixed32())
		y := r.Varint()
		row.y = int32(y)
		if int64(row.y) != y {
			r.Failf("label %d does not fit", y)
		}
		r.Floats(s.scores(i))
		if r.Err() != nil {
			break
		}
		if i > 0 && s.compare(s.heap[i-1], x) > 0 {
			r.Failf("row %d out of order", i)
			break
		}
		s.heap = append(s.heap, x)
		ts = row.ts
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode sample: %w", err)
	}
	slices.Reverse(s.heap) // descending order is a max-heap
	return nil
}
