//go:build !amd64 || purego

package head

// ReLU is max(x, 0) in place; NaN stays.
func ReLU(x []float32) { reluGo(x) }

// ReLUGrad writes to dst the gradient grad where the output y of a ReLU is not 0, else 0; dst may be grad.
func ReLUGrad(dst, y, grad []float32) { reluGradGo(dst[:len(y)], y, grad[:len(y)]) }

// Masked writes w to dst where bits are 1, and 0 where they are 0; dst may be w.
func Masked(dst, w []float32, bits []uint8) { maskedGo(dst[:len(w)], w, bits[:len(w)]) }

// ColumnSums writes to sums those of the columns of x, which has as many, adding rows in their order.
func ColumnSums(sums, x []float32) { columnSumsGo(sums, x) }
