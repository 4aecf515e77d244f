package calibrator

import (
	"errors"
	"fmt"
)

// ClassWeights corrects the probabilities of another calibrator for shares of the classes that have moved since it was
// fitted,
//
//	p_k = q_k w_k / Σ_j q_j w_j,   q = base(z)        the softmax of ln q + ln w
//
// with w_k = share of class k now / share in the rows that the base was fitted on (calib/shift). It is right where
// P(input | class) has not moved. Another class may come out on top, and should, where w says so: accuracy is no
// invariant. A factor that all weights share does nothing; NewClassWeights takes it out. Make it with NewClassWeights.
// Reference: Saerens, Latinne, Decaestecker, Neural Computation 14, 2002, Eq. 2.4.
type ClassWeights struct{ p classWeightsParams }

type classWeightsParams struct {
	Weights []float64 `json:"weights"` // K, in [MinClassWeight, MaxClassWeight]
	Base    nested    `json:"base"`
}

// Bounds of class weights.
const (
	MinClassWeight = 1e-6
	MaxClassWeight = 1e6
)

// NewClassWeights returns base with weights by class, scaled so that they have the mean 1. A base that is itself one is
// replaced by its own base, and the weights multiplied. The error names the weight that is out of range after that, or
// a base that cannot be one: Meta-Cal, or one of another K.
func NewClassWeights(base Calibrator, weights []float64) (*ClassWeights, error) {
	w := append([]float64(nil), weights...)
	if b, ok := base.(*ClassWeights); ok {
		if b.Classes() != len(w) {
			return nil, fmt.Errorf("class_weights: %d weights on top of %d", len(w), b.Classes())
		}
		for k, x := range b.p.Weights {
			w[k] *= x
		}
		base = b.Base()
	}
	var sum float64
	for _, x := range w {
		sum += x
	}
	for k := range w {
		w[k] *= float64(len(w)) / sum
	}
	c := &ClassWeights{classWeightsParams{w, nested{base}}}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("class_weights: %w", err)
	}
	return c, nil
}

// Classes is K.
func (c *ClassWeights) Classes() int { return len(c.p.Weights) }

// Weights returns a copy of the weights.
func (c *ClassWeights) Weights() []float64 { return append([]float64(nil), c.p.Weights...) }

// Base returns the calibrator whose probabilities are weighed.
func (c *ClassWeights) Base() Calibrator { return c.p.Base.Calibrator }

// Apply implements Calibrator.
func (c *ClassWeights) Apply(p, z []float64) {
	mustHave(c.Method(), len(c.p.Weights), len(z))
	p = p[:len(z)]
	c.p.Base.Apply(p, z)
	var sum float64
	for k, w := range c.p.Weights {
		p[k] *= w
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
}

// Method implements Calibrator; it is "class_weights".
func (*ClassWeights) Method() string { return "class_weights" }

// Describe implements Calibrator.
func (c *ClassWeights) Describe() string {
	if c.p.Base.Calibrator == nil {
		return "class weights, not made"
	}
	return fmt.Sprintf("class weights %s for shares of classes that have moved (the class on top may change), on %s",
		span(c.p.Weights), c.p.Base.Describe())
}

func (c *ClassWeights) params() any { return &c.p }

func (c *ClassWeights) check() error {
	if len(c.p.Weights) < 2 {
		return fmt.Errorf("weights: %d, allowed are 2 or more", len(c.p.Weights))
	}
	if err := within("weights", c.p.Weights, MinClassWeight, MaxClassWeight); err != nil {
		return err
	}
	switch b := c.p.Base.Calibrator.(type) {
	case nil:
		return errors.New("base: absent, required")
	case *MetaCal, *ClassWeights:
		return fmt.Errorf("base: %s, allowed are the other methods", b.Method())
	case Sized:
		if b.Classes() != len(c.p.Weights) {
			return fmt.Errorf("base: %s of %d classes under %d weights", b.Method(), b.Classes(), len(c.p.Weights))
		}
	}
	return nil
}
