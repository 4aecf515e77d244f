package store

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// index finds the rows that may have an id: hash tables with linear probing, one for each value of a hash's first
// byte, so that growing is never one long stop. A slot is a hash in the upper half and the row's number, modulo 2³²,
// in the lower; 0 is free.
//
// With n rows a lookup of an id that is not there finds a row of the same hash with probability n/2³²: that costs
// one read.
type index struct {
	tables [256]table
	seed   [2]uint64
	found  []uint32
}

type table struct {
	slots []uint64
	n     int
}

const minSlots = 16

// newIndex returns an index whose hash nobody can foresee. The order of slots reaches no result.
func newIndex() *index { return &index{seed: [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}} }

// hash is never 0.
func (x *index) hash(id *ID) uint32 {
	hi, lo := bits.Mul64(binary.LittleEndian.Uint64(id[:8])^x.seed[0], binary.LittleEndian.Uint64(id[8:])^x.seed[1])
	h := (hi ^ lo) * 0x9E3779B97F4A7C15
	return max(uint32(h>>32), 1)
}

func (x *index) add(id *ID, row uint32) {
	h := x.hash(id)
	t := &x.tables[h>>24]
	if 4*(t.n+1) > 3*len(t.slots) {
		t.resize(max(2*len(t.slots), minSlots))
	}
	t.put(uint64(h)<<32 | uint64(row))
	t.n++
}

// lookup returns the rows that may have the id, in no order; valid until the next call.
func (x *index) lookup(id *ID) []uint32 {
	x.found = x.found[:0]
	h := x.hash(id)
	t := &x.tables[h>>24]
	if t.n == 0 {
		return nil
	}
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if uint32(t.slots[i]>>32) == h {
			x.found = append(x.found, uint32(t.slots[i]))
		}
	}
	return x.found
}

func (x *index) remove(id *ID, row uint32) {
	h := x.hash(id)
	t := &x.tables[h>>24]
	if t.n == 0 {
		return
	}
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if t.slots[i] == uint64(h)<<32|uint64(row) {
			t.free(i)
			t.n--
			if 8*t.n < len(t.slots) && len(t.slots) > minSlots {
				t.resize(len(t.slots) / 2)
			}
			return
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

func (t *table) resize(n int) {
	old := t.slots
	t.slots = make([]uint64, n)
	for _, s := range old {
		if s != 0 {
			t.put(s)
		}
	}
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
