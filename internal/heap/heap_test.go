package heap_test

import (
	"runtime/debug"
	"testing"

	"github.com/plumbline/plumbline/internal/heap"
)

// TestGrows: the garbage collector is as it was when the last task has restored, whatever it was.
func TestGrows(t *testing.T) {
	now := func() int {
		p := debug.SetGCPercent(-1)
		debug.SetGCPercent(p)
		return p
	}
	before := now()
	defer debug.SetGCPercent(before)
	for _, percent := range []int{100, 50, -1} {
		debug.SetGCPercent(percent)
		want := percent
		if percent > 0 {
			want = heap.GrowFactor * percent
		}
		a, b := heap.Grows(), heap.Grows()
		if got := now(); got != want {
			t.Errorf("GOGC %d: %d while tasks restore, want %d", percent, got, want)
		}
		a()
		a()
		if got := now(); got != want {
			t.Errorf("GOGC %d: %d while one still restores, want %d", percent, got, want)
		}
		b()
		if got := now(); got != percent {
			t.Errorf("GOGC %d: %d when all have restored", percent, got)
		}
	}
}
