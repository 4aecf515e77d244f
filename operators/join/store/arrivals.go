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
			if j.next++; j.Len() > most {
				j.Forget(j.Len() - most)
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
