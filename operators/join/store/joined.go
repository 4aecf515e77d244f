package store

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sort"

	"github.com/plumbline/plumbline/internal/filesum"
	"github.com/plumbline/plumbline/internal/workdir"
)

// Key names the model version of a row that has joined.
type Key struct{ Model, Version string }

// Met is the record of a joined row, beside its id.
type Met struct {
	Key Key
	TS  int64
}

// JoinedOptions are the settings of a Joined; zero values mean the defaults.
type JoinedOptions struct {
	Dir, Prefix string // as of Options
	BlockRows   int    // rows of a block, at most 65536; 32768
	InMemory    bool   // no block becomes a file: a checkpoint holds all rows
	// Index has the rows, by numbers that IsJoined tells from those of its other users; nil: one of its own.
	Index *Index
}

// Numbers of joined rows in the index are odd: the row's own in the upper 31 bits.

// IsJoined reports whether a number in the index is that of a joined row.
func IsJoined(ref uint32) bool { return ref&1 == 1 }

func refOf(n uint64) uint32 { return uint32(n)<<1 | 1 }

// maxJoined is how many rows there are at a time: half of the numbers, so that those of forgotten rows differ.
const maxJoined = 1 << 30

// Joined remembers the ids of rows that have joined, in a queue: rows come at the end, leave at the front and never
// change. So a full block of rows is written once, to a file that checkpoints refer to, and is read only by a restore.
// Rows are found in memory, where each takes 26 bytes and one or two slots of the index. The zero value is not usable.
type Joined struct {
	o        JoinedOptions
	work     *workdir.Dir
	blocks   []*block // oldest first; the last may have room
	index    *Index
	oldest   uint64 // first row that is remembered
	next     uint64
	obsolete []string // as of Store
	found    []Met
	spare    []byte // memory of a block that is gone
}

// NewJoined returns an empty one. Close it.
func NewJoined(o JoinedOptions) *Joined {
	if o.BlockRows == 0 {
		o.BlockRows = 1 << 15
	}
	if o.Index == nil {
		o.Index = NewIndex()
	}
	return &Joined{o: o, index: o.Index}
}

// Len is how many rows are remembered.
func (j *Joined) Len() int { return int(j.next - j.oldest) }

// Add remembers a row, behind all others.
func (j *Joined) Add(id *ID, ts int64, key Key) error {
	ref, err := j.push(id, ts, key)
	if err == nil {
		j.index.Add(j.index.Hash(id), ref)
	}
	return err
}

// Move is Add of a row that takes the place of another in the index: old. Where that is not there nothing is done.
func (j *Joined) Move(id *ID, ts int64, key Key, old uint32) (moved bool, err error) {
	if !j.index.Replace(j.index.Hash(id), old, refOf(j.next)) {
		return false, nil
	}
	_, err = j.push(id, ts, key)
	return true, err
}

// push appends a row, which is not in the index yet.
func (j *Joined) push(id *ID, ts int64, key Key) (ref uint32, err error) {
	if j.Len() >= maxJoined {
		return 0, fmt.Errorf("joined rows: more than %d", maxJoined)
	}
	b := j.room()
	b.add(id, ts, key)
	ref = refOf(j.next)
	j.next++
	if b.n() >= j.o.BlockRows {
		err = j.fill(b)
	}
	return ref, err
}

// rowsOfNew is memory for a whole block for all but the first: a queue may stay short.
func (j *Joined) rowsOfNew() []byte {
	if len(j.blocks) == 0 {
		return nil
	}
	if rows := j.spare; rows != nil {
		j.spare = nil
		return rows
	}
	return make([]byte, 0, j.o.BlockRows*metBytes)
}

// open is the block with room, nil where there is none.
func (j *Joined) open() *block {
	if n := len(j.blocks); n > 0 && j.blocks[n-1].known != nil {
		return j.blocks[n-1]
	}
	return nil
}

// room is the block with room; it makes one where there is none.
func (j *Joined) room() *block {
	b := j.open()
	if b == nil {
		b = &block{first: j.next, known: map[Key]uint16{}, rows: j.rowsOfNew()}
		j.blocks = append(j.blocks, b)
	}
	return b
}

// fill ends a block, which becomes a file unless there are to be none.
func (j *Joined) fill(b *block) error {
	b.known = nil
	if j.o.InMemory {
		return nil
	}
	if err := j.makeDir(); err != nil {
		return err
	}
	if err := b.seal(j.work.Path()); err != nil {
		return fmt.Errorf("joined rows: %w", err)
	}
	return nil
}

func (j *Joined) makeDir() (err error) {
	if j.work == nil {
		j.work, err = workdir.New(j.o.Dir, j.o.Prefix)
	}
	return err
}

