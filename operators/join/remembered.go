package join

import (
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/join/store"
)

// remembered has the predictions that have joined, to recognise repeats of them and further labels. They form a queue
// in the order in which they joined, and leave at the front when there are more than Options.Remember or when their
// wait is over.
type remembered struct {
	cfg    *Options
	shared *store.Index  // the buffer's
	met    *store.Joined // nil until one has joined
}

// joined returns the queue.
func (w *remembered) joined() *store.Joined {
	if w.met == nil {
		w.met = store.NewJoined(store.JoinedOptions{Dir: w.cfg.Dir, Prefix: w.cfg.Name + joinedSuffix,
			BlockRows: w.cfg.SegmentBytes / 40, InMemory: w.cfg.MemoryBytes == 0, Index: w.shared})
	}
	return w.met
}

// joinedSuffix distinguishes the queue's work directory from that of the waiting rows.
const joinedSuffix = "-joined"

// joinedOf returns the remembered rows of an id.
func (w *remembered) joinedOf(id *arrowio.ID) []store.Met {
	if w.met == nil || w.met.Len() == 0 {
		return nil
	}
	return w.met.Find((*store.ID)(id))
}

// join moves a joined prediction to the queue.
func (w *buffer) join(e int32) error {
	p := &w.entries[e]
	id, ts, key := p.id, p.ts, &w.models[p.model]
	if w.cfg.Remember > 0 && !p.onDisk && p.chain < 0 {
		// It is alone, as nearly all are: what it becomes takes its place in the index.
		if moved, err := w.joined().Move((*store.ID)(&id), ts, store.Key(*key), refOf(e)); moved {
			w.n.predictions--
			w.leave(e)
			return err
		}
	}
	w.remove(e)
	return w.remember(&id, ts, *key)
}

func (w *remembered) remember(id *arrowio.ID, ts int64, key arrowio.ModelKey) error {
	if w.cfg.Remember == 0 {
		return nil
	}
	return w.joined().Add((*store.ID)(id), ts, store.Key(key))
}

// rememberInline remembers prefetched rows of a batch from i on, up to the first that came without its label, has
// another model version, or has an id that a known row may have. It returns how many. Nearly all rows qualify.
func rememberInline(w *buffer, b *arrowio.Batch, i int) (n int, err error) {
	if w.onDisk() > 0 || w.n.bounded() > w.cfg.MaxRows {
		return 0, nil
	}
	end := i + 1
	for end < w.looked && b.Good(end) && b.Label[end] >= 0 && (b.Model == nil || b.Model[end] == b.Model[i]) {
		end++
	}
	key, _ := b.ModelOf(i)
	hashes := w.hashes[w.at(i):]
	return store.AddNew(w.joined(), &store.Arrivals[arrowio.ID]{IDs: b.IDs[i:end], TS: b.TS[i:end], Hashes: hashes,
		Key: store.Key(key)}, w.cfg.Remember)
}

// forget drops the oldest remembered rows beyond the bound.
func (w *remembered) forget() {
	if w.met != nil && w.met.Len() > w.cfg.Remember {
		w.met.Forget(w.met.Len() - w.cfg.Remember)
	}
}

// forgetBefore forgets, from the front of the queue, the predictions of before ts.
func (w *remembered) forgetBefore(ts int64) {
	for w.met != nil {
		oldest, ok := w.met.Oldest()
		if !ok || oldest >= ts {
			return
		}
		w.met.Forget(1)
	}
}

// close removes the files on disk.
func (w *buffer) close() error {
	var errs []error
	if w.store != nil {
		errs = append(errs, w.store.Close())
	}
	if w.met != nil {
		errs = append(errs, w.met.Close())
	}
	return errors.Join(errs...)
}

// restored counts a restored row on disk.
func (w *buffer) restored(n uint64, st store.State, row *store.Row) error {
	if len(row.Body) < 9 {
		return fmt.Errorf("join store: row %d has %d bytes", n, len(row.Body))
	}
	label := row.Body[0]&flagLabel != 0
	*w.n.of(label, st != stateWaiting)++
	if !label && len(row.Names) > 2 {
		w.dropped += w.droppedOf(row.Names[2:])
	}
	return nil
}
