package shift

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// Methods.
const (
	MethodBBSE = "label shift (BBSE)"
	MethodEM   = "label shift (EM)"
)

// Estimate is how the shares of the classes have moved, and what follows from it. Slices have K elements.
type Estimate struct {
	Method     string
	Assumption string
	N          int64 // rows now
	Reference  []float64
	Shares     []float64 // q: now; sums to 1
	SE         []float64 // standard errors of Shares less Reference
	Weights    []float64 // q/p; 1 for classes that the reference lacks
	Unknown    int       // classes that the reference lacks, whose share is taken to be 0

	// Accuracy of the rows now; Lo, Hi hold it with 95 % if the assumption is true.
	Accuracy, Lo, Hi float64

	// Condition is the root of the condition number of AᵀD⁻¹A with a diagonal of ones: about by how much noise is
	// magnified in the share of the worst class, against a model that confuses no two classes. Ridge is λ, 0 where the
	// condition is at most MaxCondition: above, the estimate is drawn towards no shift, and its intervals are too
	// narrow.
	Condition, Ridge float64
	Fit              Fit
}

// Fit is the test of the assumption: X² of μ - A q by symbol, Σ r²/D over groups of symbols that expect enough rows.
// Under label shift it is about χ² of DF degrees of freedom, DF its mean, which is S - K where no group has two
// symbols. P is its p-value, for one look; 1 where DF is 0: with a symbol a class there is nothing to test.
type Fit struct{ Statistic, DF, P float64 }

// MaxCondition is beyond which an estimate is regularised.
const MaxCondition = 100

const (
	// steps of BBSE, at most: D depends on q, and after each step on one that is nearer. Ten are enough nearly always.
	bbseSteps = 200
	// bbseStepsMany where there are more than bbseMany classes, with which a step takes milliseconds.
	bbseStepsMany = 100
	bbseMany      = 64
	// bbseTolerance ends them: far below any standard error.
	bbseTolerance = 1e-7
	z95           = 1.959963984540054
)

// BBSE returns black-box shift estimation by minimum chi-square: with A, μ of the Table and D the variance of μ - A q
// by symbol,
//
//	q = argmin_{q ≥ 0} Σ_i (μ_i - (A q)_i)²/D_i + λ Σ_j G_jj (q_j - p_j)²,   G = AᵀD⁻¹A
//	λ = 0 unless A is near singular
//	Cov q = G⁻¹ - q qᵀ/m - diag(q_j²/n_j)      of a counted reference
//	accuracy = Σ_j q_j h_j,   h_j = P(the symbol says j | class j)
//
// which with one symbol a class is w = C⁻¹μ (Lipton et al.), weights w = q/p. The interval of accuracy is by the delta
// method: with x = D⁻¹A G⁻¹h, a row now of symbol i and class j has influence x_i - 1[i says j], a reference row
// q_j/n_j (1[i says j] - x_i). λ is the least that brings the Condition to MaxCondition, as in RLLS the estimate then
// is drawn towards w = 1. ErrInput where the table is none, fewer than two classes have reference rows, or q does not
// settle: where classes come and go whose share would be negative.
// References: Lipton, Wang, Smola, ICML 2018, section 4. Azizzadenesheli et al., Regularized Learning for Domain
// Adaptation under Label Shifts, ICLR 2019 (RLLS). Rao, Linear Statistical Inference, 1973 (weights).
func BBSE(t Table) (Estimate, error) {
	d, err := newModel(&t)
	if err != nil {
		return Estimate{}, err
	}
	q := d.prior()
	steps := bbseSteps
	if len(d.classes) > bbseMany {
		steps = bbseStepsMany
	}
	relaxed := relaxation{factor: 1}
	for range steps {
		s, err := d.solve(d.noise(q))
		if err != nil {
			return Estimate{}, err
		}
		next := s.shares(d)
		if relaxed.step(q, next) < bbseTolerance {
			return d.estimate(MethodBBSE, next, s)
		}
	}
	return Estimate{}, fmt.Errorf("the shares of the classes do not settle within %d steps: %w", steps, ErrInput)
}

// relaxation makes steps longer or shorter by how the one before has turned out (Aitken): plain ones are slow where D
// moves with q, and may go to and fro between two estimates without end.
type relaxation struct {
	factor float64
	before []float64 // next less q, of the step before
}

// step moves q towards next, and returns how far that was off.
func (r *relaxation) step(q, next []float64) (off float64) {
	var dot, square float64
	for x := range q {
		d := next[x] - q[x]
		off = max(off, math.Abs(d))
		if r.before != nil {
			turn := d - r.before[x]
			dot, square = dot+r.before[x]*turn, square+turn*turn
		}
	}
	if square > 0 {
		r.factor = min(max(-r.factor*dot/square, 1./16), 2)
	}
	if r.before == nil {
		r.before = make([]float64, len(q))
	}
	var sum float64
	for x := range q {
		r.before[x] = next[x] - q[x]
		q[x] = max(0, q[x]+r.factor*r.before[x])
		sum += q[x]
	}
	for x := range q {
		q[x] /= sum
	}
	return off
}

