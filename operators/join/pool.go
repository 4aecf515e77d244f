package join

import "math/bits"

// pools has a pool for each row length, in words.
type pools struct {
	by    map[int]*pool
	last  *pool // the one used last
	words int   // of its rows
	bytes int   // of all slabs
}

// of returns the pool for rows of so many words.
func (p *pools) of(words int) *pool {
	if p.last != nil && p.words == words {
		return p.last
	}
	q := p.by[words]
	if q == nil {
		q = newPool(words, &p.bytes)
		p.by[words] = q
	}
	p.last, p.words = q, words
	return q
}

// put replaces a pool; nil removes it.
func (p *pools) put(words int, q *pool) {
	p.bytes -= p.by[words].bytes()
	if p.last = nil; q == nil {
		delete(p.by, words)
		return
	}
	p.by[words] = q
}

// pool has the rows of one length: K scores and the features. They lie in slabs that never move, so growing copies
// nothing. Only the first slab begins with room for one row and doubles: whoever writes the rows chooses their lengths,
// and so the number of pools.
type pool struct {
	words int
	shift int // a slab has 1<<shift rows, unless it is the first
	slabs [][]float32
	room  int // slots in slabs
	made  int // slots, free ones included
	free  []int32
	held  *int // bytes of all pools' slabs
}

// slabWords is about the size of a slab.
const slabWords = 1 << 16

func newPool(words int, held *int) *pool {
	return &pool{words: words, shift: bits.Len(uint(slabWords/words)|1) - 1, held: held}
}

func (p *pool) bytes() int { return 4 * p.words * p.room }

// used returns the number of slots that are not free.
func (p *pool) used() int { return p.made - len(p.free) }

// grow adds a slab, or enlarges the first one while it is short, to at least so many rows if a slab has them.
func (p *pool) grow(rows int) {
	before := p.bytes()
	if full := 1 << p.shift; p.room >= full {
		p.slabs = append(p.slabs, make([]float32, p.words<<p.shift))
		p.room += full
	} else {
		p.room = min(max(1, 2*p.room, rows), full)
		first := make([]float32, p.words*p.room)
		if len(p.slabs) > 0 {
			copy(first, p.slabs[0])
		}
		p.slabs = append(p.slabs[:0], first)
	}
	*p.held += p.bytes() - before
}

func (p *pool) row(slot int32) []float32 { return p.rows(slot, 1) }

// rows returns n consecutive rows of a slab.
func (p *pool) rows(slot int32, n int) []float32 {
	at := int(slot) & (1<<p.shift - 1) * p.words
	return p.slabs[slot>>p.shift][at : at+n*p.words]
}

// follows reports whether a slot is the n-th after first in the same slab.
func (p *pool) follows(slot, first int32, n int) bool {
	return int(slot) == int(first)+n && slot>>p.shift == first>>p.shift
}

// take allocates a slot.
func (p *pool) take() int32 {
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s
	}
	if p.made == p.room {
		p.grow(1)
	}
	p.made++
	return int32(p.made - 1)
}

// takeRun allocates a slot and as many free ones right after it as there are, at most most in all.
func (p *pool) takeRun(most int) (first int32, n int) {
	first = p.take()
	for n = 1; n < most; n++ {
		switch free := len(p.free); {
		case free > 0 && p.follows(p.free[free-1], first, n):
			p.free = p.free[:free-1]
		case free == 0 && p.made < p.room && p.follows(int32(p.made), first, n):
			p.made++
		default:
			return first, n
		}
	}
	return first, n
}

func (p *pool) drop(slot int32) { p.free = append(p.free, slot) }
