package calibrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// MetaCal is Meta-Cal: a threshold on the entropy of the row splits off those that are likely wrong, and a base
// calibrator is kept for the rest,
//
//	p = base(z) where H(softmax(z)) ≤ threshold,  p_k = 1/K elsewhere
//
// with H in nats of the logits as they are, computed to full relative precision for confident rows too. A row that is
// given up has the uniform vector, as in the paper and its code, so its decision is lost with its confidence: a
// caller who wants to treat such rows otherwise asks Accepts and reads the class from z. NLL and ECE over all rows
// count them as they come out. Make it with FitMetaCal.
// Reference: Ma and Blaschko, Meta-Cal: Well-controlled Post-hoc Calibration by Ranking, ICML 2021.
type MetaCal struct{ p metaCalParams }

type metaCalParams struct {
	Constraint Constraint `json:"constraint"`
	Target     float64    `json:"target"`
	Threshold  float64    `json:"threshold"` // nats; acceptAll where no row is given up
	Base       nested     `json:"base"`
}

// Constraint is what the threshold of MetaCal must keep to.
type Constraint string

// The constraints of Meta-Cal.
const (
	// MiscoverageRate bounds P(given up | the top class is right).
	MiscoverageRate Constraint = "miscoverage"
	// CoverageAccuracy bounds P(the top class is right | kept) from below.
	CoverageAccuracy Constraint = "accuracy"
)

// acceptAll is a threshold above every entropy.
const acceptAll = maxParam

// Accepts says that the row is kept: its p is that of the base calibrator. A row with a NaN is not.
func (c *MetaCal) Accepts(z []float64) bool { return rowEntropy(z) <= c.p.Threshold }

// Threshold returns the greatest entropy, in nats, of a row that is kept, and false where every row is.
func (c *MetaCal) Threshold() (float64, bool) { return c.p.Threshold, c.p.Threshold < acceptAll }

// Bound returns the constraint and its target.
func (c *MetaCal) Bound() (Constraint, float64) { return c.p.Constraint, c.p.Target }

// Base returns the calibrator of the rows that are kept.
func (c *MetaCal) Base() Calibrator { return c.p.Base.Calibrator }

// Apply implements Calibrator.
func (c *MetaCal) Apply(p, z []float64) {
	p = p[:len(z)]
	switch h := rowEntropy(z); {
	case h != h:
		fill(p, math.NaN())
	case h <= c.p.Threshold:
		c.p.Base.Apply(p, z)
	default:
		fill(p, 1/float64(len(z)))
	}
}

// rowEntropy is the entropy of softmax(z) in nats. With the top class apart, nothing cancels where it is all but sure.
func rowEntropy(z []float64) float64 {
	if len(z) == 0 {
		return 0
	}
	a := argmax(z)
	var rest, dot float64 // Σ e^d and Σ d e^d over the other classes, d = z - max z
	for k, v := range z {
		if k == a {
			continue
		}
		d := v - z[a]
		if e := math.Exp(d); e != 0 { // keeps a NaN
			rest += e
			dot += d * e
		}
	}
	return math.Log1p(rest) - dot/(1+rest)
}

// Method implements Calibrator; it is "metacal".
func (*MetaCal) Method() string { return "metacal" }

// Describe implements Calibrator.
func (c *MetaCal) Describe() string {
	if c.p.Base.Calibrator == nil {
		return "Meta-Cal, not made"
	}
	given := "no row given up"
	if h, some := c.Threshold(); some {
		given = fmt.Sprintf("rows above %.4g nats given up", h)
	}
	return fmt.Sprintf("Meta-Cal, %s %.4g, %s, the others by %s", c.p.Constraint, c.p.Target, given,
		c.p.Base.Describe())
}

func (c *MetaCal) params() any { return &c.p }

func (c *MetaCal) check() error {
	switch c.p.Constraint {
	case MiscoverageRate, CoverageAccuracy:
	default:
		return fmt.Errorf("constraint: %q, allowed are %s, %s", c.p.Constraint, MiscoverageRate, CoverageAccuracy)
	}
	if err := within("target, threshold", []float64{c.p.Target}, 0, 1); err != nil {
		return err
	}
	if err := within("threshold", []float64{c.p.Threshold}, -1, acceptAll); err != nil {
		return err
	}
	return checkBase(c.p.Base.Calibrator)
}

// checkBase allows calibrators of any K that are not themselves Meta-Cal.
func checkBase(base Calibrator) error {
	switch b := base.(type) {
	case nil:
		return errors.New("base: absent, required")
	case *MetaCal:
		return errors.New("base: metacal, allowed are the other methods")
	case Sized:
		return fmt.Errorf("base: %s, which is for rows of %d classes only, allowed are methods for any number",
			b.Method(), b.Classes())
	}
	return nil
}

// nested is a calibrator inside the parameters of another, as Encode writes it.
type nested struct{ Calibrator }

// MarshalJSON implements json.Marshaler.
func (n nested) MarshalJSON() ([]byte, error) { return Encode(n.Calibrator) }

// UnmarshalJSON implements json.Unmarshaler.
func (n *nested) UnmarshalJSON(b []byte) error {
	var head struct {
		Method string `json:"method"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return fmt.Errorf("base: %w", err)
	}
	switch head.Method {
	case (*MetaCal)(nil).Method(), (*ClassWeights)(nil).Method(): // before it is decoded, which bounds the depth
		return fmt.Errorf("base: %s, allowed are the other methods", head.Method)
	}
	c, err := decode(b)
	if err != nil {
		return fmt.Errorf("base: %w", err)
	}
	n.Calibrator = c
	return nil
}
