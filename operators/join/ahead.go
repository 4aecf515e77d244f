package join

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/join/store"
)

// ahead has the memory that a batch needs read for many rows at once: one row after the other would wait for it several
// times each.
type ahead struct {
	looked     int      // rows of the batch at hand that were looked at
	hashes     []uint32 // of the rows looked at last
	refs       []uint32 // of labels: the entries that have them, as numbers in the index
	places     []uint32 // of labels: where those are in the index
	run        []int32  // entries of the rows that are taken at once
	dicts      []dict   // of their slice columns
	waits      bool     // a label has begun to wait since
	prefetched int64
}

// atOnce is how many rows are looked at.
const atOnce = 512

// look looks at the rows of a batch from i on, unless it has.
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

// at is the place of row i, which was looked at, among those.
func (a *ahead) at(i int) int { return len(a.hashes) - (a.looked - i) }

// foundAhead is the prediction that waits in memory for label i and was found when it was looked at; -1 where it must
// be looked for.
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

// prefetch finds the entries of the hashes, reads them, and then their scores.
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
