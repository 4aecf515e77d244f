package join

import (
	"cmp"

	"github.com/plumbline/plumbline/operators/join/store"
)

// minShrink is how many entries, or score rows of one K, are not worth less memory.
const minShrink = 1024

// shrink frees memory after a burst: once less than half of it is in use, entries, index and score rows are copied to
// memory of their own size and a quarter more. More than n/3 removals precede a copy of n, so the cost of a row stays
// bounded. No result depends on the place of an entry. Entries change their numbers: callers must not keep one, nor a
// copy of a row on disk.
func (w *memory) shrink() {
	w.index.Shrink()
	least := cmp.Or(w.cfg.minShrink, minShrink)
	if len(w.entries) > least && 2*w.live < len(w.entries) {
		w.shrinkEntries()
	}
	for k, p := range w.pools.by {
		switch used := p.made - len(p.free); {
		case used == 0:
			w.pools.put(k, nil)
		case p.made > least && 2*used < p.made:
			w.pools.put(k, w.shrunk(p))
		}
	}
}

// shrinkEntries puts the entries in order of arrival, which is also that of every id's chain, the other way round.
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

// shrunk is a pool with the used rows of another.
func (w *memory) shrunk(p *pool) *pool {
	out := newPool(p.words)
	for e := range w.inOrder {
		if q := &w.entries[e]; q.slot >= 0 && w.words(q) == p.words {
			to := out.take()
			copy(out.row(to), p.row(q.slot))
			q.slot = to
		}
	}
	return out
}
