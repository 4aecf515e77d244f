package store

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Index finds the rows that may have an id: hash tables of lines, one for each value of a hash's first byte, so that
// growing is never one long stop. With each hash goes a number that says which row.
//
// With n rows a lookup of an id that is not there finds a row of the same hash with probability n/2³²: that costs
// one look at it.
//
// Rows that are forgotten stay until their table is full: it takes them out all at once, with no wait for memory.
type Index struct {
	tables     [256]table
	seed       [2]uint64
	rows       int    // in the tables
	gone       int    // of them, forgotten
	oldest     uint32 // number of the first joined row that is not forgotten
	due        int    // rows forgotten since a table was purged for it
	purged     uint8  // the table that is next
	found      []uint32
	prefetched uint64
}

// NewIndex returns an index with a random seed, so that senders cannot provoke collisions. The order of rows in tables
// reaches no result.
func NewIndex() *Index { return &Index{seed: [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}} }

// Hash is what all methods know an id by. Its last byte is never 0.
func (x *Index) Hash(id *ID) uint32 {
	hi, lo := bits.Mul64(binary.LittleEndian.Uint64(id[:8])^x.seed[0], binary.LittleEndian.Uint64(id[8:])^x.seed[1])
	h := uint32((hi ^ lo) * 0x9E3779B97F4A7C15 >> 32)
	if h&0xff == 0 {
		h |= 1
	}
	return h
}

// Prefetch reads where some ids are looked up first. One lookup after the other would wait for memory each time; these
// reads wait together.
func (x *Index) Prefetch(hashes []uint32) {
	sum := uint64(0)
	for _, h := range hashes {
		if t := &x.tables[h>>24]; len(t.lines) > 0 {
			sum += t.lines[t.home(h)].tags
		}
	}
	x.prefetched = sum // so that the reads are not left out
}

// Add adds a row.
func (x *Index) Add(h, row uint32) {
	t := &x.tables[h>>24]
	if t.n == t.most {
		x.makeRoom(t)
	}
	t.put(h, row)
	t.n++
	x.rows++
}

// AddNew is Add, unless a row in the index has the hash: then it does nothing, and returns false.
func (x *Index) AddNew(h, row uint32) bool {
	t := &x.tables[h>>24]
	if t.n == t.most {
		x.makeRoom(t)
	}
	at := t.home(h)
	l := &t.lines[at]
	if (l.alike(h) != 0 || l.goesOn(h)) && x.has(t, h) {
		return false
	}
	free := l.free()
	if free == 0 && x.gone > 0 {
		x.purgeLine(t, at)
		free = l.free()
	}
	if free != 0 {
		l.set(slotOf(free), h, row)
	} else {
		t.put(h, row)
	}
	t.n++
	x.rows++
	return true
}

// has reports whether a row in a table has the hash.
func (x *Index) has(t *table, h uint32) bool {
	for at, left := t.home(h), len(t.lines); left > 0; at, left = t.after(at), left-1 {
		l := &t.lines[at]
		for m := l.alike(h); m != 0; m &= m - 1 {
			if s := slotOf(m); l.mids[s] == midOf(h) && !x.isGone(l.rows[s]) {
				return true
			}
		}
		if !l.goesOn(h) {
			return false
		}
	}
	return false
}

// makeRoom is for a full table.
func (x *Index) makeRoom(t *table) {
	if 5*x.gone > x.rows {
		x.purge(t)
	}
	if 8*t.n >= 7*t.most {
		t.resize(larger(len(t.lines)))
	}
}

// forget notes that n joined rows are forgotten, and the number of the first that is not.
func (x *Index) forget(n int, oldest uint32) {
	x.gone += n
	x.oldest = oldest
	for x.due += n; x.due >= purgeEach; x.due -= purgeEach {
		x.purge(&x.tables[x.purged])
		x.purged++
	}
}

// purgeEach is after how many forgotten rows a table is purged even if it has room: each is before the numbers of
// forgotten rows, which are modulo 2³¹, could be taken for those of others.
const purgeEach = 1 << 20

