package calibrator

import "fmt"

// outcomes are n top confidences of positive weight, each with whether its class was right: all that the maps of the
// top class are fitted to.
type outcomes struct {
	c     []float64
	right []bool
	w     []float64 // n weights, or nil: 1 each
}

func (o outcomes) weight(i int) float64 {
	if o.w == nil {
		return 1
	}
	return o.w[i]
}

// countOutcomes are those of the sample's rows.
func (s *sample) countOutcomes() outcomes {
	c, right := s.top()
	for _, w := range s.w {
		if w != 1 {
			return outcomes{c, right, s.w}
		}
	}
	return outcomes{c, right, nil}
}

// newOutcomes checks the arguments of the Fit…Confidence functions and leaves out the rows of weight 0.
func newOutcomes(method string, c []float64, right []bool, w []float64) (outcomes, Report, error) {
	fail := func(format string, args ...any) (outcomes, Report, error) {
		return outcomes{}, Report{}, fmt.Errorf("fit "+method+": "+format, args...)
	}
	if len(right) != len(c) || w != nil && len(w) != len(c) {
		return fail("%d confidences, %d outcomes, %d weights, want one each a row", len(c), len(right), len(w))
	}
	rows, hits := 0, 0
	for i, v := range c {
		if !(v >= 0 && v <= 1) {
			return fail("row %d: confidence %g, allowed 0..1", i, v)
		}
		wi := 1.0
		if w != nil {
			wi = w[i]
		}
		if !weightAllowed(wi) {
			return fail("row %d: %w", i, weightError(wi))
		}
		if wi > 0 {
			rows++
			if right[i] {
				hits++
			}
		}
	}
	if rows == 0 {
		return fail("no row of positive weight among %d, need at least 1", len(c))
	}
	r := Report{Converged: true, FitReport: FitReport{Rows: rows, Classes: 2}}
	switch hits {
	case rows:
		r.Classes, r.Warnings = 1, append(r.Warnings, "all rows are right")
	case 0:
		r.Classes, r.Warnings = 1, append(r.Warnings, "all rows are wrong")
	}
	o := outcomes{c, right, w}
	if rows < len(c) {
		o = o.positive(rows)
	}
	return o, r, nil
}

// positive leaves out the rows of weight 0.
func (o outcomes) positive(rows int) outcomes {
	out := outcomes{make([]float64, 0, rows), make([]bool, 0, rows), make([]float64, 0, rows)}
	for i, w := range o.w {
		if w > 0 {
			out.c, out.right, out.w = append(out.c, o.c[i]), append(out.right, o.right[i]), append(out.w, w)
		}
	}
	return out
}

// logLoss is the mean of -ln c where right and -ln(1-c) where wrong, in nats, each probability taken as 2⁻⁵³ at least.
func (o outcomes) logLoss(of func(i int) float64) float64 {
	var sum, total float64
	for i, right := range o.right {
		p := of(i)
		if !right {
			p = 1 - p
		}
		w := o.weight(i)
		sum -= w * lnC(p)
		total += w
	}
	return sum / total
}

// groupLoss is logLoss where all rows of a group have one value.
func groupLoss(groups []group, of func(c float64) float64) float64 {
	var sum, total float64
	for _, g := range groups {
		p := of(g.c)
		total += g.w
		if g.hits > 0 {
			sum -= g.hits * lnC(p)
		}
		if g.hits < g.w {
			sum -= (g.w - g.hits) * lnC(1-p)
		}
	}
	return sum / total
}

// fittedScalar is a map of the top confidence that can be written.
type fittedScalar interface {
	Scalar
	parametric
}

// done completes the report of a fit by Fit…Confidence, with m parameters; groups may be nil.
func (o outcomes) done(c fittedScalar, r Report, m int, groups []group) (Report, error) {
	if err := c.check(); err != nil {
		return Report{}, fmt.Errorf("fit %s: no usable optimum: %w", c.Method(), err)
	}
	if groups == nil {
		r.NLLBefore = o.logLoss(func(i int) float64 { return o.c[i] })
		r.NLLAfter = o.logLoss(func(i int) float64 { return c.Map(o.c[i]) })
	} else { // in order, so that the search of a table is cheap
		r.NLLBefore = groupLoss(groups, func(c float64) float64 { return c })
		r.NLLAfter = groupLoss(groups, c.Map)
	}
	if r.Rows < max(m, 2) {
		r.Warnings = append(r.Warnings, rowsFor(r.Rows, m))
	}
	if !r.Converged {
		r.Warnings = append(r.Warnings, fmt.Sprintf("not converged after %d evaluations", r.Iterations))
	}
	return r, nil
}
