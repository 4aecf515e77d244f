package calibrator

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Isotonic is the non-decreasing map of the top confidence with the least squared error: thresholds x_1 < … < x_m
// with values v_1 ≤ … ≤ v_m, linear between, constant outside, with the K-class vector of Scalar. Make it with
// FitIsotonic.
// Reference: Zadrozny and Elkan, Transforming classifier scores into accurate multiclass probability estimates,
// KDD 2002.
type Isotonic struct{ p isotonicParams }

type isotonicParams struct {
	X []float64 `json:"x"`
	V []float64 `json:"v"`
}

// Map implements Scalar.
func (c *Isotonic) Map(conf float64) float64 {
	return interpolate(c.p.X, c.p.V, conf)
}

// Apply implements Calibrator.
func (c *Isotonic) Apply(p, z []float64) { applyTop(c, p, z) }

// Method implements Calibrator; it is "isotonic".
func (*Isotonic) Method() string { return "isotonic" }

func (c *Isotonic) params() any { return &c.p }

func (c *Isotonic) check() error {
	x, v := c.p.X, c.p.V
	if len(x) == 0 || len(x) != len(v) {
		return fmt.Errorf("x, v: %d and %d values, allowed are as many of both, from 1", len(x), len(v))
	}
	if err := rising("x", x); err != nil {
		return err
	}
	for i := 1; i < len(v); i++ {
		if !(v[i] >= v[i-1]) {
			return fmt.Errorf("v %d: %g after %g, allowed are values that do not fall", i, v[i], v[i-1])
		}
	}
	if err := within("x", x, 0, 1); err != nil {
		return err
	}
	return within("v", v, 0, 1)
}

// FitIsotonic fits by pool adjacent violators, after pooling rows of equal confidence; every block keeps its
// first and last confidence as thresholds. O(n). Errors are those of FitTemperature.
func FitIsotonic[T kernel.Float](d Data[T], opts Options) (*Isotonic, Report, error) {
	s, err := newSample("isotonic", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	c := &Isotonic{p: isotonic(s.countOutcomes().groups())}
	return finish(s, c, 2)
}

// FitIsotonicConfidence fits as FitIsotonic does, on n confidences c in [0, 1], whether each was right, and n weights
// w ≥ 0 or nil; also where c is not of a softmax. The report's NLLs are mean log losses of the outcomes,
// -ln c or -ln(1-c), in nats, its Classes the distinct outcomes. It returns an error that names the row of a
// confidence or weight that is not allowed, or if there is no row.
func FitIsotonicConfidence(c []float64, right []bool, w []float64) (*Isotonic, Report, error) {
	o, r, err := newOutcomes("isotonic", c, right, w)
	if err != nil {
		return nil, Report{}, err
	}
	groups := o.groups()
	out := &Isotonic{p: isotonic(groups)}
	if r, err = o.done(out, r, 2, groups); err != nil {
		return nil, Report{}, err
	}
	return out, r, nil
}

// isotonic returns the thresholds and values of the blocks.
func isotonic(groups []group) isotonicParams {
	var p isotonicParams
	for _, b := range pav(groups) {
		p.X, p.V = append(p.X, b.lo), append(p.V, b.v)
		if b.hi > b.lo {
			p.X, p.V = append(p.X, b.hi), append(p.V, b.v)
		}
	}
	return p
}

// block is a run of confidences lo..hi with one fitted value v = hits/w.
type block struct{ lo, hi, hits, w, v float64 }

// pav returns the blocks of the weighted isotonic regression on the groups.
func pav(groups []group) []block {
	var out []block
	for _, g := range groups {
		b := block{lo: g.c, hi: g.c, hits: g.hits, w: g.w, v: g.hits / g.w}
		n := len(out)
		for ; n > 0 && out[n-1].v >= b.v; n-- {
			last := &out[n-1]
			b.lo, b.hits, b.w = last.lo, b.hits+last.hits, b.w+last.w
			b.v = b.hits / b.w
		}
		out = append(out[:n], b)
	}
	return out
}
