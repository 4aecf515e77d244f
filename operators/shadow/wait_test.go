package shadow

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/testsize"
)

var mv = arrowio.ModelKey{Model: "m", Version: "v1"}

// TestShadowWaitBounds: the oldest rows go out first, and are counted; what is over its wait goes.
func TestShadowWaitBounds(t *testing.T) {
	w := newWaitingRows()
	id := func(i int) waitingID { return waitingID{arrowio.ID{byte(i), byte(i >> 8)}, beganKey{mv, 1}} }
	for i := range 1000 {
		w.add(id(i), int64(i), 1, make([]float32, 10))
		w.shrink(100 * (rowBytes + 40))
	}
	if len(w.index) != 100 {
		t.Errorf("got %d rows, want 100", len(w.index))
	}
	if _, ok := w.take(id(899)); ok {
		t.Error("a row that went out is there")
	}
	if row, ok := w.take(id(950)); !ok || row.ts != 950 {
		t.Errorf("got %v, %v", row, ok)
	}
	if n := w.expire(960, 5); n != 54 || len(w.index) != 45 {
		t.Errorf("%d expired and %d left, want 54 and 45", n, len(w.index))
	}
	for i := range 1000 {
		w.take(id(i))
	}
	if len(w.index) != 0 || w.bytes != 0 || w.first != len(w.rows) {
		t.Errorf("got %d rows, %d bytes after all were taken", len(w.index), w.bytes)
	}
}

// TestUnlabelledRowKeepsNoOthers: one row waits for ever while all others get their label at once. Their slots are used
// again, and the row is found where it has moved to.
func TestUnlabelledRowKeepsNoOthers(t *testing.T) {
	testsize.NoRace(t)
	const rows, most = 200_000, 1 << 20
	w := newWaitingRows()
	id := func(i int) (out waitingID) {
		binary.BigEndian.PutUint64(out.id[:], uint64(i))
		out.head = beganKey{mv, 1}
		return out
	}
	z := make([]float32, 10)
	before := testsize.HeapInUse()
	w.add(id(0), 0, 1, z)
	for i := 1; i < rows; i++ {
		w.add(id(i), int64(i), 1, z)
		if row, ok := w.take(id(i)); !ok || row.ts != int64(i) {
			t.Fatalf("row %d: got %v, %v", i, row.ts, ok)
		}
	}
	took := testsize.HeapInUse() - before
	t.Logf("one row waits and takes %.0f bytes", took)
	if took > most || len(w.rows) > fewRows {
		t.Errorf("one row waits and takes %.0f bytes, %d slots; want at most %d and %d", took, len(w.rows), most,
			fewRows)
	}
	if row, ok := w.take(id(0)); !ok || row.ts != 0 || w.bytes != 0 {
		t.Errorf("the row that waits: %v, %v; %d bytes are left, want 0", row, ok, w.bytes)
	}
	runtime.KeepAlive(&w)
}

// TestWaitingRowsTakeWhatTheyCount: at the bound the rows take about as much memory as they count for, where half of
// those that came have got their label and where none has.
func TestWaitingRowsTakeWhatTheyCount(t *testing.T) {
	testsize.NoRace(t)
	const limit, rows = 16 << 20, 200_000
	for _, labelled := range []int{0, 2} { // one of so many
		w := newWaitingRows()
		before := testsize.HeapInUse()
		for i := range rows {
			id := waitingID{head: beganKey{mv, 1}}
			binary.BigEndian.PutUint64(id.id[:], uint64(i))
			w.add(id, int64(i), 1, make([]float32, 10))
			w.shrink(limit)
			if labelled > 0 && i%labelled == 1 {
				w.take(id)
			}
		}
		took := testsize.HeapInUse() - before
		t.Logf("one of %d labelled: %d bytes are counted and %.0f taken", labelled, w.bytes, took)
		if w.bytes < limit/2 || took > 1.25*limit {
			t.Errorf("one of %d labelled: %d bytes are counted and %.0f taken, want at most %d", labelled, w.bytes,
				took, limit)
		}
		runtime.KeepAlive(&w)
	}
}
