package operators

import (
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/joinstore"
)

// remembered are the predictions that have joined, so that a repeat of one is known for what it is, and a second label
// for it too. They are a queue in the order in which they joined: it is cut at the front where there are more than
// JoinConfig.Remember, and for as long as what is there is past its wait.
type remembered struct {
	met *joinstore.Joined // nil until one has joined
}

// joined is the queue.
func (w *waiting) joined() *joinstore.Joined {
	if w.met == nil {
		w.met = joinstore.NewJoined(joinstore.JoinedOptions{Dir: w.cfg.Dir, Prefix: w.cfg.Name + joinedSuffix, BlockRows: w.cfg.SegmentBytes / 40, InMemory: w.cfg.MemoryBytes == 0})
	}
	return w.met
}

// joinedSuffix tells the queue's work directory from that of the rows that wait.
const joinedSuffix = "-joined"

// joinedOf is what is remembered of an id.
func (w *waiting) joinedOf(id *arrowio.ID) []joinstore.Met {
	if w.met == nil || w.met.Len() == 0 {
		return nil
	}
	return w.met.Find((*joinstore.ID)(id))
}

// join moves a prediction that has joined to the queue.
func (w *waiting) join(e int32) error {
	p := w.entries[e]
	w.remove(e)
	return w.remember(&p.id, p.ts, w.models[p.model])
}

func (w *waiting) remember(id *arrowio.ID, ts int64, key arrowio.ModelKey) error {
	if w.cfg.Remember == 0 {
		return nil
	}
	return w.joined().Add((*joinstore.ID)(id), ts, joinstore.Key(key))
}

// forget forgets what is more than may be remembered.
func (w *waiting) forget() {
	for w.met != nil && w.met.Len() > w.cfg.Remember {
		w.met.Forget()
	}
}

// forgetBefore forgets the predictions of before ts that joined before any other.
func (w *waiting) forgetBefore(ts int64) {
	for w.met != nil {
		oldest, ok := w.met.Oldest()
		if !ok || oldest >= ts {
			return
		}
		w.met.Forget()
	}
}

// close removes what is on disk.
func (w *waiting) close() error {
	var errs []error
	if w.store != nil {
		errs = append(errs, w.store.Close())
	}
	if w.met != nil {
		errs = append(errs, w.met.Close())
	}
	return errors.Join(errs...)
}

// oldJoined are the predictions that have joined of a state of checkpoint version 1 or 2: there they are among those
// that wait, in order of arrival.
type oldJoined struct{ disk, memory []oldRow }

type oldRow struct {
	number uint64 // on disk
	id     arrowio.ID
	ts     int64
	key    arrowio.ModelKey
}

// visit counts a row on disk, or notes that it has joined.
func (o *oldJoined) visit(w *waiting) func(uint64, joinstore.State, *joinstore.Row) error {
	return func(n uint64, st joinstore.State, row *joinstore.Row) error {
		if len(row.Body) < 9 {
			return fmt.Errorf("join store: row %d has %d bytes", n, len(row.Body))
		}
		label := row.Body[0]&flagLabel != 0
		if st != stateJoined || label {
			*w.n.of(label, st != stateWaiting)++
			if !label && len(row.Names) > 2 {
				w.droppedOf(row.Names[2:], row.Body[0])
			}
			return nil
		}
		if len(row.Names) < 2 {
			return fmt.Errorf("join store: row %d, a prediction without a model", n)
		}
		key := arrowio.ModelKey{Model: row.Names[0].Text, Version: row.Names[1].Text}
		o.disk = append(o.disk, oldRow{n, row.ID, rowTime(row), key})
		return nil
	}
}

// adopt moves them to the queue.
func (w *waiting) adopt(o *oldJoined) error {
	for i := range o.disk {
		r := &o.disk[i]
		w.store.Remove(r.id, r.number)
		if err := w.remember(&r.id, r.ts, r.key); err != nil {
			return err
		}
	}
	for i := range o.memory {
		r := &o.memory[i]
		if err := w.remember(&r.id, r.ts, r.key); err != nil {
			return err
		}
	}
	w.forget()
	return nil
}
