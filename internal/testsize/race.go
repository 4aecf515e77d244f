//go:build race

package testsize

import "testing"

// NoRace skips a test of memory: the race detector takes some of its own, and has sync.Pool drop what it was given.
func NoRace(tb testing.TB) {
	tb.Helper()
	tb.Skip("memory is not measured under the race detector")
}
