package join

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/join/store"
)

// ahead reads the memory that a batch needs for many rows together: the reads wait for memory at the same time, not
// one after the other.
type ahead struct {
	looked     int      // rows of the current batch that were prefetched
	hashes     []uint32 // of the rows prefetched last
	refs       []uint32 // for labels: the entries with these hashes, by their number in the index
	places     []uint32 // for labels: where these are in the index
	run        []int32  // entries of the rows that are taken together
	dicts      []dict   // of their slice columns
	waits      bool     // a label has begun to wait since then
	prefetched int64
}

// atOnce is the number of rows that are prefetched together.
const atOnce = 512

// look prefetches rows of a batch from i on, unless it has done so already.
func look(w *buffer, b *arrowio.Batch, i int) {
	if i < w.looked {
		return
	}
	w.looked = min(i+atOnce, b.N)
	rows := w.looked - i
	w.hashes = slices.Grow(w.hashes[:0], atOnce)[:rows]
	for r := range w.hashes {
		w.hashes[r] = w.index.Hash((*store.ID)(&b.IDs[i+r]))
	}
	w.waits = false
	w.index.Prefetch(w.hashes)
	if b.Kind == arrowio.Labels {
		w.prefetch()
	}
}

// at returns the index of prefetched row i in hashes.
func (a *ahead) at(i int) int { return len(a.hashes) - (a.looked - i) }

// foundAhead returns the prediction in memory that prefetching found for label i; -1 if it must be looked up.
func foundAhead(w *memory, b *arrowio.Batch, i int) int32 {
	ref := w.refs[w.at(i)]
	if w.waits || store.IsJoined(ref) {
		return -1
	}
	if p := &w.entries[ref>>1]; p.slot >= 0 && !p.onDisk && p.id == b.IDs[i] { // only predictions have scores
		return int32(ref >> 1)
	}
	return -1
}

// prefetch reads the entries of the hashes, and then their scores.
func (w *memory) prefetch() {
	w.refs = slices.Grow(w.refs[:0], atOnce)[:len(w.hashes)]
	w.places = slices.Grow(w.places[:0], atOnce)[:len(w.hashes)]
	w.index.Waiting(w.hashes, w.refs, w.places)
	sum := int64(0)
	for _, ref := range w.refs {
		if !store.IsJoined(ref) {
			sum += w.entries[ref>>1].ts
		}
	}
	var pool *pool
	for _, ref := range w.refs {
		if store.IsJoined(ref) {
			continue
		}
		if p := &w.entries[ref>>1]; p.slot >= 0 {
			if words := w.words(p); pool == nil || pool.words != words {
				pool = w.pools.of(words)
			}
			row := pool.row(p.slot)[:p.k] // a short one may lie in two lines of the cache
			sum += int64(math.Float32bits(row[0])) + int64(math.Float32bits(row[len(row)-1]))
			if w.columns > 0 {
				sum += int64(w.slices[int(ref>>1)*w.columns])
			}
		}
	}
	w.prefetched = sum // so that the reads are not left out
}
