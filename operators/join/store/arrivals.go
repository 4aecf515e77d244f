package store

import (
	"encoding/binary"
	"fmt"
)

// Arrivals are rows of one model version that have joined when they come, with the hashes of their ids.
type Arrivals[I ~[16]byte] struct {
	IDs    []I
	TS     []int64
	Hashes []uint32
	Key    Key
}

// AddNew is Add of one row after the other, up to the first whose id a row in the index may have. While more than most
// rows are remembered, the oldest is forgotten. It returns how many rows it has added.
func AddNew[I ~[16]byte](j *Joined, r *Arrivals[I], most int) (n int, err error) {
	for n < len(r.IDs) && j.index.AddNew(r.Hashes[n], refOf(j.next)) {
		if j.Len() >= maxJoined {
			return n, fmt.Errorf("joined rows: more than %d", maxJoined)
		}
		b := j.room()
		key := b.numberOf(r.Key)
		for end := min(len(r.IDs), n+j.o.BlockRows-b.n()); ; {
			id := [16]byte(r.IDs[n])
			b.rows = append(b.rows, id[:]...)
			b.rows = binary.LittleEndian.AppendUint64(b.rows, uint64(r.TS[n]))
			b.rows = binary.LittleEndian.AppendUint16(b.rows, key)
			for j.next++; j.Len() > most; {
				j.Forget()
			}
			if n++; n == end {
				break
			}
			if !j.index.AddNew(r.Hashes[n], refOf(j.next)) {
				return n, nil
			}
		}
		if b.n() >= j.o.BlockRows {
			if err := j.fill(b); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// AddNew is Add, unless a row in the index has the hash: then it does nothing, and returns false.
func (x *Index) AddNew(h, row uint32) bool {
	t := &x.tables[h>>24]
	if 4*(t.n+1) > 3*len(t.slots) {
		t.resize(max(2*len(t.slots), minSlots))
	}
	slots := t.slots
	mask := uint32(len(slots) - 1)
	i := h & mask
	for ; slots[i] != 0; i = (i + 1) & mask {
		if uint32(slots[i]>>32) == h {
			return false
		}
	}
	slots[i] = uint64(h)<<32 | uint64(row)
	t.n++
	return true
}

// NextRef is the number in the index of the row that is added next; those of the rows after it are 2 more each.
func (j *Joined) NextRef() uint32 { return refOf(j.next) }

// AddMoved is Add of rows that are in the index already, from NextRef on.
func AddMoved[I ~[16]byte](j *Joined, r *Arrivals[I]) error {
	for n := 0; n < len(r.IDs); {
		if j.Len()+len(r.IDs)-n > maxJoined {
			return fmt.Errorf("joined rows: more than %d", maxJoined)
		}
		b := j.room()
		key, end, rows := b.numberOf(r.Key), min(len(r.IDs), n+j.o.BlockRows-b.n()), b.rows
		j.next += uint64(end - n)
		for ; n < end; n++ {
			id := [16]byte(r.IDs[n])
			rows = append(rows, id[:]...)
			rows = binary.LittleEndian.AppendUint64(rows, uint64(r.TS[n]))
			rows = binary.LittleEndian.AppendUint16(rows, key)
		}
		if b.rows = rows; b.n() >= j.o.BlockRows {
			if err := j.fill(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Waiting finds for each hash a row that has not joined, and its place for ReplaceAt; 1 where there is none.
func (x *Index) Waiting(hashes, rows, places []uint32) {
	for r, h := range hashes {
		rows[r] = 1
		slots := x.tables[h>>24].slots
		if len(slots) == 0 {
			continue
		}
		mask := uint32(len(slots) - 1)
		for i := h & mask; slots[i] != 0; i = (i + 1) & mask {
			if uint32(slots[i]>>32) == h && !IsJoined(uint32(slots[i])) {
				rows[r], places[r] = uint32(slots[i]), i
				break
			}
		}
	}
}

// ReplaceAt is Replace of a row that was at a place of its table and is there still, unless rows have been removed.
func (x *Index) ReplaceAt(h, place, row, by uint32) bool {
	slots := x.tables[h>>24].slots
	if int(place) < len(slots) && slots[place] == uint64(h)<<32|uint64(row) {
		slots[place] = uint64(h)<<32 | uint64(by)
		return true
	}
	return x.Replace(h, row, by)
}
