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
)

// EM returns the maximum likelihood estimate from the table: the rows now are independent draws of symbols from A q,
// and
//
//	q_j ← q_j Σ_i μ_i A_ij/(A q)_i      from q = p
//
// climbs to the maximum of a concave likelihood. That is Saerens' EM on histograms: with P(j | symbol i) of the
// reference in the place of a row's probabilities, counted, or with Soft the mean of the calibrator's. Standard errors,
// intervals and test are those of BBSE at this q. Errors as of BBSE.
// Reference: Saerens, Latinne, Decaestecker, Adjusting the Outputs of a Classifier to New a Priori Probabilities,
// Neural Computation 14, 2002, section 2.2.
func EM(t Table) (Estimate, error) {
	d, err := newModel(&t)
	if err != nil {
		return Estimate{}, err
	}
	c := len(d.classes)
	q, next := d.prior(), make([]float64, c)
	fitted, done := make([]float64, len(d.mu)), 0
	for range emSteps {
		clear(next)
		d.times(fitted, q)
		if done += len(d.a); done > emTurn { // others may be waiting for the processor
			done = 0
			runtime.Gosched()
		}
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
