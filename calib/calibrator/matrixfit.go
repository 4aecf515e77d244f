package calibrator

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/plumbline/plumbline/calib/kernel"
)

// ODIR are the weights of off-diagonal and intercept regularisation, finite and ≥ 0; 0 is that of DefaultODIR. There is
// always a ridge of 1e-9 towards the identity.
type ODIR struct {
	OffDiagonal float64 // λ
	Intercept   float64 // μ
	// Diagonal is κ, which draws the diagonal weights to their mean. The paper has none. 0 is that of DefaultODIR, but
	// none where both others are set: that is the paper's objective.
	Diagonal float64
}

// Prior deviations of the off-diagonal weights, of the intercepts and of the diagonal weights from their mean. On
// halves of real logits of 10 and 100 classes the held-out NLL is nearly flat around them.
const (
	offDiagonalDeviation = 0.025
	interceptDeviation   = 0.3
	diagonalDeviation    = 0.1
)

// DefaultODIR returns the penalties where none are set, for n rows of K classes: those of a Gaussian prior with
// deviation 0.025 of each off-diagonal weight, 0.3 of each intercept and 0.1 of each diagonal weight from their mean,
// which lose their force as rows grow:
//
//	λ = K(K-1)/(2 n 0.025²),  μ = K/(2 n 0.3²),  κ = K/(2 n 0.1²)
//
// The paper chooses λ and μ by cross-validation. It has no κ, and then nothing holds W_jj of a class whose fitted rows
// all have p_j ≈ 1, ln p_j ≈ 0: the larger it is the better, and the first other row of the class has a likelihood of
// 0.
func DefaultODIR(n, k int) ODIR {
	rows, classes := float64(max(n, 1)), float64(k)
	return ODIR{
		OffDiagonal: classes * (classes - 1) / (2 * rows * offDiagonalDeviation * offDiagonalDeviation),
		Intercept:   classes / (2 * rows * interceptDeviation * interceptDeviation),
		Diagonal:    classes / (2 * rows * diagonalDeviation * diagonalDeviation),
	}
}

func (o ODIR) withDefaults(n, k int) (ODIR, error) {
	def := DefaultODIR(n, k)
	if o.OffDiagonal > 0 && o.Intercept > 0 {
		def.Diagonal = 0
	}
	for _, f := range []struct {
		v   *float64
		def float64
	}{{&o.OffDiagonal, def.OffDiagonal}, {&o.Intercept, def.Intercept}, {&o.Diagonal, def.Diagonal}} {
		if !(*f.v >= 0) || math.IsInf(*f.v, 0) {
			return o, fmt.Errorf("regularisation %g, allowed are finite values from 0", *f.v)
		}
		if *f.v == 0 {
			*f.v = f.def
		}
	}
	return o, nil
}

