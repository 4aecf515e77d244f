package head

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// GEMM multiplies row-major float32 matrices: C ← α·op(A)·op(B) + β·C, with op(A) m×k, op(B) k×n and C m×n; op
// transposes where its flag is set. Leading dimensions are those of the matrices as they are stored. The result is the
// same bits for the same input.
type GEMM interface {
	Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int)
}

// Gonum is the plain implementation, in Go.
type Gonum struct{}

// Gemm implements [GEMM].
func (Gonum) Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	op := func(t bool) blas.Transpose {
		if t {
			return blas.Trans
		}
		return blas.NoTrans
	}
	gonum.Implementation{}.Sgemm(op(transA), op(transB), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}
