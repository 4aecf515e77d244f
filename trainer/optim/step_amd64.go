//go:build amd64 && !purego

package optim

import "golang.org/x/sys/cpu"

var hasAVX = cpu.X86.HasAVX

// step8 is SGD.plain of n values, a multiple of 8 and not 0.
//
//go:noescape
func step8(w, grad, v *float32, n int, lr, mu, l2 float32)

// step is plain, by vectors where the processor has them.
func (o SGD) step(w, g, v []float32) {
	done := 0
	if n := len(w) &^ 7; hasAVX && n > 0 {
		step8(&w[0], &g[0], &v[0], n, o.LR, o.Momentum, o.WeightDecay)
		done = n
	}
	o.plain(w[done:], g[done:], v[done:])
}
