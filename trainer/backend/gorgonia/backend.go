package gorgonia

import (
	"fmt"
	"sync"
	"sync/atomic"

	_ "go4.org/unsafe/assume-no-moving-gc" // of a version that knows this Go: gorgonia's own panics at start
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gorgonia.org/gorgonia"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/head"
)

// Backend opens sessions on gorgonia.
type Backend struct {
	// GEMM multiplies matrices, such as blas.Best's; nil means head.Gonum. gorgonia has one for the whole process: that
	// of the session opened last.
	GEMM head.GEMM
}

// Name implements [backend.Backend].
func (Backend) Name() string { return "gorgonia" }

// Open implements [backend.Backend].
func (b Backend) Open(p backend.Problem) (backend.Session, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	gemm := b.GEMM
	if gemm == nil {
		gemm = head.Gonum{}
	}
	use(gemm)
	s, err := newSession(p, gemm)
	if err != nil {
		return nil, fmt.Errorf("gorgonia: %w", err)
	}
	return s, nil
}

// products is the BLAS that gorgonia and its tensors call: gonum's, with another product of float32 matrices.
type products struct{ gonum.Implementation }

var (
	install sync.Once
	current atomic.Pointer[head.GEMM]
)

func use(g head.GEMM) {
	current.Store(&g)
	install.Do(func() { gorgonia.Use(products{}) }) // also tensor.Use
}

// Sgemm implements blas.Float32Level3.
func (products) Sgemm(
	tA, tB blas.Transpose, m, n, k int,
	alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int,
) {
	(*current.Load()).Gemm(alpha, factor(tA, m, k, a, lda), factor(tB, k, n, b, ldb),
		beta, head.Matrix{Rows: m, Cols: n, Stride: ldc, Data: c})
}

// factor is a matrix that is rows×cols in a product.
func factor(t blas.Transpose, rows, cols int, data []float32, stride int) head.Matrix {
	if t == blas.NoTrans {
		return head.Matrix{Rows: rows, Cols: cols, Stride: stride, Data: data}
	}
	return head.Matrix{Rows: cols, Cols: rows, Stride: stride, Data: data, Transposed: true}
}
