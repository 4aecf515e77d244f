package join

import (
	"cmp"

	"github.com/plumbline/plumbline/operators/join/store"
)

// minShrink is the number of entries, or score rows of one K, below which memory is not shrunk.
const minShrink = 1024

// shrink frees memory after a burst: when less than half is in use, entries, index and score rows are copied into
// memory a quarter larger than they need. More than n/3 removals come before a copy of n, so the cost per row is
// bounded. Results do not depend on where an entry is. Entries get new numbers: callers must not keep an entry, nor a
// copy of a row on disk.
func (w *memory) shrink() {
	w.index.Shrink()
	least := cmp.Or(w.cfg.minShrink, minShrink)
	if len(w.entries) > least && 2*w.live < len(w.entries) {
		w.shrinkEntries()
	}
	for k, p := range w.pools.by {
		switch used := p.used(); {
		case used == 0:
			w.pools.put(k, nil)
		case p.made > least && 2*used < p.made:
			w.pools.put(k, w.shrunk(p))
		}
	}
}

// unboundedSlack is what slabs may take beyond their rows where join.memory_bytes sets no bound.
const unboundedSlack = 32 << 20

// bound frees the slots of rows that have gone once slabs take more than twice join.memory_bytes: until Advance shrinks
// the pools, which the writer of the rows can delay, rows of ever new lengths could leave nearly empty ones behind.
// After it slabs take a quarter more than their rows, so as many bytes of rows have come before it copies them again.
func bound(w *memory) {
	if w.pools.bytes <= 2*max(w.bytes, cmp.Or(w.cfg.MemoryBytes, unboundedSlack)) {
		return
	}
	old := w.pools.by
	w.pools = pools{by: map[int]*pool{}}
	for e := range w.inOrder {
		q := &w.entries[e]
		if q.slot < 0 {
			continue
		}
		n := w.words(q)
		to := w.pools.of(n)
		if to.room == 0 {
			to.grow(roomFor(old[n].used()))
		}
		slot := to.take()
		copy(to.row(slot), old[n].row(q.slot))
		q.slot = slot
	}
}

// roomFor is the number of slots for so many rows, and some more.
func roomFor(rows int) int { return rows + rows/4 }

// shrinkEntries renumbers the entries in order of arrival, which is the reverse order of every id's chain.
func (w *memory) shrinkEntries() {
	old, values, order := w.entries, w.slices, w.order[w.front:]
	for e := range w.inOrder { // old and new numbers must not meet
		w.index.Remove(w.index.Hash((*store.ID)(&old[e].id)), refOf(e))
	}
	w.entries = make([]entry, 0, w.live+w.live/4)
	w.slices = make([]int32, 0, cap(w.entries)*w.columns)
	w.free = nil
	w.arrivals = arrivals{order: make([]int32, 0, cap(w.entries))}
	for _, from := range order {
		if from < 0 {
			continue
		}
		e := int32(len(w.entries))
		w.entries = append(w.entries, old[from])
		w.slices = append(w.slices, values[int(from)*w.columns:(int(from)+1)*w.columns]...)
		w.entries[e].chain = -1
		w.link(e, false)
	}
}

// shrunk returns a pool with only the used rows of p.
func (w *memory) shrunk(p *pool) *pool {
	out := newPool(p.words, p.held)
	out.grow(roomFor(p.used()))
	for e := range w.inOrder {
		if q := &w.entries[e]; q.slot >= 0 && w.words(q) == p.words {
			to := out.take()
			copy(out.row(to), p.row(q.slot))
			q.slot = to
		}
	}
	return out
}
