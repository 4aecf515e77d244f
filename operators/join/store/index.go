package store

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Index finds the rows that may have an id: hash tables with linear probing, one for each value of a hash's first
// byte, so that growing is never one long stop. A slot is a hash in the upper half and in the lower a number that says
// which row; 0 is free.
//
// With n rows a lookup of an id that is not there finds a row of the same hash with probability n/2³²: that costs
// one look at it.
type Index struct {
	tables  [256]table
	seed    [2]uint64
	found   []uint32
	touched uint64
}

type table struct {
	slots []uint64
	n     int
}

const minSlots = 16

// NewIndex returns an index with a random seed, so that senders cannot provoke collisions. The order of slots reaches
// no result.
func NewIndex() *Index { return &Index{seed: [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}} }

// Hash is what all methods know an id by. It is never 0.
func (x *Index) Hash(id *ID) uint32 {
	hi, lo := bits.Mul64(binary.LittleEndian.Uint64(id[:8])^x.seed[0], binary.LittleEndian.Uint64(id[8:])^x.seed[1])
	h := (hi ^ lo) * 0x9E3779B97F4A7C15
	return max(uint32(h>>32), 1)
}

// Touch reads where some ids are looked up first. One lookup after the other would wait for memory each time; these
// reads wait together.
func (x *Index) Touch(hashes []uint32) {
	sum := uint64(0)
	for _, h := range hashes {
		if t := &x.tables[h>>24]; len(t.slots) > 0 {
			sum += t.slots[h&uint32(len(t.slots)-1)]
		}
	}
	x.touched = sum // so that the reads are not left out
}

// Add adds a row.
func (x *Index) Add(h, row uint32) {
	t := &x.tables[h>>24]
	if 4*(t.n+1) > 3*len(t.slots) {
		t.resize(max(2*len(t.slots), minSlots))
	}
	t.put(uint64(h)<<32 | uint64(row))
	t.n++
}

// Lookup returns the rows that may have the id, in no order; valid until the next call.
func (x *Index) Lookup(h uint32) []uint32 {
	t := &x.tables[h>>24]
	if t.n == 0 {
		return nil
	}
	found, slots := x.found[:0], t.slots
	mask := uint32(len(slots) - 1)
	for i := h & mask; slots[i] != 0; i = (i + 1) & mask {
		if uint32(slots[i]>>32) == h {
			found = append(found, uint32(slots[i]))
		}
	}
	x.found = found
	return found
}

// at returns the place of a row in its table, -1 where it is not in the index.
func (x *Index) at(h, row uint32) (t *table, at int) {
	t = &x.tables[h>>24]
	if t.n == 0 {
		return t, -1
	}
	mask, slot := uint32(len(t.slots)-1), uint64(h)<<32|uint64(row)
	for i := h & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if t.slots[i] == slot {
			return t, int(i)
		}
	}
	return t, -1
}

// Replace lets a row take the place of another of the same id; false where that is not in the index.
func (x *Index) Replace(h, row, by uint32) bool {
	t, at := x.at(h, row)
	if at < 0 {
		return false
	}
	t.slots[at] = uint64(h)<<32 | uint64(by)
	return true
}

// Remove removes a row; false where it is not in the index.
func (x *Index) Remove(h, row uint32) bool {
	t, at := x.at(h, row)
	if at < 0 {
		return false
	}
	t.free(uint32(at))
	t.n--
	return true
}

// Shrink frees memory after a burst. Removals do not shrink, because rows that leave in bursts also come in bursts.
func (x *Index) Shrink() {
	for i := range x.tables {
		t := &x.tables[i]
		n := len(t.slots)
		for 8*t.n < n && n > minSlots {
			n /= 2
		}
		if n < len(t.slots) {
			t.resize(n)
		}
	}
}

func (t *table) put(slot uint64) {
	mask := uint32(len(t.slots) - 1)
	i := uint32(slot>>32) & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = slot
}

// free empties slot i and moves later ones up, so that no probe ends too early.
func (t *table) free(i uint32) {
	mask := uint32(len(t.slots) - 1)
	for j := (i + 1) & mask; t.slots[j] != 0; j = (j + 1) & mask {
		if home := uint32(t.slots[j]>>32) & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = 0
}

// resize moves the slots: its own loop keeps the new ones in registers, which put cannot.
func (t *table) resize(n int) {
	slots, mask := make([]uint64, n), uint32(n-1)
	for _, s := range t.slots {
		if s == 0 {
			continue
		}
		i := uint32(s>>32) & mask
		for slots[i] != 0 {
			i = (i + 1) & mask
		}
		slots[i] = s
	}
	t.slots = slots
}

// newestFirst turns row numbers modulo 2³² into whole ones, given the oldest that there can be.
func newestFirst(rows []uint32, oldest uint64, dst []uint64) []uint64 {
	for _, r := range rows {
		dst = append(dst, oldest+uint64(r-uint32(oldest)))
	}
	slices.Sort(dst)
	slices.Reverse(dst)
	return dst
}
