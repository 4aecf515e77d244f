package stats

import "github.com/plumbline/plumbline/calib/acc"

// setPool has emptied sets for reuse, by K.
type setPool struct {
	pool        map[int][]*acc.Set
	pooledBytes int // memory of the sets in pool
}

// maxPooled bounds the sets of one K, and maxPooledBytes the memory of all. An emptied set keeps its memory, so without
// the bounds the pool would stay as large as the largest burst.
const (
	maxPooled      = 256
	maxPooledBytes = 32 << 20
)

// take returns a set for so many classes, nil if there is none.
func (p *setPool) take(classes int) *acc.Set {
	free := p.pool[classes]
	if len(free) == 0 {
		return nil
	}
	set := free[len(free)-1]
	p.pool[classes] = free[:len(free)-1]
	p.pooledBytes -= set.Memory()
	return set
}

// recycle empties a set and keeps it, if there is room.
func (p *setPool) recycle(classes int, set *acc.Set) {
	if set.Pieced() { // it would keep others' memory
		return
	}
	if n := set.Memory(); len(p.pool[classes]) < maxPooled && p.pooledBytes+n <= maxPooledBytes {
		set.Reset()
		p.pool[classes] = append(p.pool[classes], set)
		p.pooledBytes += n
	}
}
