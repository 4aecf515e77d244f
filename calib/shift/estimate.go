package shift

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// estimate makes an Estimate of shares q of the model's classes; s has the noise of D(q).
func (d *model) estimate(method string, q []float64, s *solution) (Estimate, error) {
	e := Estimate{Method: method, Assumption: Assumption, N: int64(math.Round(d.m)), Condition: s.condition,
		Ridge:     s.ridge,
		Reference: make([]float64, d.k), Shares: make([]float64, d.k), SE: make([]float64, d.k),
		Weights: make([]float64, d.k), Unknown: d.k - len(d.classes)}
	var inverse mat.SymDense
	if err := s.chol.InverseTo(&inverse); err != nil {
		return Estimate{}, fmt.Errorf("classes cannot be told apart by what the model says: %w", ErrInput)
	}
	for j := range e.Weights {
		e.Weights[j] = 1
	}
	for x, p := range d.prior() {
		j := d.classes[x]
		e.Reference[j], e.Shares[j], e.Weights[j] = p, q[x], q[x]/p
		v := inverse.At(x, x) - q[x]*q[x]/d.m
		if d.soft {
			v -= q[x] * q[x] / d.n
		} else {
			v += -q[x]*q[x]/d.rows[x] + p*(1-p)/d.n
		}
		e.SE[j] = math.Sqrt(max(0, v))
	}
	d.accuracy(&e, q, s, &inverse)
	e.Fit = d.fit(q, s, &inverse)
	return e, nil
}

// accuracy fills the accuracy and its interval.
func (d *model) accuracy(e *Estimate, q []float64, s *solution, inverse *mat.SymDense) {
	c := len(d.classes)
	h := mat.NewVecDense(c, nil)
	for i, says := range d.says {
		if says >= 0 {
			h.SetVec(says, h.AtVec(says)+d.a[i*c+says])
		}
	}
	var y mat.VecDense
	y.MulVec(inverse, h)
	influence := make([]float64, len(d.mu)) // x
	for i := range influence {
		for x, v := range d.a[i*c : (i+1)*c] {
			influence[i] += v * y.AtVec(x)
		}
		influence[i] /= s.d[i]
	}
	var now, nowSquare, reference float64
	for x := range q {
		e.Accuracy += q[x] * h.AtVec(x)
		var mean, square float64
		for i, says := range d.says {
			v := influence[i]
			if says == x {
				v--
			}
			p := d.a[i*c+x]
			mean += p * v
			square += p * v * v
		}
		now += q[x] * mean
		nowSquare += q[x] * square
		reference += q[x] * q[x] / d.rows[x] * max(0, square-mean*mean)
	}
	if d.soft {
		reference = d.softAccuracy(q, influence)
	}
	half := z95 * math.Sqrt(max(0, nowSquare-now*now)/d.m+reference)
	e.Accuracy = min(1, max(0, e.Accuracy))
	e.Lo, e.Hi = max(0, e.Accuracy-half), min(1, e.Accuracy+half)
}

// softAccuracy is the variance of the accuracy by the rows of a soft reference: one of symbol i, which says c, has
// influence (q_c A_ic - x_i (A q)_i)/s_i.
func (d *model) softAccuracy(q, influence []float64) float64 {
	c := len(d.classes)
	fitted := d.fitted(q)
	var mean, square float64
	for i, says := range d.says {
		if d.share[i] == 0 {
			continue
		}
		g := -influence[i] * fitted[i]
		if says >= 0 {
			g += q[says] * d.a[i*c+says]
		}
		mean += g
		square += g * g / d.share[i]
	}
	return max(0, square-mean*mean) / d.n
}

// leastExpected is how many rows a group of symbols of the test expects in the smaller sample at least: the
// approximation by χ² needs some.
const leastExpected = 5

// fit tests μ = A q. Residuals have the variance D - A G⁻¹ Aᵀ, so a group g of symbols, of sums over g, has mean 1 -
// a_gᵀG⁻¹a_g/D_g.
func (d *model) fit(q []float64, s *solution, inverse *mat.SymDense) Fit {
	c := len(d.classes)
	fitted := d.fitted(q)
	var f Fit
	var r, noise, expected float64
	a := mat.NewVecDense(c, nil)
	groups := 0
	closeGroup := func() {
		if noise > 0 {
			f.Statistic += r * r / noise
			f.DF += 1 - mat.Inner(a, inverse, a)/noise
			groups++
		}
		r, noise, expected = 0, 0, 0
		a.Zero()
	}
	for i := range d.mu {
		r += d.mu[i] - fitted[i]
		noise += s.d[i]
		expected += fitted[i]
		for x, v := range d.a[i*c : (i+1)*c] {
			a.SetVec(x, a.AtVec(x)+v)
		}
		if expected*min(d.m, d.n) >= leastExpected {
			closeGroup()
		}
	}
	closeGroup()
	// A symbol a class leaves nothing but rounding.
	const nothing = .5
	if f.P = 1; f.DF < nothing || groups <= 1 {
		f.Statistic, f.DF = 0, 0
		return f
	}
	f.P = distuv.ChiSquared{K: f.DF}.Survival(f.Statistic)
	return f
}

// Distance is the total variation of the shares from those of the reference, ½ Σ_j |q_j - p_j| in [0, 1], and about
// what noise alone makes of it, ½ sqrt(2/π) Σ_j SE_j.
func (e *Estimate) Distance() (tv, null float64) {
	for j := range e.Shares {
		tv += math.Abs(e.Shares[j]-e.Reference[j]) / 2
		null += e.SE[j] / math.Sqrt(2*math.Pi)
	}
	return tv, null
}

// Moved reports whether some class's share differs from its share in q for sure: by more than noise makes of any of K
// at level alpha (Bonferroni), for one look. t is the table of the estimate. The standard error is that at the shares
// a_j of both together, (n q_j + m q̂_j)/(n + m), and as a class of few rows is skewed as Poisson counts are, of the
// normal score and that of the root the nearer one counts:
//
//	min(|q̂_j - q_j|, 2 sqrt(a_j) |sqrt(q̂_j) - sqrt(q_j)|)/se_j(a) > Φ⁻¹(1 - alpha/2K)
//
// Errors as of ErrorsAt.
// Reference: Bartlett, The Square Root Transformation in Analysis of Variance, Supplement to JRSS 3, 1936.
func (e *Estimate) Moved(t Table, q []float64, alpha float64) (bool, error) {
	n, m, err := t.check()
	if err != nil {
		return false, err
	}
	if len(q) != len(e.Shares) {
		return false, fmt.Errorf("%d shares of %d classes: %w", len(q), len(e.Shares), ErrInput)
	}
	a := make([]float64, len(q))
	for j := range q {
		a[j] = (n*q[j] + m*e.Shares[j]) / (n + m)
	}
	se, err := ErrorsAt(t, a)
	if err != nil {
		return false, err
	}
	z := distuv.UnitNormal.Quantile(1 - alpha/float64(2*len(q)))
	for j, x := range e.Shares {
		plain, root := math.Abs(x-q[j]), 2*math.Sqrt(a[j])*math.Abs(math.Sqrt(x)-math.Sqrt(q[j]))
		if se[j] > 0 && min(plain, root) > z*se[j] {
			return true, nil
		}
	}
	return false, nil
}
