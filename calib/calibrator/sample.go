package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Report says how the fit of a calibrator other than the temperature went.
type Report struct {
	FitReport
	// Converged says that the optimum was reached; without it the parameters are the best that were found.
	// Methods with a closed form always converge.
	Converged bool `json:"converged"`
	// Warnings say what makes the fit doubtful: too few rows, one class, all rows right or wrong, a bound.
	Warnings []string `json:"warnings,omitempty"`
	// LossScaling is there if class-wise loss scaling was asked for.
	LossScaling *LossScalingReport `json:"loss_scaling,omitempty"`
	// SBECE is there for temperature_sbece, unless all T are alike.
	SBECE *SBECEReport `json:"sbece,omitempty"`
}

// sample is the fitted rows of positive weight in float64.
type sample struct {
	method string
	n, k   int
	z      []float64 // n×K logits, or log-probabilities
	y      []int32
	w      []float64 // n weights
	total  float64
	report Report
}

func (s *sample) data() Data[float64] { return NewData(s.z, s.k, s.y, s.w) }

func (s *sample) row(i int) []float64 { return s.z[i*s.k : (i+1)*s.k] }

// newSample checks and copies the input; errors start with "fit <method>".
func newSample[T kernel.Float](method string, d Data[T], opts Options) (*sample, error) {
	f := newFitter(d, opts.Probs)
	r, err := f.check()
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", method, err)
	}
	s := &sample{method: method, n: r.Rows, k: d.K, total: f.total, report: Report{FitReport: r, Converged: true}}
	s.z, s.y, s.w = make([]float64, 0, r.Rows*d.K), make([]int32, 0, r.Rows), make([]float64, 0, r.Rows)
	for i, yi := range d.Labels {
		wi := d.weight(i)
		if wi == 0 {
			continue
		}
		for _, v := range d.row(i) {
			x := float64(v)
			if opts.Probs {
				x = kernel.LogProb(v)
			}
			s.z = append(s.z, x)
		}
		s.y, s.w = append(s.y, yi), append(s.w, wi)
	}
	return s, nil
}

// top returns the top confidence of every row and whether its class (ties: the lowest) is right.
func (s *sample) top() (c []float64, right []bool) {
	c, right = make([]float64, s.n), make([]bool, s.n)
	p := make([]float64, s.k)
	for i := range c {
		softmax(p, s.row(i), 1)
		a := argmax(s.row(i))
		c[i], right[i] = p[a], int(s.y[i]) == a
	}
	return c, right
}

// nll is the mean NLL of c in nats; a probability of 0 counts as the smallest positive float64.
func (s *sample) nll(c Calibrator) float64 {
	var sum float64
	s.eachNLL(c, func(i int, nll float64) { sum += s.w[i] * nll })
	return sum / s.total
}

// eachNLL calls f with every row's NLL under c.
func (s *sample) eachNLL(c Calibrator, f func(i int, nll float64)) {
	p := make([]float64, s.k)
	if _, ok := c.(Identity); ok { // by log-sum-exp: a probability that underflows has an NLL all the same
		for i, y := range s.y {
			top, _ := kernel.LogitTop(s.row(i), p)
			f(i, top.LogitNLL(s.row(i)[y]))
		}
		return
	}
	apply := applier(c, s.k)
	for i, y := range s.y {
		apply(p, s.row(i))
		f(i, -kernel.Log(max(p[y], math.SmallestNonzeroFloat64)))
	}
}

// finish completes the report of c, which has m parameters and was fitted to s; a c that is of no use is an error.
func finish[C any, P interface {
	*C
	parametric
}](s *sample, c P, m int) (P, Report, error) {
	if err := c.check(); err != nil {
		return nil, Report{}, fmt.Errorf("fit %s: no usable optimum: %w", s.method, err)
	}
	if err := s.describe(c, m); err != nil {
		return nil, Report{}, fmt.Errorf("fit %s: %w", s.method, err)
	}
	return c, s.report, nil
}

// describe fills in what every report says: the NLLs and what makes the fit doubtful.
func (s *sample) describe(c Calibrator, m int) error {
	r := &s.report
	r.NLLBefore, r.NLLAfter = s.nll(Identity{}), s.nll(c)
	if math.IsNaN(r.NLLAfter) || math.IsInf(r.NLLAfter, 0) {
		return fmt.Errorf("NLL %g after the fit, allowed are finite values", r.NLLAfter)
	}
	hits := 0
	for i, y := range s.y {
		if argmax(s.row(i)) == int(y) {
			hits++
		}
	}
	r.doubt(m, hits, s.y[0])
	return nil
}

// doubt warns of what makes a fit of m parameters doubtful; hits rows are right, and label is one of the labels.
func (r *Report) doubt(m, hits int, label int32) {
	if r.Rows < max(m, 2) {
		r.warn("%s", rowsFor(r.Rows, m))
	}
	if r.Classes == 1 {
		r.warn("all labels are %d", label)
	}
	if hits == r.Rows {
		r.warn("all rows are right")
	}
	if hits == 0 {
		r.warn("all rows are wrong")
	}
	if !r.Converged {
		r.warn("not converged after %d evaluations", r.Iterations)
	}
}

// rowsFor is the warning of a fit of m parameters on so few rows.
func rowsFor(rows, m int) string {
	s := fmt.Sprintf("%d rows of positive weight", rows)
	if rows == 1 {
		s = "1 row of positive weight"
	}
	switch m {
	case 0:
		return s
	case 1:
		return s + " for 1 parameter"
	}
	return fmt.Sprintf("%s for %d parameters", s, m)
}

func (r *Report) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

func (s *sample) warn(format string, args ...any) { s.report.warn(format, args...) }

// argmax is the index of the largest value, the lowest among ties.
func argmax[T kernel.Float](z []T) int {
	a := 0
	for k, v := range z {
		if v > z[a] {
			a = k
		}
	}
	return a
}
