package store

import "math/bits"

// table is a hash table of lines. A row is in the line that its hash says, or in one of the next where that is full.
type table struct {
	lines []line
	n     int // rows
	most  int // it grows where it has so many
}

// line is eight slots in one line of the processor's cache: nearly every row costs one wait for memory. Bytes of the
// hashes are compared eight at a time, and no row moves when another leaves.
type line struct {
	tags   uint64    // of each slot the last byte of its hash, which is not 0; 0 = free
	passed uint32    // rows that are in later lines because this one was full
	past   uint32    // has a bit of each of them, so that few others are looked for there
	mids   [8]uint16 // of each slot the two bytes of its hash before the last
	rows   [8]uint32
}

const (
	lineBytes = 64
	minLines  = 2
	eachByte  = 0x0101010101010101
	eachTop   = 0x8080808080808080
)

func tagOf(h uint32) uint64 { return uint64(h & 0xff) }

func midOf(h uint32) uint16 { return uint16(h >> 8) }

// alike marks the slots with the tag of a hash by the top bits of their bytes.
func (l *line) alike(h uint32) uint64 { return ^nonzero(l.tags^tagOf(h)*eachByte) & eachTop }

// free marks the slots that are free, used the others.
func (l *line) free() uint64 { return ^nonzero(l.tags) & eachTop }

func (l *line) used() uint64 { return nonzero(l.tags) & eachTop }

// nonzero has the top bits of the bytes that are not 0.
func nonzero(v uint64) uint64 { return v&^eachTop + ^uint64(eachTop) | v }

// goesOn reports whether a row of a hash may be in a later line.
func (l *line) goesOn(h uint32) bool { return l.past>>(h&31)&1 != 0 }

// slotOf is the first slot that is marked.
func slotOf(marks uint64) int { return bits.TrailingZeros64(marks) >> 3 & 7 }

// set fills a free slot.
func (l *line) set(s int, h, row uint32) {
	l.tags |= tagOf(h) << (8 * s)
	l.mids[s&7], l.rows[s&7] = midOf(h), row
}

// is reports whether a slot has a row.
func (l *line) is(s int, h, row uint32) bool {
	return l.rows[s&7] == row && l.mids[s&7] == midOf(h) && l.tags>>(8*s&63)&0xff == tagOf(h)
}

// hash is what a slot has of its hash: all but the number of the table.
func (l *line) hash(s int) uint32 { return uint32(l.mids[s])<<8 | uint32(l.tags>>(8*s&63)&0xff) }

// home is the first line that may have a hash: the tag has the bits that matter least here.
func (t *table) home(h uint32) int { return int(uint64(h&0xffffff) * uint64(len(t.lines)) >> 24) }

// after is the line that takes what line at has no room for.
func (t *table) after(at int) int {
	if at++; at == len(t.lines) {
		return 0
	}
	return at
}

// find returns the line of a row, its slot, and the number of the line; nil where it is not there.
func (t *table) find(h, row uint32) (l *line, s, at int) {
	at = t.home(h)
	for left := len(t.lines); left > 0; at, left = t.after(at), left-1 {
		l := &t.lines[at]
		for m := l.alike(h); m != 0; m &= m - 1 {
			if s := slotOf(m); l.is(s, h, row) {
				return l, s, at
			}
		}
		if !l.goesOn(h) {
			break
		}
	}
	return nil, 0, 0
}

// put puts a row into the first line from its home on that has room.
func (t *table) put(h, row uint32) {
	for at := t.home(h); ; at = t.after(at) {
		l := &t.lines[at]
		if free := l.free(); free != 0 {
			l.set(slotOf(free), h, row)
			return
		}
		l.passed++
		l.past |= 1 << (h & 31)
	}
}

// remove frees a slot of a line.
func (t *table) remove(h uint32, at, s int) {
	t.lines[at].tags &^= 0xff << (8 * s & 63)
	for i := t.home(h); i != at; i = t.after(i) {
		l := &t.lines[i]
		if l.passed--; l.passed == 0 {
			l.past = 0
		}
	}
	t.n--
}

// larger is the number of lines after n: with smaller steps each row would move more often until all are there,
// and each step takes memory that the process has not touched before.
func larger(n int) int { return max(minLines, 2*n) }

// resize moves the rows to another number of lines, with room for six rows each: when they are there one line in seven
// is full, and a row that finds its line full is one more wait for memory whenever it is looked for. Both are in the
// order of hashes, so memory is read and written from one end to the other.
func (t *table) resize(n int) {
	old := t.lines
	t.lines, t.most = make([]line, n), 6*n
	for i := range old {
		l := &old[i]
		for m := l.used(); m != 0; m &= m - 1 {
			s := slotOf(m)
			t.put(l.hash(s), l.rows[s])
		}
	}
}