// solution is a weighted least squares problem with its factors.
type solution struct {
	d         []float64     // D by symbol
	g         *mat.SymDense // AᵀD⁻¹A + λ diag G
	b         []float64     // AᵀD⁻¹μ + λ diag(G) p
	chol      mat.Cholesky
	condition float64
	ridge     float64
}

// solve prepares the normal equations for the noise d.
func (d *model) solve(noise []float64) (*solution, error) {
	c := len(d.classes)
	s := &solution{d: noise, g: mat.NewSymDense(c, nil), b: make([]float64, c)}
	used := make([]int, 0, c)
	g := s.g.RawSymmetric()
	for i, dd := range noise {
		row := d.a[i*c : (i+1)*c]
		used = used[:0]
		for x, v := range row {
			if v != 0 {
				used = append(used, x)
			}
		}
		mu := d.mu[i] / dd
		for at, x := range used {
			s.b[x] += row[x] * mu
			upper, v := g.Data[x*g.Stride:x*g.Stride+c], row[x]/dd
			if len(used) == c { // side by side, which is faster
				upper, of := upper[x:], row[x:]
				for y := range upper {
					upper[y] += v * of[y]
				}
				continue
			}
			for _, y := range used[at:] {
				upper[y] += v * row[y]
			}
		}
	}
	if err := s.regularise(d.prior()); err != nil {
		return nil, err
	}
	if !s.chol.Factorize(s.g) {
		return nil, fmt.Errorf("classes cannot be told apart by what the model says: %w", ErrInput)
	}
	return s, nil
}

// regularise measures the condition and adds the ridge where it is too large.
func (s *solution) regularise(prior []float64) error {
	c := s.g.SymmetricDim()
	scaled := mat.NewSymDense(c, nil)
	for x := range c {
		for y := x; y < c; y++ {
			scaled.SetSym(x, y, s.g.At(x, y)/math.Sqrt(s.g.At(x, x)*s.g.At(y, y)))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(scaled, false) {
		return fmt.Errorf("matrix of the classes has no eigenvalues: %w", ErrInput)
	}
	v := eigen.Values(nil)
	least, most := v[0], v[c-1]
	if s.condition = math.Inf(1); least > 0 {
		s.condition = math.Sqrt(most / least)
	}
	if s.condition <= MaxCondition {
		return nil
	}
	// (most + λ)/(least + λ) = MaxCondition²
	s.ridge = (most - MaxCondition*MaxCondition*least) / (MaxCondition*MaxCondition - 1)
	for x := range c {
		add := s.ridge * s.g.At(x, x)
		s.g.SetSym(x, x, s.g.At(x, x)+add)
		s.b[x] += add * prior[x]
	}
	return nil
}

// shares solves for q ≥ 0: classes whose share comes out negative are taken out, one after the other, least first.
func (s *solution) shares(d *model) []float64 {
	c := len(s.b)
	out := make([]float64, c)
	free := make([]int, c)
	for x := range free {
		free[x] = x
	}
	var whole mat.VecDense
	if s.chol.SolveVecTo(&whole, mat.NewVecDense(c, s.b)) != nil {
		return d.prior()
	}
	q, scratch := whole.RawVector().Data, make([]float64, c*c)
	for {
		worst := 0
		var sum float64
		for x, v := range q {
			if sum += v; v < q[worst] {
				worst = x
			}
		}
		if !(q[worst] < 0) {
			if !(sum > 0) {
				return d.prior() // no row now has a symbol of the reference
			}
			for x, fx := range free {
				out[fx] = q[x] / sum // 1 but for the ridge and the classes taken out
			}
			return out
		}
		if free = append(free[:worst], free[worst+1:]...); len(free) == 0 || !s.among(free, q[:len(free)], scratch) {
			return d.prior()
		}
		q = q[:len(free)]
	}
}

// among solves for the shares of some classes, the others having none, and reports whether it could. It does not
// measure the condition, which takes longer than the solution and is no worse than that of the whole.
func (s *solution) among(free []int, q, scratch []float64) bool {
	n, g := len(free), s.g.RawSymmetric()
	for x, fx := range free {
		q[x] = s.b[fx]
		to, from := scratch[x*n:(x+1)*n], g.Data[fx*g.Stride:]
		for y := x; y < n; y++ {
			to[y] = from[free[y]]
		}
	}
	t, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: scratch[:n*n]})
	if ok {
		lapack64.Potrs(t, blas64.General{Rows: n, Cols: 1, Stride: 1, Data: q})
	}
	return ok
}
