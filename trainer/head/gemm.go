package head

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Matrix is a view of row-major float32 numbers as a factor of a product.
type Matrix struct {
	Rows, Cols int // as they are stored
	Stride     int // from the start of a row to that of the next
	Data       []float32
	Transposed bool // whether the product takes the transpose
}

// Dense is a matrix whose rows lie one after the other.
func Dense(rows, cols int, data []float32) Matrix {
	return Matrix{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// T is the transpose of m, in the same memory.
func (m Matrix) T() Matrix {
	m.Transposed = !m.Transposed
	return m
}

// Dims are the numbers of rows and columns that the product sees.
func (m Matrix) Dims() (rows, cols int) {
	if m.Transposed {
		return m.Cols, m.Rows
	}
	return m.Rows, m.Cols
}

// GEMM multiplies matrices: C ← α·A·B + β·C, where A and B may be transposed and C is not. The result is the same bits
// for the same input.
type GEMM interface {
	Gemm(alpha float32, a, b Matrix, beta float32, c Matrix)
}

// Gonum is the plain implementation, in Go.
type Gonum struct{}

// Gemm implements [GEMM].
func (Gonum) Gemm(alpha float32, a, b Matrix, beta float32, c Matrix) {
	op := func(m Matrix) blas.Transpose {
		if m.Transposed {
			return blas.Trans
		}
		return blas.NoTrans
	}
	_, k := a.Dims()
	gonum.Implementation{}.Sgemm(op(a), op(b), c.Rows, c.Cols, k,
		alpha, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
}