// Find returns what is remembered of an id, in no order; valid until the next call.
func (j *Joined) Find(id *ID) []Met {
	j.found = j.found[:0]
	for _, ref := range j.index.Lookup(j.index.Hash(id)) {
		if met, ok := j.Match(ref, id); ok {
			j.found = append(j.found, met)
		}
	}
	return j.found
}

// Match returns the row of a number that Lookup has found, where it is one that has joined and has the id.
func (j *Joined) Match(ref uint32, id *ID) (met Met, ok bool) {
	if !IsJoined(ref) {
		return met, false
	}
	b, i := j.find(j.oldest + uint64((ref-refOf(j.oldest))>>1))
	if !b.has(i, id) {
		return met, false
	}
	_, met = b.row(i)
	return met, true
}

// Each calls take for every row that is remembered, in order.
func (j *Joined) Each(take func(id *ID, met Met) error) error {
	for n := j.oldest; n < j.next; n++ {
		b, i := j.find(n)
		id, met := b.row(i)
		if err := take(&id, met); err != nil {
			return err
		}
	}
	return nil
}

// find returns the place of a row that is remembered.
func (j *Joined) find(n uint64) (*block, int) {
	at := sort.Search(len(j.blocks), func(i int) bool { return j.blocks[i].first > n }) - 1
	return j.blocks[at], int(n - j.blocks[at].first)
}

// Oldest returns the time of the row at the front; ok is false where there is none.
func (j *Joined) Oldest() (ts int64, ok bool) {
	if j.Len() == 0 {
		return 0, false
	}
	b := j.blocks[0]
	return int64(binary.LittleEndian.Uint64(b.rows[int(j.oldest-b.first)*metBytes+16:])), true
}

// Forget forgets n rows at the front.
func (j *Joined) Forget(n int) {
	j.oldest += uint64(n)
	j.index.forget(n, refOf(j.oldest))
	for len(j.blocks) > 0 && j.oldest >= j.blocks[0].first+uint64(j.blocks[0].n()) {
		j.dropBlock()
	}
}

// dropBlock drops the block at the front.
func (j *Joined) dropBlock() {
	b := j.blocks[0]
	j.blocks = slices.Delete(j.blocks, 0, 1)
	if cap(b.rows) >= j.o.BlockRows*metBytes {
		j.spare = b.rows[:0]
	}
	switch {
	case b.path == "":
	case b.listed:
		j.obsolete = append(j.obsolete, b.path)
	default:
		_ = os.Remove(b.path) // what is left goes with the directory
	}
}

// Bytes are about those that the rows take in memory, the index included.
func (j *Joined) Bytes() int {
	n := j.index.bytes()
	for _, b := range j.blocks {
		n += cap(b.rows)
	}
	return n
}

// Close removes the work directory. It is of no use after that; closing twice does nothing.
func (j *Joined) Close() error {
	if j.work == nil {
		return nil
	}
	w := j.work
	j.work = nil
	return w.Remove()
}

// metBytes are those of a row: id, fixed64 ts, u16 number of its key in the block, little endian.
const metBytes = 16 + 8 + 2

// block is a run of rows.
type block struct {
	first uint64
	keys  []Key
	rows  []byte
	known map[Key]uint16 // numbers of the keys, while there is room
	last  uint16         // key of the row added last

	hash   [filesum.Size]byte
	size   int64
	path   string // "" = no file
	listed bool   // in the last checkpoint: the file may have to be read for it
}

func (b *block) n() int { return len(b.rows) / metBytes }

func (b *block) add(id *ID, ts int64, key Key) {
	n := b.numberOf(key)
	b.rows = append(b.rows, id[:]...)
	b.rows = binary.LittleEndian.AppendUint64(b.rows, uint64(ts))
	b.rows = binary.LittleEndian.AppendUint16(b.rows, n)
}

// numberOf is the number of a key in a block with room.
func (b *block) numberOf(key Key) uint16 {
	if len(b.keys) == 0 || b.keys[b.last] != key {
		n, ok := b.known[key]
		if !ok {
			n = uint16(len(b.keys))
			b.keys = append(b.keys, key)
			b.known[key] = n
		}
		b.last = n
	}
	return b.last
}

// has reports whether row i has an id.
func (b *block) has(i int, id *ID) bool { return *(*ID)(b.rows[i*metBytes:]) == *id }

func (b *block) row(i int) (ID, Met) {
	r := b.rows[i*metBytes : (i+1)*metBytes]
	return ID(r[:16]), Met{TS: int64(binary.LittleEndian.Uint64(r[16:])),
		Key: b.keys[binary.LittleEndian.Uint16(r[24:])]}
}
