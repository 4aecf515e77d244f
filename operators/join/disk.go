package join

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/join/store"
)

// disk is the older tier of what waits: rows that memory had no room for, in order of arrival. All of them came before
// every entry in memory.
//
// A row on disk takes part in the join as a copy in memory: recall makes the copies of one id, which follow its entries
// in memory, and release drops them when the row at hand is done. Changes go to the store at once.
type disk struct {
	cfg      *Options
	store    *store.Store // nil until the first row comes
	recalled int32        // first copy; -1 = none
	rows     []uint64
	spilled  store.Row
	head     head
}

// head describes the oldest row on disk.
type head struct {
	known bool
	n     uint64
	id    arrowio.ID
	ts    int64 // the label's, of a label
	label bool
}

// States of rows on disk.
const (
	stateWaiting store.State = iota
	stateServed              // a label that has met a prediction
)

func (w *disk) openStore() {
	if w.store == nil {
		w.store = store.New(store.Options{Dir: w.cfg.Dir, Prefix: w.cfg.Name, SegmentBytes: w.cfg.SegmentBytes})
	}
}

func (w *disk) onDisk() int {
	if w.store == nil {
		return 0
	}
	return w.store.Len()
}

// spill moves the oldest entries to disk while memory holds more than allowed.
func (w *buffer) spill() error {
	for w.cfg.MemoryBytes > 0 && w.bytes > w.cfg.MemoryBytes && w.live > 0 {
		w.openStore()
		e := w.oldest()
		p := &w.entries[e]
		w.encodeRow(e, &w.spilled)
		n, err := w.store.Append(&w.spilled)
		if err != nil {
			return err
		}
		if p.used {
			w.store.SetState(n, stateServed)
		}
		w.unlink(e)
	}
	return nil
}

// recall copies the rows of an id from disk into memory.
func (w *buffer) recall(id arrowio.ID) error {
	if w.store == nil || w.store.Len() == 0 {
		return nil
	}
	last := int32(-1)
	w.rows = w.store.Candidates(id, w.rows[:0])
	for at, n := range w.rows {
		row, err := w.store.Read(n)
		if err != nil {
			return err
		}
		if row.ID != id {
			continue
		}
		e := w.place(id)
		p := &w.entries[e]
		p.onDisk, p.at, p.used = true, uint32(at), w.store.StateOf(n) != stateWaiting
		if err := w.decodeRow(e, row); err != nil {
			return fmt.Errorf("join store: row %d: %w", n, err)
		}
		if last < 0 {
			w.recalled = e
		} else {
			w.entries[last].chain = e
		}
		last = e
	}
	return nil
}

// release drops the copies.
func (w *buffer) release() {
	for e := w.recalled; e >= 0; {
		p := &w.entries[e]
		next := p.chain
		w.dropScores(p)
		w.free = append(w.free, e)
		e = next
	}
	w.recalled = -1
}

func (w *buffer) removeRecalled(e int32) {
	p := &w.entries[e]
	if w.recalled == e {
		w.recalled = p.chain
	} else {
		before := w.recalled
		for w.entries[before].chain != e {
			before = w.entries[before].chain
		}
		w.entries[before].chain = p.chain
	}
	n := w.rows[p.at]
	w.store.Remove(p.id, n)
	w.head.known = w.head.known && w.head.n != n
	w.dropScores(p)
	w.free = append(w.free, e)
}

// oldestRow returns the oldest row on disk, and whether there is one.
func (w *disk) oldestRow() (*head, bool, error) {
	if w.onDisk() == 0 {
		return nil, false, nil
	}
	h := &w.head
	if h.known {
		return h, true, nil
	}
	n, ok := w.store.Oldest()
	if !ok {
		return nil, false, nil
	}
	row, err := w.store.Read(n)
	if err != nil {
		return nil, false, err
	}
	if len(row.Body) < 9 {
		return nil, false, fmt.Errorf("join store: row %d has %d bytes", n, len(row.Body))
	}
	*h = head{known: true, n: n, id: row.ID, label: row.Body[0]&flagLabel != 0, ts: rowTime(row)}
	return h, true, nil
}

