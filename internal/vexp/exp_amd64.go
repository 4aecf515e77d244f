//go:build amd64 && !purego

package vexp

import "golang.org/x/sys/cpu"

var (
	hasAVX512 = cpu.X86.HasAVX512F
	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA
)

// shifted takes a multiple of lanes, and not 0.
func shifted(dst, x []float64, top float64) {
	switch {
	case hasAVX512:
		exp512(&dst[0], &x[0], len(x), top)
	case hasAVX2:
		exp2(&dst[0], &x[0], len(x), top)
	default:
		shiftedGo(dst, x, top)
	}
}
