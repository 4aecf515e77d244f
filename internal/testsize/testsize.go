package testsize

import (
	"os"
	"testing"
)

// Long reports whether tests are to repeat more than their statement needs.
func Long() bool { return os.Getenv("PLUMBLINE_LONG") != "" }

// Pick returns the second value in a long run, else the first.
func Pick[T any](usual, long T) T {
	if Long() {
		return long
	}
	return usual
}

// Short returns the first value in a short run, else the second.
func Short[T any](short, usual T) T {
	if testing.Short() {
		return short
	}
	return usual
}

// Slow leaves a test of a second or more out of a short run.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("a second or more: left out with -short")
	}
}