// rowTime returns the time of a row; its body has at least 9 bytes.
func rowTime(r *store.Row) int64 { return int64(binary.LittleEndian.Uint64(r.Body[1:])) }

// oldestOf describes the oldest waiting row, in memory or on disk: its time, and whether it is a label and has joined.
func (w *buffer) oldestOf() (ts int64, label, used, ok bool, err error) {
	h, ok, err := w.oldestRow()
	if ok || err != nil {
		if err != nil {
			return 0, false, false, false, err
		}
		return h.ts, h.label, w.store.StateOf(h.n) != stateWaiting, true, nil
	}
	if w.live == 0 {
		return 0, false, false, false, nil
	}
	p := &w.entries[w.oldest()]
	return p.ts, p.label >= 0, p.used, true, nil
}

// removeOldest removes what oldestOf describes.
func (w *buffer) removeOldest() {
	if h := &w.head; h.known && w.onDisk() > 0 {
		*w.n.of(h.label, w.store.StateOf(h.n) != stateWaiting)--
		w.store.Remove(h.id, h.n)
		h.known = false
		return
	}
	w.remove(w.oldest())
}

// Flags of an entry in a checkpoint and on disk.
const (
	flagLabel = 1 << iota
	flagNamed
	flagUsed // a label that has met a prediction
	flagProbs
	flagFeatures
)

// encodeRow writes an entry as a row: names are those of model and version, then of the slice columns; the body is u8
// flags, fixed64 time, then of a label uvarint class, of a prediction f32 served, f32 weight, uvarint K, K times f32,
// and the features where the flag says so.
func (w *memory) encodeRow(e int32, r *store.Row) {
	p := &w.entries[e]
	r.ID, r.Names = p.id, r.Names[:0]
	if p.model >= 0 {
		m := w.models[p.model]
		r.Names = append(r.Names, store.Name{Text: m.Model, Set: true}, store.Name{Text: m.Version, Set: true})
	}
	b := append(r.Body[:0], binenc.Flags(p.label >= 0, p.named, p.used, p.probs, p.d > 0))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.ts))
	if p.label >= 0 {
		r.Body = binenc.AppendUvarint(b, uint64(p.label))
		return
	}
	r.Names = w.sliceNamesOf(r.Names, e)
	r.Body = w.appendFeatures(w.appendScores(b, p), p)
}

// decodeRow is the reverse of encodeRow; the row's state has been set.
func (w *memory) decodeRow(e int32, r *store.Row) error {
	p := &w.entries[e]
	in := binenc.NewReader(r.Body)
	flags := in.Byte()
	p.named, p.probs = flags&flagNamed != 0, flags&flagProbs != 0
	names := r.Names
	if len(names) >= 2 {
		p.model = w.model(arrowio.ModelKey{Model: names[0].Text, Version: names[1].Text})
		names = names[2:]
	}
	p.ts = int64(in.Fixed64())
	if flags&flagLabel != 0 {
		p.label = int32(in.Int("label", 0, math.MaxInt32))
		return in.Close()
	}
	if p.model < 0 {
		in.Failf("a prediction without a model")
	}
	w.setSlices(e, names)
	w.readScores(&in, e, flags)
	return in.Close()
}

// readScores is the reverse of appendScores, and of appendFeatures where the flags say so.
func (w *memory) readScores(in *binenc.Reader, e int32, flags byte) {
	p := &w.entries[e]
	p.served, p.weight = math.Float32frombits(in.Fixed32()), math.Float32frombits(in.Fixed32())
	w.readRow(in, e, flags)
}

// readRow reads uvarint K, K times f32, and the features where the flags say so.
func (w *memory) readRow(in *binenc.Reader, e int32, flags byte) {
	k := in.Count(4, 1<<24)
	if k == 0 {
		in.Failf("a prediction without scores")
	}
	if in.Err() != nil {
		return
	}
	scores := *in
	in.Raw(4 * k)
	d, width, raw := readFeatures(in, flags)
	if in.Err() != nil {
		return
	}
	if w.featureBytes == 0 {
		d = 0
	}
	scores.Floats(w.scores(e, k, d))
	w.restoreFeatures(&w.entries[e], width, raw)
}
