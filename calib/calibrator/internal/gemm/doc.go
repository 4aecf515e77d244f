// Package gemm multiplies float64 matrices whose sides are padded to whole tiles.
//
// Every element of the result takes its products by fused multiply-add, in the order of the inner index: the vector
// paths and the plain one give the same bits, on any machine and for any split of the rows into calls.
//
// Matrices come from the fits of package calibrator and the products go back into theirs. The package knows nothing of
// what they mean. Its assembly comes from internal/asmgen/gemm.
package gemm
