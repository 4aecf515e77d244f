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
		switch used := len(p.owner) - len(p.free); {
		case used == 0:
			w.pools.put(k, nil)
		case len(p.owner) > least && 2*used < len(p.owner):
			w.pools.put(k, w.shrunk(p))
		}
	}
}

// shrinkEntries puts the entries in order of arrival, which is also that of every id's chain, the other way round.
func (w *memory) shrinkEntries() {
	old, values, oldest := w.entries, w.slices, w.oldest
	for e := oldest; e >= 0; e = old[e].next { // old and new numbers must not meet
		w.index.Remove(w.index.Hash((*store.ID)(&old[e].id)), refOf(e))
	}
	w.entries = make([]entry, 0, w.live+w.live/4)
	w.slices = make([]int32, 0, cap(w.entries)*w.columns)
	w.free = nil
	w.oldest, w.newest = -1, -1
	for from := oldest; from >= 0; from = old[from].next {
		e := int32(len(w.entries))
		w.entries = append(w.entries, old[from])
		w.slices = append(w.slices, values[int(from)*w.columns:(int(from)+1)*w.columns]...)
		p := &w.entries[e]
		p.chain = -1
		w.link(e, false)
		if p.slot >= 0 {
			w.pools.of(w.words(p)).owner[p.slot] = e
		}
	}
}

// shrunk is a pool with the used rows of another.
func (w *memory) shrunk(p *pool) *pool {
	out := newPool(p.words)
	for slot, e := range p.owner {
		if e >= 0 {
			to := out.take(e)
			w.entries[e].slot = to
			copy(out.row(to), p.row(int32(slot)))
		}
	}
	return out
}
