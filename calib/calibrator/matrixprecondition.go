package calibrator

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/plumbline/plumbline/calib/calibrator/internal/gemm"
)

const (
	// blockClasses is the largest K with full blocks: they take K(K+1)² numbers. Above, flat ones serve.
	blockClasses = 200
	// blockMass is the least p of a row that a class's block is made of; the others are made up for by a factor.
	blockMass = 0.005
	// blockFill bounds the rows of a block, by as many for each of its dimensions.
	blockFill = 16
	// blockFloor is added to the diagonal of a block, relative to its mean: classes may have hardly any rows.
	blockFloor = 1e-6
)

// precondition is the change of coordinates of the fit. The Hessian's blocks of one class's parameters (its row of W,
// and b_j) are
//
//	H_j = 1/W Σ_i w_i p_ij (1 - p_ij) x_i x_iᵀ + penalties,  x_i with a 1 at its end
//
// at the start. With H_j = L Lᵀ the coordinates are v = Lᵀ θ. It need not be exact: it only has to bend the objective
// into shape.
type precondition struct {
	k      int
	blocks [][]float64 // K lower triangles of (K+1)², or
	flat   []flatBlock // K
	tmp    []float64
}

// flatBlock is a block as S (I + α u uᵀ) S, S diagonal: the variances of the inputs and their mean, which alone ties
// them together where they are logarithms of probabilities, all far below 0. Its root is S (I - β u uᵀ)⁻¹.
type flatBlock struct {
	scale []float64 // K+1, the diagonal of S
	u     []float64 // K+1, of length 1, or zeros
	beta  float64   // 1 - 1/√(1+α)
}

// bend sets x to (I - β u uᵀ) x.
func (b flatBlock) bend(x []float64) {
	var along float64
	for l, v := range b.u {
		along += v * x[l]
	}
	for l, v := range b.u {
		x[l] -= b.beta * along * v
	}
}

// newPrecondition makes the coordinates at th.
func (f *matrixFit) newPrecondition(reg ODIR, th []float64) *precondition {
	k := f.k
	p := &precondition{k: k, tmp: make([]float64, k+1)}
	lambda, mu, kappa := reg.weights(k)
	weight := func(j, l int) float64 {
		switch l {
		case j:
			return 2 * (kappa + ridge)
		case k:
			return 2 * (mu + ridge)
		}
		return 2 * (lambda + ridge)
	}
	members, all := f.members(th)
	if k > blockClasses {
		p.flat = make([]flatBlock, k)
		for j := range p.flat {
			p.flat[j] = f.flatFactor(members[j], all[j], func(l int) float64 { return weight(j, l) })
		}
		return p
	}
	p.blocks = make([][]float64, k)
	for j := range p.blocks {
		p.blocks[j] = f.classFactor(members[j], all[j], func(l int) float64 { return weight(j, l) })
	}
	return p
}

// member is a row that a class's block is made of, with its h = w p (1-p).
type member struct {
	row int
	h   float64
}

// members returns the rows where a class's p is at least blockMass, and the sums of h over all rows.
func (f *matrixFit) members(th []float64) (rows [][]member, all []float64) {
	rows, all = make([][]member, f.k), make([]float64, f.k)
	f.outputs(th, func(i int, u []float64) {
		softmax(u, u, 1)
		for j, p := range u {
			h := f.w[i] * p * (1 - p)
			all[j] += h
			if p >= blockMass {
				rows[j] = append(rows[j], member{i, h})
			}
		}
	}, func(int, int) {})
	return rows, all
}

