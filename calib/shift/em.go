package shift

import (
	"fmt"
	"math"
	"runtime"
)

// emSteps and emTolerance end the iteration of EM: the latter is far below any standard error.
const (
	emSteps     = 2000
	emTolerance = 1e-7
	emTurn      = 1 << 17 // entries of A: less than a millisecond
	emSlack     = 1e-12   // rounding of a likelihood
	emLeast     = 0.1     // of its share after two steps, which a class keeps in a leap
)

// EM returns the maximum likelihood estimate from the table: the rows now are independent draws of symbols from A q,
// and
//
//	q_j ← q_j Σ_i μ_i A_ij/(A q)_i      from q = p
//
// climbs to the maximum of a concave likelihood. That is Saerens' EM on histograms: with P(j | symbol i) of the
// reference in the place of a row's probabilities, counted, or with Soft the mean of the calibrator's. Standard errors,
// intervals and test are those of BBSE at this q. Errors as of BBSE.
//
// After every two steps, from q to q1 and q2, it leaps to q - 2αr + α²v and steps from there, r = q1 - q,
// v = q2 - 2 q1 + q, α = -|r|/|v|: that takes about a tenth of the steps. If the leap has lowered the likelihood, it
// goes on from q2.
// References: Saerens, Latinne, Decaestecker, Adjusting the Outputs of a Classifier to New a Priori Probabilities,
// Neural Computation 14, 2002, section 2.2. Varadhan, Roland, Simple and Globally Convergent Methods for Accelerating
// the Convergence of Any EM Algorithm, Scandinavian Journal of Statistics 35, 2008 (SqS3).
func EM(t Table) (Estimate, error) {
	d, err := newModel(&t)
	if err != nil {
		return Estimate{}, err
	}
	q := d.prior()
	first, second, leap := make([]float64, len(q)), make([]float64, len(q)), make([]float64, len(q))
	fitted := make([]float64, len(d.mu))
	least, done := math.Inf(-1), 0
	for range emSteps / 3 {
		s, err := d.step(first, q, fitted)
		if err != nil {
			return Estimate{}, err
		}
		if s.likelihood < least { // the leap has led downwards
			least = math.Inf(-1)
			copy(q, second)
			continue
		}
		if s.length < emTolerance {
			copy(q, first)
			break
		}
		if s, err = d.step(second, first, fitted); err != nil {
			return Estimate{}, err
		}
		least = s.likelihood - emSlack*math.Abs(s.likelihood)
		leapOf(leap, q, first, second)
		d.times(fitted, leap)
		if _, err = d.climb(q, leap, fitted); err != nil {
			return Estimate{}, err
		}
		if done += 3 * len(d.a); done > emTurn { // others may be waiting for the processor
			done = 0
			runtime.Gosched()
		}
	}
	s, err := d.solve(d.noise(q))
	if err != nil {
		return Estimate{}, err
	}
	return d.estimate(MethodEM, q, s)
}

// emStep is what a step of EM has seen: the likelihood where it began, and how far it moved the share of a class.
type emStep struct{ likelihood, length float64 }

// step makes next of q, by one step of EM, and fitted, A q.
func (d *model) step(next, q, fitted []float64) (emStep, error) {
	d.times(fitted, q)
	length, err := d.climb(next, q, fitted)
	return emStep{d.likelihood(fitted), length}, err
}

// likelihood is that of what is fitted, up to a constant. Where no class explains a symbol, it says nothing of q.
func (d *model) likelihood(fitted []float64) (l float64) {
	for i, mu := range d.mu {
		if mu > 0 && fitted[i] > 0 {
			l += mu * math.Log(fitted[i])
		}
	}
	return l
}

// climb makes next of q and A q, and returns how far that moved the share of a class. Four rows of A are added at a
// time, each sum in their order.
func (d *model) climb(next, q, fitted []float64) (length float64, err error) {
	c := len(q)
	clear(next)
	var known float64
	var ratios [4]float64
	var rows [4][]float64
	n := 0
	add := func() {
		r0, r1, r2, r3 := ratios[0], ratios[1], ratios[2], ratios[3]
		a0, a1, a2, a3 := rows[0][:len(next)], rows[1][:len(next)], rows[2][:len(next)], rows[3][:len(next)]
		for x, v := range next {
			v += r0 * a0[x]
			v += r1 * a1[x]
			v += r2 * a2[x]
			v += r3 * a3[x]
			next[x] = v
		}
		n = 0
	}
	for i, mu := range d.mu {
		if mu == 0 || fitted[i] == 0 {
			continue
		}
		known += mu
		ratios[n], rows[n] = mu/fitted[i], d.a[i*c:(i+1)*c]
		if n++; n == len(rows) {
			add()
		}
	}
	if !(known > 0) {
		return 0, fmt.Errorf("no row now has a symbol of the reference: %w", ErrInput)
	}
	if n > 0 {
		for ; n < len(rows); n++ {
			ratios[n], rows[n] = 0, d.a[:c]
		}
		add()
	}
	for x, v := range q {
		next[x] *= v / known
		length = max(length, math.Abs(next[x]-v))
	}
	return length, nil
}

// leapOf extrapolates two steps from q. No class that has a share is left without.
func leapOf(leap, q, first, second []float64) {
	var r2, v2 float64
	for x := range q {
		r := first[x] - q[x]
		v := second[x] - first[x] - r
		r2, v2 = r2+r*r, v2+v*v
	}
	alpha := -1.0 // leads to second
	if v2 > 0 {
		alpha = min(alpha, -math.Sqrt(r2/v2))
	}
	for x := range q {
		r := first[x] - q[x]
		v := second[x] - first[x] - r
		leap[x] = max(q[x]-2*alpha*r+alpha*alpha*v, emLeast*second[x])
	}
}
