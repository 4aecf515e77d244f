package acc

import (
	"math"
	"math/bits"
	"slices"
)

// MaxPairs is how many pairs of (prediction, wrong label) a ClassCounts keeps.
const MaxPairs = 1 << 14

const (
	// pairSlack is how many pairs above MaxPairs may gather before trim drops them, so that not every new pair costs a
	// selection.
	pairSlack = MaxPairs / 4
	noLimit   = math.MaxUint64
)

// pairs counts rows by key, and keeps the MaxPairs keys of the least hashes: mix64 is a bijection, so there are no
// ties. Invariant: a key that is here has been counted from its first row on, and none with a hash above limit is here;
// where limit is not noLimit at least MaxPairs keys have hashes up to it.
type pairs struct {
	keys []uint64
	sums []pairSum // of the keys
	// place + 1, open addressing by hash, linear probing; at most half are used, the length is a power of two
	slots []uint32
	limit uint64
	least []uint64 // scratch of trim
}

type pairSum struct{ n, excess int64 }

// add adds to a key, unless it is not kept.
func (p *pairs) add(key uint64, s pairSum) {
	h := mix64(key)
	if h > p.limit {
		return
	}
	if 2*len(p.keys) >= len(p.slots) {
		p.rehash(max(tableMin, 2*len(p.slots)))
	}
	mask := uint64(len(p.slots) - 1)
	at := h & mask
	for ; p.slots[at] != 0; at = (at + 1) & mask {
		if i := p.slots[at] - 1; p.keys[i] == key {
			p.sums[i].n += s.n
			p.sums[i].excess += s.excess
			return
		}
	}
	p.keys, p.sums = append(p.keys, key), append(p.sums, s)
	p.slots[at] = uint32(len(p.keys))
	if len(p.keys) > MaxPairs+pairSlack {
		p.trim()
	}
}

// addRows adds rows of weight 1 to each key. It looks up all places before it uses the first, so that reads from
// memory overlap; all three slices are overwritten.
func (p *pairs) addRows(keys []uint64, rows, places []uint32) {
	rows, places = rows[:len(keys)], places[:len(keys)]
	if len(p.slots) == 0 {
		p.rehash(tableMin)
	}
	slots, limit, n := p.slots, p.limit, 0
	mask := uint64(len(slots) - 1)
	for j, key := range keys { // which are kept cannot be predicted: all are written, and some overwritten
		h := mix64(key)
		keys[n], rows[n], places[n] = key, rows[j], slots[h&mask]
		_, beyond := bits.Sub64(limit, h, 0)
		n += 1 - int(beyond)
	}
	for j, key := range keys[:n] {
		if i := int(places[j]) - 1; i >= 0 && i < len(p.keys) && p.keys[i] == key { // adding may have moved it
			p.sums[i].n += int64(rows[j])
			continue
		}
		p.add(key, pairSum{n: int64(rows[j])})
	}
}

// rehash rebuilds the hash table with this many slots.
func (p *pairs) rehash(size int) {
	if size == len(p.slots) {
		clear(p.slots)
	} else {
		p.slots = make([]uint32, size)
	}
	mask := uint64(size - 1)
	for i, key := range p.keys {
		at := mix64(key) & mask
		for p.slots[at] != 0 {
			at = (at + 1) & mask
		}
		p.slots[at] = uint32(i + 1)
	}
}

// trim drops the keys beyond the MaxPairs of the least hashes.
func (p *pairs) trim() {
	if len(p.keys) <= MaxPairs {
		return
	}
	p.least = p.least[:0]
	for _, key := range p.keys {
		p.least = append(p.least, mix64(key))
	}
	slices.Sort(p.least)
	p.cut(p.least[MaxPairs-1])
}

// cut drops the keys with a hash above limit.
func (p *pairs) cut(limit uint64) {
	p.limit = limit
	n := 0
	for i, key := range p.keys {
		if mix64(key) <= limit {
			p.keys[n], p.sums[n] = key, p.sums[i]
			n++
		}
	}
	if n < len(p.keys) {
		p.keys, p.sums = p.keys[:n], p.sums[:n]
		p.rehash(len(p.slots))
	}
}

// merge adds the keys of o. Keys with hashes above either limit are dropped: one side has not counted them from the
// first row on.
func (p *pairs) merge(o *pairs) {
	if o.limit < p.limit {
		p.cut(o.limit)
	}
	keys, sums := o.keys, o.sums
	for i, key := range keys {
		p.add(key, sums[i])
	}
	p.trim()
}

// rows is the number of rows of the keys that are kept.
func (p *pairs) rows() (n int64) {
	for i := range p.sums {
		n += p.sums[i].n
	}
	return n
}

// sorted returns the places of the keys in ascending order of the keys.
func (p *pairs) sorted() []int32 {
	at := make([]int32, len(p.keys))
	for i := range at {
		at[i] = int32(i)
	}
	slices.SortFunc(at, func(a, b int32) int {
		if p.keys[a] < p.keys[b] {
			return -1
		}
		return 1
	})
	return at
}

// reset empties it and keeps the memory.
func (p *pairs) reset() {
	clear(p.slots)
	p.keys, p.sums, p.limit = p.keys[:0], p.sums[:0], noLimit
}

func (p *pairs) clone() pairs {
	return pairs{keys: slices.Clone(p.keys), sums: slices.Clone(p.sums), slots: slices.Clone(p.slots), limit: p.limit}
}

// bytes returns the memory that it holds.
func (p *pairs) bytes() int {
	return 8*cap(p.keys) + 16*cap(p.sums) + 4*cap(p.slots) + 8*cap(p.least)
}
