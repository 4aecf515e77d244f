package unlabelled

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// LabelShiftAssumption is what LabelShift and EM rest on.
const LabelShiftAssumption = "P(input | class) is as in the labelled reference: only the shares of the classes have moved"

// Shift is an estimate of how the shares of the classes have moved.
type Shift struct {
	Weights []float64 // by class: share now / share in the reference, at least 0
	Shares  []float64 // by class: share now; sums to 1
	Estimate
}

// maxCondition is beyond which the confusion matrix says nothing of the shares: errors grow by as much.
const maxCondition = 1e4

// LabelShift is the plain form of what the stream has, shift.BBSE, which takes more symbols than classes, tests the assumption and is regularised
// where classes are confused. It returns black-box shift estimation from counts alone (BBSE): joint[i*K+j] rows of the labelled reference with
// prediction i and class j, predicted[i] unlabelled rows now with prediction i. With C = joint/n and μ = predicted/m,
//
//	w = C⁻¹ μ,   clipped at 0 and scaled to Σ_j w_j C_·j = 1
//	accuracy = Σ_j C_jj w_j
//
// The interval of accuracy is by the delta method: with v = C⁻ᵀ diag(C), a labelled row (i, j) has influence 1[i=j] w_j - v_i w_j, an
// unlabelled one v_i. ECE is NaN: correct the probabilities with Correct and use ConfidenceBased. ErrInput where shapes or counts
// are wrong, a class has no reference row, or the matrix is singular (condition above 1e4): a model that confuses
// two classes entirely cannot tell their shares.
// Reference: Lipton, Wang, Smola, Detecting and Correcting for Label Shift with Black Box Predictors, ICML 2018, section 4.
func LabelShift(joint, predicted []float64) (Shift, error) {
	k := len(predicted)
	if k < 2 || len(joint) != k*k {
		return Shift{}, fmt.Errorf("%d predicted classes, %d joint counts, allowed K ≥ 2 and K²: %w", k, len(joint), ErrInput)
	}
	n, err := total("joint", joint)
	if err != nil {
		return Shift{}, err
	}
	m, err := total("predicted", predicted)
	if err != nil {
		return Shift{}, err
	}
	c := mat.NewDense(k, k, nil)
	prior, diagonal, mu := make([]float64, k), make([]float64, k), make([]float64, k)
	for i := range k {
		mu[i] = predicted[i] / m
		diagonal[i] = joint[i*k+i] / n
		for j := range k {
			c.Set(i, j, joint[i*k+j]/n)
			prior[j] += joint[i*k+j] / n
		}
	}
	for j, p := range prior {
		if p == 0 {
			return Shift{}, fmt.Errorf("class %d has no row in the reference: %w", j, ErrInput)
		}
	}
	var lu mat.LU
	lu.Factorize(c)
	if cond := lu.Cond(); !(cond <= maxCondition) {
		return Shift{}, fmt.Errorf("confusion matrix has condition %.3g, allowed up to %g: %w", cond, float64(maxCondition), ErrInput)
	}
	var w, v mat.VecDense
	if err := lu.SolveVecTo(&w, false, mat.NewVecDense(k, mu)); err != nil {
		return Shift{}, fmt.Errorf("solve for weights: %w: %w", err, ErrInput)
	}
	if err := lu.SolveVecTo(&v, true, mat.NewVecDense(k, diagonal)); err != nil {
		return Shift{}, fmt.Errorf("solve for the interval: %w: %w", err, ErrInput)
	}
	s := newShift("label shift (BBSE)", w.RawVector().Data, prior)
	s.N = int64(m)
	s.Accuracy = 0
	for j, d := range diagonal {
		s.Accuracy += d * s.Weights[j]
	}
	s.setInterval(z95 * math.Sqrt(shiftVariance(c, v.RawVector().Data, s.Weights, mu, n, m)))
	return s, nil
}

