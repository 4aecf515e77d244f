package shift

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// emRowsSteps and emRowsTolerance end the iteration of EMRows.
const (
	emRowsSteps     = 10_000
	emRowsTolerance = 1e-9
)

// EMRows is EM on rows: p are calibrated probabilities of n rows without labels, n×K row-major, prior the shares of the
// classes in the rows that the calibrator was fitted on. It iterates
//
//	p'_ij ∝ p_ij w_j,   w_j = mean_i p'_ij / prior_j
//
// from w = 1; the likelihood is concave and rises at every step. accuracy = mean_i of the corrected probability of the
// class that p says: max of p, not of p'. It needs probabilities that are calibrated on the reference, bias by class
// included (vector scaling): with those it beats BBSE of a symbol a class, with raw ones it can be far off. The
// interval has the sampling of labels only. Standard errors of the shares, for up to MaxClasses, are those of the
// observed information, without the error of the calibrator; there is no test of the assumption. ErrInput where shapes
// are wrong, a prior is not positive or does not sum to 1, or a row is no distribution.
// References: Saerens et al., section 2.2. Alexandari, Kundaje, Shrikumar, ICML 2020.
func EMRows(p, prior []float64) (Estimate, error) {
	if err := checkRows(p, prior); err != nil {
		return Estimate{}, err
	}
	k := len(prior)
	w := rowWeights(p, prior)
	e := Estimate{Method: MethodEM, Assumption: Assumption, N: int64(len(p) / k),
		Reference: append([]float64(nil), prior...), Shares: make([]float64, k), Weights: w,
		SE: make([]float64, k), Fit: Fit{P: 1}}
	var sum float64
	for j, x := range w {
		sum += x * prior[j]
	}
	for j := range w {
		w[j] /= sum
		e.Shares[j] = w[j] * prior[j]
	}
	e.rowAccuracy(p)
	if k > MaxClasses {
		return e, nil
	}
	err := e.observed(p)
	return e, err
}

// rowWeights climbs to the maximum of the likelihood.
func rowWeights(p, prior []float64) []float64 {
	k := len(prior)
	w, next, row := make([]float64, k), make([]float64, k), make([]float64, k)
	for j := range w {
		w[j] = 1
	}
	n := float64(len(p) / k)
	for range emRowsSteps {
		clear(next)
		for i := 0; i < len(p); i += k {
			Correct(row, p[i:i+k], w)
			for j, x := range row {
				next[j] += x / n / prior[j]
			}
		}
		var step float64
		for j := range w {
			step = max(step, math.Abs(next[j]-w[j])*prior[j])
		}
		copy(w, next)
		if step < emRowsTolerance {
			break
		}
	}
	return w
}

// rowAccuracy fills the accuracy and its interval from the corrected probabilities.
func (e *Estimate) rowAccuracy(p []float64) {
	k := len(e.Shares)
	row := make([]float64, k)
	var right, variance float64
	for i := 0; i < len(p); i += k {
		top := 0
		for j, x := range p[i : i+k] {
			if x > p[i+top] {
				top = j
			}
		}
		Correct(row, p[i:i+k], e.Weights)
		right += row[top]
		variance += row[top] * (1 - row[top])
	}
	n := float64(e.N)
	e.Accuracy = right / n
	half := z95 * math.Sqrt(variance) / n
	e.Lo, e.Hi = max(0, e.Accuracy-half), min(1, e.Accuracy+half)
}

func checkRows(p, prior []float64) error {
	k := len(prior)
	if k < 2 || len(p) == 0 || len(p)%k != 0 {
		return fmt.Errorf("%d probabilities of %d classes, allowed n·K with n ≥ 1, K ≥ 2: %w", len(p), k, ErrInput)
	}
	if err := checkRow("prior", prior, 1e-300); err != nil {
		return err
	}
	for i := 0; i < len(p); i += k {
		if err := checkRow(fmt.Sprintf("row %d", i/k), p[i:i+k], 0); err != nil {
			return err
		}
	}
	return nil
}

func checkRow(name string, p []float64, least float64) error {
	const slack = 1e-4 // float32 probabilities of many classes
	var sum float64
	for j, x := range p {
		if !(x >= least && x <= 1+slack) {
			return fmt.Errorf("%s, class %d: probability %v, allowed %g to 1: %w", name, j, x, least, ErrInput)
		}
		sum += x
	}
	if math.Abs(sum-1) > slack {
		return fmt.Errorf("%s: probabilities sum to %v, allowed 1: %w", name, sum, ErrInput)
	}
	return nil
}

// Correct sets dst to the probabilities p under shares of classes that have moved by the weights w: dst_j = p_j w_j / Σ
// p w; p itself where that sum is 0. dst may be p.
// Reference: Saerens et al., Eq. 2.4.
func Correct(dst, p, w []float64) {
	var sum float64
	for j := range p {
		sum += p[j] * w[j]
	}
	if !(sum > 0) {
		copy(dst, p)
		return
	}
	for j := range p {
		dst[j] = p[j] * w[j] / sum
	}
}

// observed fills condition and standard errors from the information of the rows: with u_ij = p_ij/prior_j / Σ_l p_il
// w_l,
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
