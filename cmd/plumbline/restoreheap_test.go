package main

import (
	"runtime/debug"
	"testing"
)

// TestHeapGrows: the garbage collector is as it was when the last task has restored, whatever it was.
func TestHeapGrows(t *testing.T) {
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
			want = growFactor * percent
		}
		a, b := heapGrows(), heapGrows()
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