// shiftVariance is the variance of the accuracy of LabelShift.
func shiftVariance(c *mat.Dense, v, w, mu []float64, n, m float64) float64 {
	var mean, square, meanNow, squareNow float64
	for i := range mu {
		meanNow += mu[i] * v[i]
		squareNow += mu[i] * v[i] * v[i]
		for j := range w {
			h := -v[i] * w[j]
			if i == j {
				h += w[j]
			}
			mean += c.At(i, j) * h
			square += c.At(i, j) * h * h
		}
	}
	return max(0, square-mean*mean)/n + max(0, squareNow-meanNow*meanNow)/m
}

func newShift(method string, w, prior []float64) Shift {
	s := Shift{Weights: make([]float64, len(w)), Shares: make([]float64, len(w))}
	s.Method, s.Assumption, s.ECE = method, LabelShiftAssumption, math.NaN()
	var sum float64
	for j := range w {
		s.Weights[j] = max(0, w[j])
		sum += s.Weights[j] * prior[j]
	}
	for j := range w {
		s.Weights[j] /= sum
		s.Shares[j] = s.Weights[j] * prior[j]
	}
	return s
}

func (s *Shift) setInterval(half float64) {
	s.Lo, s.Hi = max(0, s.Accuracy-half), min(1, s.Accuracy+half)
}

// emSteps and emTolerance end the iteration of EM.
const (
	emSteps     = 10_000
	emTolerance = 1e-9
)

// EM returns the maximum likelihood estimate of the shares of the classes from calibrated probabilities p of n unlabelled rows
// (n×K, row-major) and the shares in the reference, by iterating
//
//	p'_ij ∝ p_ij w_j,   w_j = mean_i p'_ij / prior_j
//
// from w = 1; the likelihood is concave and rises at every step. accuracy = mean_i of the corrected probability of the
// class that p says: max of p, not of p'. It needs probabilities that are calibrated on the reference, bias by class
// included (vector scaling): with those it beats LabelShift, with raw ones it can be far off. The interval has the sampling of labels only.
// ErrInput where shapes are wrong, a prior is not positive or does not sum to 1, or a row is no distribution.
// References: Saerens, Latinne, Decaestecker, Neural Computation 14, 2002, section 2.2. Alexandari, Kundaje, Shrikumar, ICML 2020.
func EM(p []float64, prior []float64) (Shift, error) {
	k := len(prior)
	if k < 2 || len(p) == 0 || len(p)%k != 0 {
		return Shift{}, fmt.Errorf("%d probabilities of %d classes, allowed n·K with n ≥ 1, K ≥ 2: %w", len(p), k, ErrInput)
	}
	if err := checkRow("prior", prior, 1e-300); err != nil {
		return Shift{}, err
	}
	for i := 0; i < len(p); i += k {
		if err := checkRow(fmt.Sprintf("row %d", i/k), p[i:i+k], 0); err != nil {
			return Shift{}, err
		}
	}
	w := make([]float64, k)
	for j := range w {
		w[j] = 1
	}
	n := float64(len(p) / k)
	next, row := make([]float64, k), make([]float64, k)
	for range emSteps {
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
		if step < emTolerance {
			break
		}
	}
	s := newShift("label shift (EM)", w, prior)
	s.N = int64(n)
	var right, variance float64
	for i := 0; i < len(p); i += k {
		top := 0
		for j, x := range p[i : i+k] {
			if x > p[i+top] {
				top = j
			}
		}
		Correct(row, p[i:i+k], s.Weights)
		right += row[top]
		variance += row[top] * (1 - row[top])
	}
	s.Accuracy = right / n
	s.setInterval(z95 * math.Sqrt(variance) / n)
	return s, nil
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

// Correct sets dst to the probabilities p under shares of classes that have moved by the weights w: dst_j = p_j w_j / Σ p w; p
// itself where that sum is 0. dst may be p.
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