// isGone reports whether a number is that of a forgotten row.
func (x *Index) isGone(row uint32) bool {
	return x.gone > 0 && IsJoined(row) && int32(row-x.oldest) < 0
}

// purge takes the forgotten rows out of a table.
func (x *Index) purge(t *table) {
	for at := range t.lines {
		x.purgeLine(t, at)
	}
}

func (x *Index) purgeLine(t *table, at int) {
	l := &t.lines[at]
	for m := l.used(); m != 0; m &= m - 1 {
		if s := slotOf(m); x.isGone(l.rows[s]) {
			t.remove(l.hash(s), at, s)
			x.gone--
			x.rows--
		}
	}
}

// Lookup returns the rows that may have the id, in no order; valid until the next call.
func (x *Index) Lookup(h uint32) []uint32 {
	t := &x.tables[h>>24]
	found := x.found[:0]
	for at, left := t.home(h), len(t.lines); left > 0; at, left = t.after(at), left-1 {
		l := &t.lines[at]
		for m := l.alike(h); m != 0; m &= m - 1 {
			if s := slotOf(m); l.mids[s] == midOf(h) && !x.isGone(l.rows[s]) {
				found = append(found, l.rows[s])
			}
		}
		if !l.goesOn(h) {
			break
		}
	}
	x.found = found
	return found
}

// Waiting finds for each hash a row that has not joined, and its place for ReplaceAt and RemoveAt; 1 where there is
// none.
func (x *Index) Waiting(hashes, rows, places []uint32) {
	for r, h := range hashes {
		rows[r] = 1
		t := &x.tables[h>>24]
	lines:
		for at, left := t.home(h), len(t.lines); left > 0; at, left = t.after(at), left-1 {
			l := &t.lines[at]
			for m := l.alike(h); m != 0; m &= m - 1 {
				if s := slotOf(m); l.mids[s] == midOf(h) && !IsJoined(l.rows[s]) {
					rows[r], places[r] = l.rows[s], uint32(at)<<3|uint32(s)
					break lines
				}
			}
			if !l.goesOn(h) {
				break
			}
		}
	}
}

// Replace lets a row take the place of another of the same id; false where that is not in the index.
func (x *Index) Replace(h, row, by uint32) bool {
	t := &x.tables[h>>24]
	l, s, _ := t.find(h, row)
	if l == nil {
		return false
	}
	l.rows[s] = by
	return true
}

// ReplaceAt is Replace of a row that was at a place of its table, and is there still unless the table has grown.
func (x *Index) ReplaceAt(h, place, row, by uint32) bool {
	t := &x.tables[h>>24]
	if at := int(place >> 3); at < len(t.lines) && t.lines[at].is(int(place&7), h, row) {
		t.lines[at].rows[place&7] = by
		return true
	}
	return x.Replace(h, row, by)
}

// Remove removes a row; false where it is not in the index.
func (x *Index) Remove(h, row uint32) bool {
	t := &x.tables[h>>24]
	l, s, at := t.find(h, row)
	if l == nil {
		return false
	}
	t.remove(h, at, s)
	x.rows--
	return true
}

// RemoveAt is Remove of a row that was at a place of its table, as of ReplaceAt.
func (x *Index) RemoveAt(h, place, row uint32) bool {
	t := &x.tables[h>>24]
	if at := int(place >> 3); at < len(t.lines) && t.lines[at].is(int(place&7), h, row) {
		t.remove(h, at, int(place&7))
		x.rows--
		return true
	}
	return x.Remove(h, row)
}

// Shrink frees memory after a burst. Removals do not shrink, because rows that leave in bursts also come in bursts.
func (x *Index) Shrink() {
	if 2*x.gone > x.rows {
		for i := range x.tables {
			x.purge(&x.tables[i])
		}
	}
	for i := range x.tables {
		t := &x.tables[i]
		n := len(t.lines)
		for t.n < n && n > minLines {
			n = max(n/2, minLines)
		}
		if n < len(t.lines) {
			t.resize(n)
		}
	}
}

// bytes are about those that the tables take.
func (x *Index) bytes() (n int) {
	for i := range x.tables {
		n += lineBytes * len(x.tables[i].lines)
	}
	return n
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
