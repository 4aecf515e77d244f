package eventually

import (
	"testing"
	"time"
)

// Patience bounds every wait.
const Patience = 4 * time.Minute

// longest is the longest time between two looks.
const longest = 50 * time.Millisecond

// True waits until ok returns true.
func True(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if _, seen := poll(Patience, func() (struct{}, bool) { return struct{}{}, ok() }); !seen {
		t.Fatalf("not within %s: %s", Patience, what)
	}
}

// Get waits until look returns true, and returns what it saw. The failure shows what it saw last.
func Get[T any](t testing.TB, what string, look func() (T, bool)) T {
	t.Helper()
	v, seen := poll(Patience, look)
	if !seen {
		t.Fatalf("not within %s: %s; last seen: %+v", Patience, what, v)
	}
	return v
}

func poll[T any](patience time.Duration, look func() (T, bool)) (T, bool) {
	begin := time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, longest) {
		v, seen := look()
		if seen || time.Since(begin) > patience {
			return v, seen
		}
		time.Sleep(wait)
	}
}
