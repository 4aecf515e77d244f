package calibrator

import (
	"fmt"
	"math"
)

// maxMatrixClasses bounds K of Matrix and Dirichlet: K² parameters, kept by the optimiser several times.
const maxMatrixClasses = 2000

// Matrix is matrix scaling, p = softmax(W z + b) with W row-major K×K and mean b = 0. It may change the argmax.
// Apply panics on a row of another K; it allocates K floats. Make it with FitMatrix.
// Reference: Guo et al., On Calibration of Modern Neural Networks, ICML 2017, Section 4.2; Kull et al., Beyond
// temperature scaling, NeurIPS 2019, for the penalties of FitMatrix.
type Matrix struct{ p matrixParams }

// Dirichlet is Dirichlet calibration in its linear form, p = softmax(W ln q + b) with q = softmax(z), W row-major
// K×K and mean b = 0. It does not see a constant added to a row's logits, which Matrix does. It may change the
// argmax. Apply panics on a row of another K; it allocates K floats. Make it with FitDirichlet.
// Reference: Kull et al., Beyond temperature scaling: Obtaining well-calibrated multi-class probabilities with
// Dirichlet calibration, NeurIPS 2019.
type Dirichlet struct{ p matrixParams }

type matrixParams struct {
	W []float64 `json:"w"` // K×K
	B []float64 `json:"b"` // K
}

// Classes is K.
func (c *Matrix) Classes() int { return len(c.p.B) }

// Classes is K.
func (c *Dirichlet) Classes() int { return len(c.p.B) }

// Apply implements Calibrator.
func (c *Matrix) Apply(p, z []float64) { c.applyScratch(p, z, make([]float64, len(z))) }

func (*Matrix) scratch(k int) int { return k }

func (c *Matrix) applyScratch(p, z, x []float64) {
	mustHave(c.Method(), len(c.p.B), len(z))
	for k, v := range z {
		x[k] = bounded(v)
	}
	c.p.apply(p[:len(z)], x)
}

// Apply implements Calibrator.
func (c *Dirichlet) Apply(p, z []float64) { c.applyScratch(p, z, make([]float64, len(z))) }

func (*Dirichlet) scratch(k int) int { return k }

func (c *Dirichlet) applyScratch(p, z, x []float64) {
	mustHave(c.Method(), len(c.p.B), len(z))
	logSoftmax(x, z)
	c.p.apply(p[:len(z)], x)
}

// apply writes softmax(W x + b) to p, which is not x.
func (m matrixParams) apply(p, x []float64) {
	m.affine(p, x)
	softmax(p, p, 1)
}

func (m matrixParams) affine(u, x []float64) {
	k := len(m.B)
	for j := range u {
		s := m.B[j]
		for l, w := range m.W[j*k : (j+1)*k] {
			s += w * x[l]
		}
		u[j] = s
	}
}

// logSoftmax writes ln softmax(z) to x, -Inf as -applyScore.
func logSoftmax(x, z []float64) {
	top := math.Inf(-1)
	for _, v := range z {
		top = max(top, v)
	}
	var sum float64
	for _, v := range z {
		sum += math.Exp(v - top)
	}
	l := math.Log(sum)
	for k, v := range z {
		x[k] = bounded(v - top - l)
	}
}

// Method implements Calibrator; it is "matrix".
func (*Matrix) Method() string { return "matrix" }

// Method implements Calibrator; it is "dirichlet".
func (*Dirichlet) Method() string { return "dirichlet" }

func (c *Matrix) params() any    { return &c.p }
func (c *Dirichlet) params() any { return &c.p }

func (c *Matrix) check() error    { return c.p.check() }
func (c *Dirichlet) check() error { return c.p.check() }

func (m matrixParams) check() error {
	k := len(m.B)
	if k < 2 || k > maxMatrixClasses || len(m.W) != k*k {
		return fmt.Errorf("w, b: %d and %d values, allowed are K×K and K of them, K 2..%d", len(m.W), k,
			maxMatrixClasses)
	}
	if err := within("w", m.W, -maxParam, maxParam); err != nil {
		return err
	}
	return within("b", m.B, -maxParam, maxParam)
}
