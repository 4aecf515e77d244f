package shift

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// square is a table of one symbol a class.
func square(joint, predicted []float64) Table {
	t := Table{K: len(predicted), Joint: joint, Now: predicted}
	for i := range predicted {
		t.Says = append(t.Says, i)
	}
	return t
}

// plainCondition is beyond which the confusion matrix says nothing of the shares: errors grow by as much.
const plainCondition = 1e4

// plainLabelShift is the plain form of BBSE with one symbol a class: black-box shift estimation from counts alone
// (BBSE): joint[i*K+j] rows of the labelled reference with prediction i and class j, predicted[i] unlabelled rows now
// with prediction i. With C = joint/n and μ = predicted/m,
//
//	w = C⁻¹ μ,   clipped at 0 and scaled to Σ_j w_j C_·j = 1
//	accuracy = Σ_j C_jj w_j
//
// The interval of accuracy is by the delta method: with v = C⁻ᵀ diag(C), a labelled row (i, j) has influence 1[i=j]
// w_j - v_i w_j, an unlabelled one v_i. ErrInput where shapes or counts
// are wrong, a class has no reference row, or the matrix is singular (condition above 1e4): a model that confuses
// two classes entirely cannot tell their shares.
// Reference: Lipton, Wang, Smola, Detecting and Correcting for Label Shift with Black Box Predictors, ICML 2018,
// section 4.
func plainLabelShift(joint, predicted []float64) (Estimate, error) {
	k := len(predicted)
	if k < 2 || len(joint) != k*k {
		return Estimate{}, fmt.Errorf("%d predicted classes, %d joint counts, allowed K ≥ 2 and K²: %w", k, len(joint),
			ErrInput)
	}
	n, err := total("joint", joint)
	if err != nil {
		return Estimate{}, err
	}
	m, err := total("predicted", predicted)
	if err != nil {
		return Estimate{}, err
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
			return Estimate{}, fmt.Errorf("class %d has no row in the reference: %w", j, ErrInput)
		}
	}
	var lu mat.LU
	lu.Factorize(c)
	if cond := lu.Cond(); !(cond <= plainCondition) {
		return Estimate{}, fmt.Errorf("confusion matrix has condition %.3g, allowed up to %g: %w", cond,
			float64(plainCondition), ErrInput)
	}
	var w, v mat.VecDense
	if err := lu.SolveVecTo(&w, false, mat.NewVecDense(k, mu)); err != nil {
		return Estimate{}, fmt.Errorf("solve for weights: %w: %w", err, ErrInput)
	}
	if err := lu.SolveVecTo(&v, true, mat.NewVecDense(k, diagonal)); err != nil {
		return Estimate{}, fmt.Errorf("solve for the interval: %w: %w", err, ErrInput)
	}
	s := plainShares(w.RawVector().Data, prior)
	for j, d := range diagonal {
		s.Accuracy += d * s.Weights[j]
	}
	half := z95 * math.Sqrt(shiftVariance(c, v.RawVector().Data, s.Weights, mu, n, m))
	s.Lo, s.Hi = max(0, s.Accuracy-half), min(1, s.Accuracy+half)
	return s, nil
}

