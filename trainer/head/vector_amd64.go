//go:build amd64 && !purego

package head

import "golang.org/x/sys/cpu"

var (
	hasAVX  = cpu.X86.HasAVX
	hasAVX2 = cpu.X86.HasAVX2
)

// The kernels take n values, a multiple of 8 and not 0.

//go:noescape
func relu8(x *float32, n int)

//go:noescape
func reluGrad8(dst, y, grad *float32, n int)

//go:noescape
func masked8(dst, w *float32, bits *uint8, n int)

//go:noescape
func add8(sums, row *float32, n int)

// ReLU is max(x, 0) in place; NaN stays.
func ReLU(x []float32) {
	if n := len(x) &^ 7; hasAVX && n > 0 {
		relu8(&x[0], n)
		x = x[n:]
	}
	reluGo(x)
}

// ReLUGrad writes to dst the gradient grad where the output y of a ReLU is not 0, else 0; dst may be grad.
func ReLUGrad(dst, y, grad []float32) {
	dst, grad = dst[:len(y)], grad[:len(y)]
	if n := len(y) &^ 7; hasAVX && n > 0 {
		reluGrad8(&dst[0], &y[0], &grad[0], n)
		dst, y, grad = dst[n:], y[n:], grad[n:]
	}
	reluGradGo(dst, y, grad)
}

// Masked writes w to dst where bits are 1, and 0 where they are 0; dst may be w.
func Masked(dst, w []float32, bits []uint8) {
	dst, bits = dst[:len(w)], bits[:len(w)]
	if n := len(w) &^ 7; hasAVX2 && n > 0 {
		masked8(&dst[0], &w[0], &bits[0], n)
		dst, w, bits = dst[n:], w[n:], bits[n:]
	}
	maskedGo(dst, w, bits)
}

// ColumnSums writes to sums those of the columns of x, which has as many, adding rows in their order.
func ColumnSums(sums, x []float32) {
	n := len(sums) &^ 7
	if !hasAVX || n == 0 {
		columnSumsGo(sums, x)
		return
	}
	clear(sums)
	for ; len(x) > 0; x = x[len(sums):] {
		row := x[:len(sums)]
		add8(&sums[0], &row[0], n)
		for j := n; j < len(sums); j++ {
			sums[j] += row[j]
		}
	}
}
