//go:build !race

package testsize

import "testing"

// NoRace skips a test of memory where the race detector runs: here it does not.
func NoRace(testing.TB) {}
