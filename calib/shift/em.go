package shift

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/plumbline/plumbline/calib/detect/unlabelled"
)

// emSteps and emTolerance end the iteration of EM: the latter is far below any standard error.
const (
	emSteps     = 2000
	emTolerance = 1e-7
)

// EM returns the maximum likelihood estimate from the table: the rows now are independent draws of symbols from A q, and
//
//	q_j ← q_j Σ_i μ_i A_ij/(A q)_i      from q = p
//
// climbs to the maximum of a concave likelihood. That is Saerens' EM on histograms: with P(j | symbol i) of the reference in the place of a
// row's probabilities, counted, or with Soft the mean of the calibrator's. Standard errors, intervals and test are those of BBSE at this q.
// Errors as of BBSE.
// Reference: Saerens, Latinne, Decaestecker, Adjusting the Outputs of a Classifier to New a Priori Probabilities, Neural Computation 14, 2002,
// section 2.2.
func EM(t Table) (Estimate, error) {
	d, err := newModel(&t)
	if err != nil {
		return Estimate{}, err
	}
	c := len(d.classes)
	q, next := d.prior(), make([]float64, c)
	for range emSteps {
		clear(next)
		fitted := d.fitted(q)
		var known float64
		for i, mu := range d.mu {
			if mu == 0 || fitted[i] == 0 { // no class explains it: it says nothing of q
				continue
			}
			known += mu
			for x, v := range d.a[i*c : (i+1)*c] {
				next[x] += mu * v / fitted[i]
			}
		}
		if !(known > 0) {
			return Estimate{}, fmt.Errorf("no row now has a symbol of the reference: %w", ErrInput)
		}
		var step float64
		for x := range q {
			v := q[x] * next[x] / known
			step = max(step, math.Abs(v-q[x]))
			q[x] = v
		}
		if step < emTolerance {
			break
		}
	}
	s, err := d.solve(d.noise(q))
	if err != nil {
		return Estimate{}, err
	}
	return d.estimate(MethodEM, q, s)
}

// EMRows is EM on rows: p are calibrated probabilities of n rows without labels, n×K row-major, prior the shares of the classes in
// the rows that the calibrator was fitted on (unlabelled.EM, which says what it needs). Standard errors of the shares are those of the observed
// information, without the error of the calibrator; there is no test of the assumption.
// Reference: Saerens et al., section 2.2.
func EMRows(p, prior []float64) (Estimate, error) {
	s, err := unlabelled.EM(p, prior)
	if err != nil {
		return Estimate{}, fmt.Errorf("%w: %w", err, ErrInput)
	}
	k := len(prior)
	e := Estimate{Method: MethodEM, Assumption: Assumption, N: s.N, Reference: append([]float64(nil), prior...), Shares: s.Shares, Weights: s.Weights,
		SE: make([]float64, k), Accuracy: s.Accuracy, Lo: s.Lo, Hi: s.Hi, Fit: Fit{P: 1}}
	if k > MaxClasses {
		return e, nil
	}
	return e, e.observed(p)
}

// Correct sets dst to the probabilities p under shares of classes that have moved by the weights w: dst_j = p_j w_j / Σ p w; p
// itself where that sum is 0. dst may be p. Reference: Saerens et al., Eq. 2.4.
func Correct(dst, p, w []float64) { unlabelled.Correct(dst, p, w) }

// observed fills condition and standard errors from the information of the rows: with u_ij = p_ij/prior_j / Σ_l p_il w_l,
//
//	Cov q = (Σ_i u_i u_iᵀ)⁻¹ - q qᵀ/n
//
// where the last term takes out the direction that Σ q = 1 fixes: at the maximum Σ_i u_i = n·1 and qᵀu_i = 1.
func (e *Estimate) observed(p []float64) error {
	k := len(e.Shares)
	s := &solution{g: mat.NewSymDense(k, nil), b: make([]float64, k)}
	u := make([]float64, k)
	for i := 0; i < len(p); i += k {
		var sum float64
		for j, x := range p[i : i+k] {
			u[j] = x / e.Reference[j]
			sum += x * e.Weights[j]
		}
		if !(sum > 0) {
			continue
		}
		s.g.SymRankOne(s.g, 1/(sum*sum), mat.NewVecDense(k, u))
	}
	for j := range k {
		if !(s.g.At(j, j) > 0) {
			return fmt.Errorf("class %d has the probability 0 in every row: %w", j, ErrInput)
		}
	}
	if err := s.regularise(e.Reference); err != nil {
		return err
	}
	var inverse mat.SymDense
	if !s.chol.Factorize(s.g) || s.chol.InverseTo(&inverse) != nil {
		return fmt.Errorf("classes cannot be told apart by these probabilities: %w", ErrInput)
	}
	e.Condition, e.Ridge = s.condition, s.ridge
	for j, q := range e.Shares {
		e.SE[j] = math.Sqrt(max(0, inverse.At(j, j)-q*q/float64(e.N)))
	}
	return nil
}