// FitDirichlet fits W and b to
//
//	L = mean NLL + λ/(K(K-1)) Σ_{j≠l} W_jl² + μ/K Σ_j b_j² + κ/K Σ_l (d_l - mean d)²
//
// in nats, d_l = W_ll - mean_{j≠l} W_jl, which like softmax does not see a number added to a column: a convex
// objective, by L-BFGS from temperature scaling, W = I/T, in coordinates in which each class's own block of the Hessian
// there is the identity. A pass costs 4 n K² products and sums; for sensible penalties 15–50 are needed, more where
// they are so weak that the fit follows every row. Errors are those of FitTemperature; also K beyond
// 2000, logits beyond ±1e6 and a penalty that is negative or not finite are errors.
func FitDirichlet[T kernel.Float](d Data[T], reg ODIR, opts Options) (*Dirichlet, Report, error) {
	s, err := newSample("dirichlet", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	m, err := s.fitMatrix(s.logProbs(), reg)
	if err != nil {
		return nil, Report{}, err
	}
	c := &Dirichlet{p: m}
	return finish(s, c, square(s.k))
}

// FitMatrix fits as FitDirichlet does, on the logits in place of the log-probabilities.
func FitMatrix[T kernel.Float](d Data[T], reg ODIR, opts Options) (*Matrix, Report, error) {
	s, err := newSample("matrix", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	m, err := s.fitMatrix(s.z, reg)
	if err != nil {
		return nil, Report{}, err
	}
	c := &Matrix{p: m}
	return finish(s, c, square(s.k))
}

// logProbs are the n×K inputs of Dirichlet.
func (s *sample) logProbs() []float64 {
	x := make([]float64, len(s.z))
	for i := range s.n {
		logSoftmax(x[i*s.k:(i+1)*s.k], s.row(i))
	}
	return x
}

// fitMatrix minimises on the n×K inputs x.
func (s *sample) fitMatrix(x []float64, reg ODIR) (matrixParams, error) {
	if s.k > maxMatrixClasses {
		return matrixParams{}, fmt.Errorf("fit %s: %d classes, allowed 2..%d", s.method, s.k, maxMatrixClasses)
	}
	reg, err := reg.withDefaults(s.n, s.k)
	if err != nil {
		return matrixParams{}, fmt.Errorf("fit %s: %w", s.method, err)
	}
	if err := s.moderate(); err != nil {
		return matrixParams{}, err
	}
	f := newMatrixFit(s, x)
	start, err := s.scaled(x)
	if err != nil {
		return matrixParams{}, fmt.Errorf("fit %s: %w", s.method, err)
	}
	m, evaluations, converged := f.fit(reg, start)
	s.report.Iterations, s.report.Converged = evaluations, converged
	s.doubtDiagonal(m)
	return m, nil
}

// steepDiagonal is how many times the median a diagonal weight is that the report mentions.
const steepDiagonal = 5

// doubtDiagonal warns of the classes whose rows do not say how large their diagonal weight is.
func (s *sample) doubtDiagonal(m matrixParams) {
	d := make([]float64, s.k)
	for j := range d {
		d[j] = m.W[j*(s.k+1)]
	}
	sorted := slices.Sorted(slices.Values(d))
	for j, v := range d {
		if most := steepDiagonal * math.Abs(sorted[s.k/2]); math.Abs(v) > most {
			s.warn("diagonal weight of class %d: %.3g, above %.3g, which is %d times the median: set ODIR.Diagonal", j,
				v, most, steepDiagonal)
		}
	}
}

// scaled is temperature scaling of the inputs, as parameters.
func (s *sample) scaled(x []float64) (matrixParams, error) {
	t, _, err := FitTemperature(NewData(x, s.k, s.y, s.w), Options{})
	m := matrixParams{W: make([]float64, s.k*s.k), B: make([]float64, s.k)}
	for j := range s.k {
		m.W[j*s.k+j] = 1 / t.T()
	}
	return m, err
}

const (
	// matrixGradient ends the fit where no component is larger, in coordinates in which the Hessian is about 1: the
	// value of K² components of that size is far from a difference that matters.
	matrixGradient = 1e-6
	// matrixValue and matrixIdle end it where the value fell by less, in nats, in that many iterations.
	matrixValue = 1e-9
	matrixIdle  = 5
	// matrixRound is how many evaluations one set of coordinates is used for; a fit that needs more has moved away
	// from the Hessian that they are made of.
	matrixRound = 30
	// matrixRounds bounds the rounds.
	matrixRounds = 50
)

// fit minimises from start.
func (f *matrixFit) fit(reg ODIR, start matrixParams) (m matrixParams, evaluations int, converged bool) {
	loss := f.loss(reg)
	ends := ending{gradient: matrixGradient, value: matrixValue, idle: matrixIdle, evaluations: matrixRound}
	m = start
	for round := 0; round < matrixRounds && !converged; round++ {
		var n int
		m, n, converged = f.round(loss, reg, m, ends)
		evaluations += n
	}
	return m, evaluations, converged
}

// round minimises in the coordinates that fit at start. It works where the penalties are least among the parameters
// with the same outputs: the penalties alone would find that slowly. The coordinates are scaled so that the
// optimiser's first step, of length 1, is Newton's where the Hessian is 1.
func (f *matrixFit) round(loss objective, reg ODIR, start matrixParams, ends ending) (matrixParams, int, bool) {
	k := f.k
	th, g := make([]float64, k*k+k), make([]float64, k*k+k)
	from := append(append(make([]float64, 0, len(th)), start.W...), start.B...)
	pre := f.newPrecondition(reg, from)
	scale := 1.0
	parameters := func(v []float64) {
		pre.parameters(th, v)
		for j, t := range from {
			th[j] = t + scale*th[j]
		}
		least(th, k)
	}
	in := func(grad, v []float64) float64 {
		parameters(v)
		value := loss(g, th)
		leastGradient(g, k)
		pre.gradient(grad, g)
		for j := range grad {
			grad[j] *= scale
		}
		return value
	}
	v := make([]float64, k*(k+1))
	grad := make([]float64, len(v))
	in(grad, v)
	if size := blas64.Nrm2(blas64.Vector{N: len(grad), Inc: 1, Data: grad}); size > 0 {
		scale = size
	}
	ends.gradient *= scale
	v, evaluations, converged := minimiseTo(in, v, ends)
	parameters(v)
	return matrixParams{W: th[: k*k : k*k], B: th[k*k:]}, evaluations + 1, converged
}

// least takes from every column of W the mean of its off-diagonal numbers, and from b its mean: softmax does not see
// either, and the squares that the penalties sum become least.
func least(th []float64, k int) {
	w, b := th[:k*k], th[k*k:]
	mean := columnMeans(w, k, true)
	for i := range w {
		w[i] -= mean[i%k]
	}
	centre(b)
}

// leastGradient is the gradient by what went into least, from that by what came out: its transpose.
func leastGradient(g []float64, k int) {
	w, b := g[:k*k], g[k*k:]
	mean := columnMeans(w, k, false)
	for i := range w {
		if i%(k+1) != 0 {
			w[i] -= mean[i%k]
		}
	}
	centre(b)
}

// centre takes the mean of b from each of its numbers.
func centre(b []float64) {
	var m float64
	for _, v := range b {
		m += v / float64(len(b))
	}
	for j := range b {
		b[j] -= m
	}
}

// columnMeans are the sums of W's columns, with or without the diagonal, over K-1.
func columnMeans(w []float64, k int, off bool) []float64 {
	mean := make([]float64, k)
	for i, v := range w {
		if !off || i%(k+1) != 0 {
			mean[i%k] += v / float64(k-1)
		}
	}
	return mean
}
