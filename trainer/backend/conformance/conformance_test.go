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

func (naive) Gemm(alpha float32, a, b head.Matrix, beta float32, c head.Matrix) {
	at := func(m head.Matrix, i, j int) float64 {
		if m.Transposed {
			i, j = j, i
		}
		return float64(m.Data[i*m.Stride+j])
	}
	_, k := a.Dims()
	for i := range c.Rows {
		for j := range c.Cols {
			var sum float64
			for l := range k {
				sum += at(a, i, l) * at(b, l, j)
			}
			to := &c.Data[i*c.Stride+j]
			*to = float32(float64(alpha)*sum + float64(beta)*float64(*to))
		}
	}
}

func TestOtherRounding(t *testing.T) {
	Check(t, backend.Go{GEMM: naive{}}, Tolerance{Params: 2e-5, Loss: 2e-6})
}

// wrong forgets weight decay by multiplying a little differently: Check must see it.
type wrong struct{ head.Gonum }

func (wrong) Gemm(alpha float32, a, b head.Matrix, beta float32, c head.Matrix) {
	head.Gonum{}.Gemm(alpha*1.001, a, b, beta, c)
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
