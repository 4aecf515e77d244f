//go:build amd64 && !purego

package fixedpoint

// scaledPaths lists the paths of this machine: each function switches one on, and returns what switches it off.
func scaledPaths() map[string]func() func() {
	avx512, avx2 := hasAVX512, hasAVX2
	set := func(a, b bool) func() func() {
		return func() func() {
			hasAVX512, hasAVX2 = a, b
			return func() { hasAVX512, hasAVX2 = avx512, avx2 }
		}
	}
	paths := map[string]func() func(){"go": set(false, false)}
	if avx512 {
		paths["avx512"] = set(true, false)
	}
	if avx2 {
		paths["avx2"] = set(false, true)
	}
	return paths
}
