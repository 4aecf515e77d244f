package conformance

import (
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/head"
)

// TestReference: the reference agrees with itself to the last bit.
func TestReference(t *testing.T) { Check(t, backend.Go{}, Tolerance{}) }

// naive multiplies by the definition, in float64: the reference with other rounding.
type naive struct{}

func (naive) Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	at := func(x []float32, ld int, trans bool, i, j int) float64 {
		if trans {
			i, j = j, i
		}
		return float64(x[i*ld+j])
	}
	for i := range m {
		for j := range n {
			var sum float64
			for l := range k {
				sum += at(a, lda, transA, i, l) * at(b, ldb, transB, l, j)
			}
			c[i*ldc+j] = float32(float64(alpha)*sum + float64(beta)*float64(c[i*ldc+j]))
		}
	}
}

func TestOtherRounding(t *testing.T) {
	Check(t, backend.Go{GEMM: naive{}}, Tolerance{Params: 2e-5, Loss: 2e-6})
}

// wrong forgets weight decay by multiplying a little differently: Check must see it.
type wrong struct{ head.Gonum }

func (wrong) Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	head.Gonum{}.Gemm(transA, transB, m, n, k, alpha*1.001, a, lda, b, ldb, beta, c, ldc)
}

type recorder struct {
	*testing.T
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestCheckBites(t *testing.T) {
	r := &recorder{T: t}
	Check(r, backend.Go{GEMM: wrong{}}, Tolerance{Params: 2e-5, Loss: 2e-6})
	if len(r.errors) != len(Cases()) {
		t.Errorf("%d of %d cases fail for a wrong product", len(r.errors), len(Cases()))
	}
}
