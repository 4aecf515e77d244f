package shadow

import (
	"testing"

	"github.com/plumbline/plumbline/arrowio"
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
