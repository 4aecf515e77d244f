package shadow

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// waitingID is a row of a head.
type waitingID struct {
	id   arrowio.ID
	head beganKey
}

// waitingRow are scores that wait for their label; z is nil where they have been taken.
type waitingRow struct {
	waitingID
	ts pipeline.Time
	w  float32
	z  []float32
}

// waitingRows holds rows in the order of arrival, found by id. An id that comes twice is not added twice: the join
// rejects duplicates before.
type waitingRows struct {
	rows  []waitingRow
	first int   // of rows; those before have gone
	base  int64 // number of rows[0]
	index map[waitingID]int64
	bytes int
}

// rowBytes is about how many bytes a row takes beside its scores: its place in the index, and two slots of rows, since
// up to half of them are gaps. It is counted for rows alone: which rows are pushed out must not depend on when gaps
// were closed, which a restored checkpoint does not tell.
const rowBytes = 350

// fewRows is the number of slots below which gaps stay.
const fewRows = 128

func newWaitingRows() waitingRows { return waitingRows{index: map[waitingID]int64{}} }

func (w *waitingRows) add(id waitingID, ts pipeline.Time, weight float32, z []float32) {
	if _, there := w.index[id]; there {
		return
	}
	w.index[id] = w.base + int64(len(w.rows))
	w.rows = append(w.rows, waitingRow{id, ts, weight, slices.Clone(z)})
	w.bytes += rowBytes + 4*len(z)
}

// take removes a row and returns it.
func (w *waitingRows) take(id waitingID) (waitingRow, bool) {
	n, ok := w.index[id]
	if !ok {
		return waitingRow{}, false
	}
	row := w.rows[n-w.base]
	w.drop(int(n - w.base))
	w.tidy()
	return row, true
}

func (w *waitingRows) drop(i int) {
	row := &w.rows[i]
	delete(w.index, row.waitingID)
	w.bytes -= rowBytes + 4*len(row.z)
	row.z = nil
}

// tidy forgets rows that have been taken, once they are more than half of the slots: a row that never gets its label
// must not keep the slots of all later ones. It moves no more rows than have been taken since it last did.
func (w *waitingRows) tidy() {
	for w.first < len(w.rows) && w.rows[w.first].z == nil {
		w.first++
	}
	switch n := len(w.rows); {
	case n < fewRows:
	case 2*w.first > n: // most gaps are in front, the usual case: the index stays as it is
		w.base += int64(w.first)
		w.rows = slices.Delete(w.rows, 0, w.first)
		w.first = 0
	case 2*len(w.index) < n:
		w.rows = slices.DeleteFunc(w.rows, func(r waitingRow) bool { return r.z == nil })
		w.first = 0
		for i := range w.rows {
			w.index[w.rows[i].waitingID] = w.base + int64(i)
		}
	}
}

// shrink drops the oldest rows while they take more than limit, and returns how many.
func (w *waitingRows) shrink(limit int) (dropped int64) {
	for w.bytes > limit && w.first < len(w.rows) {
		w.drop(w.first)
		w.tidy()
		dropped++
	}
	return dropped
}

// expire drops the oldest rows whose wait is over before the watermark, and returns how many.
func (w *waitingRows) expire(wm pipeline.Time, wait int64) (dropped int64) {
	for w.first < len(w.rows) && w.rows[w.first].ts+wait < wm {
		w.drop(w.first)
		w.tidy()
		dropped++
	}
	return dropped
}

// State implements pipeline.Operator.
func (s *Operator) State() pipeline.State { return s }

// AppendState implements pipeline.State: the newest event time, the heads that have begun (model, version,
// number, event time), and the waiting rows in order of arrival (head as index, id, time, weight, scores).
func (s *Operator) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendVarint(dst, s.newest)
	heads := slices.SortedFunc(maps.Keys(s.begun), func(a, b beganKey) int {
		return cmp.Or(a.ModelKey.Compare(b.ModelKey), cmp.Compare(a.number, b.number))
	})
	at := map[beganKey]int{}
	dst = binenc.AppendUvarint(dst, uint64(len(heads)))
	for i, h := range heads {
		at[h] = i
		dst = binenc.AppendString(binenc.AppendString(dst, h.Model), h.Version)
		dst = binenc.AppendVarint(binenc.AppendUvarint(dst, uint64(h.number)), s.begun[h])
	}
	dst = binenc.AppendUvarint(dst, uint64(len(s.wait.index)))
	for _, r := range s.wait.rows {
		if r.z == nil {
			continue
		}
		dst = append(binenc.AppendUvarint(dst, uint64(at[r.head])), r.id[:]...)
		dst = binenc.AppendFixed32(binenc.AppendVarint(dst, r.ts), math.Float32bits(r.w))
		dst = binenc.AppendUvarint(dst, uint64(len(r.z)))
		for _, z := range r.z {
			dst = binenc.AppendFixed32(dst, math.Float32bits(z))
		}
	}
	return dst, nil
}

// RestoreState implements pipeline.State.
func (s *Operator) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	s.newest = r.Varint()
	s.begun, s.wait = map[beganKey]pipeline.Time{}, newWaitingRows()
	var heads []beganKey
	for range r.Count(4, 1<<20) {
		h := beganKey{arrowio.ModelKey{Model: r.String(binenc.MaxName), Version: r.String(binenc.MaxName)},
			int(r.Int("number", 1, math.MaxInt32))}
		s.begun[h] = r.Varint()
		heads = append(heads, h)
	}
	for range r.Count(23, binenc.MaxItems) {
		head := r.Int("head", 0, int64(len(heads))-1)
		var id arrowio.ID
		copy(id[:], r.Raw(16))
		ts, w := r.Varint(), math.Float32frombits(r.Fixed32())
		z := make([]float32, r.Count(4, binenc.MaxItems))
		for i := range z {
			z[i] = math.Float32frombits(r.Fixed32())
		}
		if r.Err() != nil {
			return r.Err()
		}
		s.wait.add(waitingID{id, heads[head]}, ts, w, z)
	}
	return r.Close()
}

// take takes over what waits for labels (pipeline.Stage). A head runs here from where it ran in all shards.
func (s *Operator) take(from pipeline.Operator, mine func(arrowio.ID) bool) error {
	old := from.(*Operator)
	s.newest = max(s.newest, old.newest)
	for head, at := range old.begun {
		s.begun[head] = max(at, s.begun[head])
	}
	for _, r := range old.wait.rows {
		if r.z != nil && mine(r.id) {
			s.wait.add(r.waitingID, r.ts, r.w, r.z)
		}
	}
	return nil
}