// classFactor returns the lower triangle L of a class's H = L Lᵀ.
func (f *matrixFit) classFactor(rows []member, all float64, weight func(l int) float64) []float64 {
	d, stride := f.k+1, f.inputs
	if most := blockFill * d; len(rows) > most {
		for i := range most {
			rows[i] = rows[i*len(rows)/most]
		}
		rows = rows[:most]
	}
	var kept float64
	for _, m := range rows {
		kept += m.h
	}
	h := make([]float64, stride*stride)
	if kept > 0 {
		a := make([]float64, len(rows)*stride)
		for i, m := range rows {
			root := math.Sqrt(m.h / f.total * (all / kept))
			for l, x := range f.input(m.row) {
				a[i*stride+l] = root * x
			}
		}
		of := gemm.Matrix{Data: a, Stride: stride}
		gemm.AddTransposed(gemm.Matrix{Data: h, Stride: stride}, of, of, gemm.Size{M: stride, N: stride, K: len(rows)})
	}
	out := make([]float64, d*d)
	var trace float64
	for l := range d {
		copy(out[l*d:(l+1)*d], h[l*stride:])
		trace += out[l*d+l]
	}
	for l := range d {
		out[l*d+l] += weight(l) + blockFloor*(1+trace/float64(d))
	}
	cholesky(out, d)
	return out
}

// flatFactor returns a class's H as a flatBlock.
func (f *matrixFit) flatFactor(rows []member, all float64, weight func(l int) float64) flatBlock {
	d := f.k + 1
	mean, square := make([]float64, d), make([]float64, d)
	var kept float64
	for _, m := range rows {
		kept += m.h
		for l, x := range f.input(m.row) {
			mean[l] += m.h * x
			square[l] += m.h * x * x
		}
	}
	b := flatBlock{scale: square, u: mean}
	var size float64
	for l, q := range square {
		var spread float64
		if kept > 0 {
			mean[l] /= kept
			spread = max(0, q/kept-mean[l]*mean[l])
		}
		b.scale[l] = math.Sqrt(all/f.total*spread + weight(l) + blockFloor)
		b.u[l] /= b.scale[l]
		size += b.u[l] * b.u[l]
	}
	if size > 0 {
		b.beta = 1 - 1/math.Sqrt(1+all/f.total*size)
		root := math.Sqrt(size)
		for l := range b.u {
			b.u[l] /= root
		}
	}
	return b
}

// cholesky replaces the lower half of a positive definite d×d matrix by its factor.
func cholesky(h []float64, d int) {
	for a := range d {
		row := h[a*d : a*d+a+1]
		for b := range a {
			s := row[b]
			for c, v := range h[b*d : b*d+b] {
				s -= row[c] * v
			}
			row[b] = s / h[b*d+b]
			row[a] -= row[b] * row[b]
		}
		// Rounding may leave a pivot that is not positive: the coordinate then keeps a scale, which is all it needs.
		if !(row[a] > 0) {
			row[a] = 1
		}
		row[a] = math.Sqrt(row[a])
	}
}

// parameters writes θ = L⁻ᵀ v of every class to th, as W and then b.
func (p *precondition) parameters(th, v []float64) {
	k, d := p.k, p.k+1
	for j := range k {
		copy(p.tmp, v[j*d:(j+1)*d])
		if p.flat != nil {
			p.flat[j].bend(p.tmp)
			for l, s := range p.flat[j].scale {
				p.tmp[l] /= s
			}
		} else {
			p.solve(j, blas.Trans)
		}
		copy(th[j*k:], p.tmp[:k])
		th[k*k+j] = p.tmp[k]
	}
}

// gradient writes the gradient by v, L⁻¹ ∂/∂θ, to grad.
func (p *precondition) gradient(grad, g []float64) {
	k, d := p.k, p.k+1
	for j := range k {
		copy(p.tmp, g[j*k:(j+1)*k])
		p.tmp[k] = g[k*k+j]
		if p.flat != nil {
			for l, s := range p.flat[j].scale {
				p.tmp[l] /= s
			}
			p.flat[j].bend(p.tmp)
		} else {
			p.solve(j, blas.NoTrans)
		}
		copy(grad[j*d:], p.tmp)
	}
}

// solve solves L x = tmp, or Lᵀ x = tmp, for class j.
func (p *precondition) solve(j int, t blas.Transpose) {
	d := p.k + 1
	l := blas64.Triangular{N: d, Stride: d, Data: p.blocks[j], Uplo: blas.Lower, Diag: blas.NonUnit}
	blas64.Trsv(t, l, blas64.Vector{N: d, Inc: 1, Data: p.tmp})
}
