package acc

import "slices"

// entry holds the sums of one key; the types that use a table name its fields.
type entry [4]int64

// table is a sparse map from small integers to sums: open addressing, linear probing. The zero value is empty.
// It grows by doubling and never shrinks; without a new key an update allocates nothing.
type table[K uint16 | uint32] struct {
	keys []K // key + 1; 0 = free. Invariant: the length is 0 or a power of two, and at most 3/4 are used.
	ents []entry
	n    int
}

const tableMin = 16

// at returns the sums of k, zero ones if k is new. The pointer is valid until the next call.
func (t *table[K]) at(k K) *entry {
	if 4*(t.n+1) > 3*len(t.keys) {
		t.grow()
	}
	i := t.slot(k)
	if t.keys[i] == 0 {
		t.keys[i] = k + 1
		t.ents[i] = entry{}
		t.n++
	}
	return &t.ents[i]
}

// get returns the sums of k, zero where it is absent.
func (t *table[K]) get(k K) entry {
	if t.n == 0 {
		return entry{}
	}
	if i := t.slot(k); t.keys[i] != 0 {
		return t.ents[i]
	}
	return entry{}
}

// slot returns the place of k, or the free one where it belongs.
func (t *table[K]) slot(k K) int {
	mask := len(t.keys) - 1
	// An odd factor permutes the residues, so runs of neighbouring keys never collide with themselves.
	for i := int(uint32(k)*0x9E3779B1) & mask; ; i = (i + 1) & mask {
		if t.keys[i] == k+1 || t.keys[i] == 0 {
			return i
		}
	}
}

func (t *table[K]) grow() {
	old := *t
	size := max(tableMin, 2*len(old.keys))
	t.keys, t.ents = make([]K, size), make([]entry, size)
	for i, k := range old.keys {
		if k != 0 {
			j := t.slot(k - 1)
			t.keys[j], t.ents[j] = k, old.ents[i]
		}
	}
}

// add adds every entry of o. Sums must fit.
func (t *table[K]) add(o *table[K]) {
	keys, ents := o.keys, o.ents
	for i, k := range keys {
		if k == 0 {
			continue
		}
		e := ents[i] // a copy: t may be o
		d := t.at(k - 1)
		for j := range d {
			d[j] += e[j]
		}
	}
}

// sorted returns the keys in ascending order.
func (t *table[K]) sorted() []K {
	keys := make([]K, 0, t.n)
	for _, k := range t.keys {
		if k != 0 {
			keys = append(keys, k-1)
		}
	}
	slices.Sort(keys)
	return keys
}

// reset empties the table and keeps its capacity.
func (t *table[K]) reset() {
	clear(t.keys)
	t.n = 0
}

func (t *table[K]) clone() table[K] {
	return table[K]{slices.Clone(t.keys), slices.Clone(t.ents), t.n}
}
