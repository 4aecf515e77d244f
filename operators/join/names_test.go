package join

import (
	"strconv"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
)

// TestNamesWithoutNumberAreRestored: however many models labels name, and values slices have, a checkpoint with them is
// one that can be read.
func TestNamesWithoutNumberAreRestored(t *testing.T) {
	const names = 1<<20 + 10
	w, again := &buffer{}, &buffer{}
	w.reset(&Options{Config: Config{MaxRows: 10}, Slices: []string{"s"}})
	for i := range names {
		w.model(arrowio.ModelKey{Model: strconv.Itoa(i)})
		w.value(strconv.Itoa(i))
	}
	state, err := w.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	again.reset(&Options{Config: Config{MaxRows: 10}, Slices: []string{"s"}})
	if err := again.restore(state, nil); err != nil {
		t.Error(err)
	}
	if !w.compact() || len(w.models) != 0 || len(w.values) != 0 {
		t.Errorf("%d models and %d values are kept, which no row has", len(w.models), len(w.values))
	}
}
