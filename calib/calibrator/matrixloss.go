package calibrator

import "github.com/plumbline/plumbline/calib/calibrator/internal/gemm"

// matrixRows is how many rows are multiplied at once: with their residuals they stay in the caches.
const matrixRows = 256

// matrixFit is the weighted rows that W and b are fitted to. Matrices are padded with zeros to whole tiles; the
// inputs have a 1 after the K numbers of a row, so that b is a column like those of W.
type matrixFit struct {
	x           []float64 // inputs, rows of inputs numbers
	y           []int32
	w           []float64 // n
	total       float64
	k           int
	inputs, out int // padded K+1 and K
	wt          []float64
	u, g        []float64 // scratch: a block of outputs, the gradient by W and b
}

func newMatrixFit(s *sample, x []float64) *matrixFit {
	k := s.k
	f := &matrixFit{y: s.y, w: s.w, total: s.total, k: k, inputs: gemm.Pad(k + 1), out: gemm.Pad(k)}
	f.x = make([]float64, gemm.Pad(s.n)*f.inputs)
	for i := range s.n {
		row := f.x[i*f.inputs:]
		copy(row, x[i*k:(i+1)*k])
		row[k] = 1
	}
	f.wt = make([]float64, (k+1)*f.out)
	f.u = make([]float64, matrixRows*f.out)
	f.g = make([]float64, f.out*f.inputs)
	return f
}

// input is row i of x, with the 1 at its end.
func (f *matrixFit) input(i int) []float64 { return f.x[i*f.inputs : i*f.inputs+f.k+1] }

// outputs calls see with every row of W x + b, in order, and with its number. What see leaves there is kept until
// after is called with the number of rows of a block, those that fill up its tiles included, and its first one.
func (f *matrixFit) outputs(th []float64, see func(i int, u []float64), after func(from, rows int)) {
	k := f.k
	for j := range k {
		for l, v := range th[j*k : (j+1)*k] {
			f.wt[l*f.out+j] = v
		}
		f.wt[k*f.out+j] = th[k*k+j]
	}
	for from := 0; from < len(f.y); from += matrixRows {
		n := min(matrixRows, len(f.y)-from)
		rows := gemm.Pad(n)
		u := f.u[:rows*f.out]
		clear(u)
		gemm.Add(gemm.Matrix{Data: u, Stride: f.out}, f.rowsFrom(from), gemm.Matrix{Data: f.wt, Stride: f.out},
			gemm.Size{M: rows, N: f.out, K: k + 1})
		for i := range n {
			see(from+i, u[i*f.out:i*f.out+k])
		}
		clear(u[n*f.out:])
		after(from, rows)
	}
}

func (f *matrixFit) rowsFrom(i int) gemm.Matrix {
	return gemm.Matrix{Data: f.x[i*f.inputs:], Stride: f.inputs}
}

// loss is the objective in (W, b), b after W. Rows go through it in blocks of a fixed size and in their order, and the
// products are the same on every machine.
func (f *matrixFit) loss(reg ODIR) objective {
	k := f.k
	lambda, mu, kappa := reg.weights(k)
	return func(grad, th []float64) float64 {
		var sum float64
		clear(f.g)
		f.outputs(th, func(i int, u []float64) {
			sum += f.w[i] * nllGrad(u, f.y[i])
			share := f.w[i] / f.total
			for j := range u {
				u[j] *= share
			}
		}, func(from, rows int) {
			u, g := gemm.Matrix{Data: f.u, Stride: f.out}, gemm.Matrix{Data: f.g, Stride: f.inputs}
			gemm.AddTransposed(g, u, f.rowsFrom(from), gemm.Size{M: f.out, N: f.inputs, K: rows})
		})
		for j := range k {
			row := f.g[j*f.inputs:]
			copy(grad[j*k:(j+1)*k], row)
			grad[k*k+j] = row[k]
		}
		return sum/f.total + f.penalty(grad, th, lambda, mu) + f.spread(grad, th, kappa)
	}
}

// weights are those of single squares, λ/(K(K-1)), μ/K and κ/K.
func (o ODIR) weights(k int) (lambda, mu, kappa float64) {
	return o.OffDiagonal / float64(k*(k-1)), o.Intercept / float64(k), o.Diagonal / float64(k)
}

// spread is penalty of the diagonal weights' differences from their mean, for W that least has seen: d_l = W_ll.
func (f *matrixFit) spread(grad, th []float64, kappa float64) (value float64) {
	var mean float64
	for j := range f.k {
		mean += th[j*(f.k+1)] / float64(f.k)
	}
	for j := range f.k {
		d := th[j*(f.k+1)] - mean
		value += kappa * d * d
		grad[j*(f.k+1)] += 2 * kappa * d
	}
	return value
}

// penalty returns the value of the penalties and adds their gradient.
func (f *matrixFit) penalty(grad, th []float64, lambda, mu float64) (value float64) {
	k := f.k
	for j, v := range th {
		weight := lambda + ridge
		switch {
		case j >= k*k:
			weight = mu + ridge
		case j%(k+1) == 0: // the diagonal
			weight, v = ridge, v-1
		}
		value += weight * v * v
		grad[j] += 2 * weight * v
	}
	return value
}