// plainShares makes weights shares.
func plainShares(w, prior []float64) Estimate {
	s := Estimate{Weights: make([]float64, len(w)), Shares: make([]float64, len(w))}
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

// shiftVariance is the variance of the accuracy of plainLabelShift.
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

// threeClasses is a model of three classes with posteriors that are exact under the prior; rows are drawn under others.
type threeClasses struct{ prior []float64 }

// row draws a class by shares and an observation x of it, and returns the posterior under the world's prior.
func (w threeClasses) row(rng *rand.Rand, shares []float64) (y int, p []float64) {
	u := rng.Float64()
	for y = 0; y < 2 && u >= shares[y]; y++ {
		u -= shares[y]
	}
	x := rng.NormFloat64() + 1.5*float64(y)
	p = make([]float64, 3)
	var sum float64
	for j := range p {
		d := x - 1.5*float64(j)
		p[j] = w.prior[j] * math.Exp(-d*d/2)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	return y, p
}

func argmax(p []float64) (top int) {
	for j, x := range p {
		if x > p[top] {
			top = j
		}
	}
	return top
}

// TestLabelShift: shares move from .5 .3 .2 to .1 .2 .7. Both methods find them and the accuracy; intervals of BBSE
// cover; without correction the confidence-based estimate is wrong, with it right.
func TestLabelShift(t *testing.T) {
	w := threeClasses{[]float64{.5, .3, .2}}
	now := []float64{.1, .2, .7}
	rng := rand.New(rand.NewPCG(5, 5))
	const n, trials = 3000, 60
	covered := 0
	var off, offCorrected float64
	for trial := range trials {
		joint, predicted := make([]float64, 9), make([]float64, 3)
		var probs []float64
		var right, plain, corrected float64
		for range n {
			y, p := w.row(rng, w.prior)
			joint[argmax(p)*3+y]++
		}
		for range n {
			y, p := w.row(rng, now)
			probs = append(probs, p...)
			predicted[argmax(p)]++
			if argmax(p) == y {
				right += 1. / n
			}
			plain += p[argmax(p)] / n
		}
		b, err := BBSE(square(joint, predicted))
		if err != nil {
			t.Fatal(err)
		}
		e, err := EMRows(probs, w.prior)
		if err != nil {
			t.Fatal(err)
		}
		if b.Lo <= right && right <= b.Hi {
			covered++
		}
		row := make([]float64, 3)
		for i := 0; i < len(probs); i += 3 {
			Correct(row, probs[i:i+3], e.Weights)
			corrected += row[argmax(probs[i:i+3])] / n
		}
		if math.Abs(e.Accuracy-right) > .04 || math.Abs(corrected-e.Accuracy) > 1e-9 {
			t.Errorf("trial %d: accuracy %v, EM %v, by hand %v", trial, right, e.Accuracy, corrected)
		}
		off += (plain - right) / trials
		offCorrected += (corrected - right) / trials
		for j, s := range now {
			if math.Abs(e.Shares[j]-s) > .05 || math.Abs(b.Shares[j]-s) > .12 {
				t.Errorf("trial %d: share of class %d is %v, EM %v, BBSE %v", trial, j, s, e.Shares[j], b.Shares[j])
			}
		}
	}
	// The standard error of these means is .009/sqrt(60).
	if off < .015 || math.Abs(offCorrected) > .005 {
		t.Errorf("mean confidence is off by %v, corrected by %v; want above .015, and about 0", off, offCorrected)
	}
	if covered < trials*85/100 {
		t.Errorf("%d of %d intervals of BBSE hold the accuracy, want about 95 %%", covered, trials)
	}
}

func TestSquareRefused(t *testing.T) {
	for name, c := range map[string]struct{ joint, predicted []float64 }{
		"shape":            {make([]float64, 4), make([]float64, 3)},
		"one class":        {[]float64{50}, []float64{50}},
		"no rows":          {make([]float64, 4), []float64{50, 50}},
		"absent class":     {[]float64{50, 0, 50, 0}, []float64{50, 50}},
		"confused classes": {[]float64{25, 25, 25, 25}, []float64{50, 50}},
		"NaN":              {[]float64{math.NaN(), 1, 1, 50}, []float64{50, 50}},
	} {
		if _, err := plainLabelShift(c.joint, c.predicted); !errors.Is(err, ErrInput) {
			t.Errorf("%s: error %v, want ErrInput", name, err)
		}
		if name == "confused classes" || name == "absent class" {
			continue // BBSE is regularised, and takes the share of a class that the reference lacks to be 0
		}
		if _, err := BBSE(square(c.joint, c.predicted)); !errors.Is(err, ErrInput) {
			t.Errorf("BBSE, %s: error %v, want ErrInput", name, err)
		}
	}
	for name, c := range map[string]struct{ p, prior []float64 }{
		"shape": {[]float64{.5, .5, 1}, []float64{.5, .5}}, "no rows": {nil, []float64{.5, .5}},
		"prior 0":         {[]float64{.5, .5}, []float64{1, 0}},
		"no distribution": {[]float64{.5, .6}, []float64{.5, .5}}, "NaN": {[]float64{math.NaN(), .6},
			[]float64{.5, .5}},
	} {
		if _, err := EMRows(c.p, c.prior); !errors.Is(err, ErrInput) {
			t.Errorf("EMRows, %s: error %v, want ErrInput", name, err)
		}
	}
	s, err := EMRows([]float64{1, 0, 1, 0}, []float64{.5, .5})
	// shares and accuracy are there, errors of class 1 are not known
	if err == nil || s.Shares[0] != 1 || s.Accuracy != 1 {
		t.Errorf("certain rows: %+v, %v", s, err)
	}
	p := []float64{1, 0}
	Correct(p, p, []float64{0, 2})
	if p[0] != 1 {
		t.Errorf("a row that the weights exclude: %v, want it as it was", p)
	}
}
