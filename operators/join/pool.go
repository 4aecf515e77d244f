package join

import "math/bits"

// pools has a pool for each row length, in words.
type pools struct {
	by    map[int]*pool
	last  *pool // the one used last
	words int   // of its rows
}

// of returns the pool for rows of so many words.
func (p *pools) of(words int) *pool {
	if p.last != nil && p.words == words {
		return p.last
	}
	q := p.by[words]
	if q == nil {
		q = newPool(words)
		p.by[words] = q
	}
	p.last, p.words = q, words
	return q
}

// put replaces a pool; nil removes it.
func (p *pools) put(words int, q *pool) {
	if p.last = nil; q == nil {
		delete(p.by, words)
		return
	}
	p.by[words] = q
}

// pool has the rows of one length: K scores and the features. They lie in slabs that never move, so growing copies
// nothing.
type pool struct {
	words int
	shift int // a slab has 1<<shift rows
	slabs [][]float32
	made  int // slots, free ones included
	free  []int32
}

// slabWords is about the size of a slab.
const slabWords = 1 << 16

func newPool(words int) *pool {
	return &pool{words: words, shift: bits.Len(uint(slabWords/words)|1) - 1}
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
	if p.made>>p.shift == len(p.slabs) {
		p.slabs = append(p.slabs, make([]float32, p.words<<p.shift))
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
		case free == 0 && p.follows(int32(p.made), first, n):
			p.made++
		default:
			return first, n
		}
	}
	return first, n
}

func (p *pool) drop(slot int32) { p.free = append(p.free, slot) }
