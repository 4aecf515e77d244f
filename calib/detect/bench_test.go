package detect

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkObserve is one pane of 100 rows through both tests.
func BenchmarkObserve(b *testing.B) {
	a := newTestAlarm(b, AlarmSpec{})
	rng := rand.New(rand.NewPCG(1, 1))
	panes := make([]Pane, 64)
	for i := range panes {
		panes[i] = paneOf(b, drawRows(rng, 100, 0), 15)
	}
	b.ReportAllocs()
	id := int64(0)
	for b.Loop() {
		observe(b, a, id, panes[id%64])
		id++
	}
}
