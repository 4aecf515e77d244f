//go:build amd64 && !purego

package vexp

import "testing"

// eachPath runs f on every path that this machine has.
func eachPath(t *testing.T, f func(t *testing.T)) {
	with512, with2 := hasAVX512, hasAVX2
	t.Cleanup(func() { hasAVX512, hasAVX2 = with512, with2 })
	if with512 {
		t.Run("avx512", f)
	}
	hasAVX512 = false
	if with2 {
		t.Run("avx2", f)
	}
	hasAVX2 = false
	t.Run("go", f)
}
