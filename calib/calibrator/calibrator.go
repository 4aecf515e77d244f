package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/internal/vexp"
)

// Bounds of the temperature, for fitting and for decoding.
const (
	MinTemperature = 0.05
	MaxTemperature = 20.0
)

// Calibrator maps one row of K logits to K probabilities. It is immutable, so safe for concurrent use.
type Calibrator interface {
	// Apply writes the calibrated probabilities of the logits z to p, of the same length; p and z may be one
	// slice. Probabilities go in as their logarithms. A row with a NaN or +Inf comes out as NaN.
	// It panics if p is shorter than z.
	Apply(p, z []float64)
	// Method is the name under which Encode writes it.
	Method() string
	// Describe is one line for people, such as "temperature scaling, T = 2.03". Its wording may change.
	Describe() string
}

// Sized is a calibrator of rows of one K only. The others take any K.
type Sized interface {
	Calibrator
	// Classes is K.
	Classes() int
}

// Identity leaves the model as it is: p = softmax(z).
type Identity struct{}

// Apply implements Calibrator.
func (Identity) Apply(p, z []float64) { softmax(p, z, 1) }

// Method implements Calibrator; it is "identity".
func (Identity) Method() string { return "identity" }

// Temperature divides all logits by one T > 0, p = softmax(z/T), which keeps every argmax. Make it with
// NewTemperature or FitTemperature; the zero value is not one and Apply panics on it.
// Reference: Guo et al., On Calibration of Modern Neural Networks, ICML 2017.
type Temperature struct{ t float64 }

// NewTemperature returns the calibrator with temperature t in [MinTemperature, MaxTemperature].
func NewTemperature(t float64) (Temperature, error) {
	if !(t >= MinTemperature && t <= MaxTemperature) {
		return Temperature{}, fmt.Errorf("temperature: %g, allowed %g..%g", t, MinTemperature, MaxTemperature)
	}
	return Temperature{t: t}, nil
}

// T returns the temperature.
func (t Temperature) T() float64 { return t.t }

// Apply implements Calibrator.
func (t Temperature) Apply(p, z []float64) {
	if t.t == 0 {
		panic("calibrator: Temperature without a temperature")
	}
	softmax(p, z, t.t)
}

// Method implements Calibrator; it is "temperature".
func (Temperature) Method() string { return "temperature" }

// softmax writes softmax(z/t) to p. The maximum is taken off before the division, so that nothing overflows.
func softmax(p, z []float64, t float64) {
	p = p[:len(z)]
	top := math.Inf(-1)
	for _, v := range z {
		top = max(top, v) // keeps a NaN
	}
	for k, v := range z {
		p[k] = (v - top) / t
	}
	vexp.Shifted(p, p, 0)
	var sum float64
	for _, e := range p {
		sum += e
	}
	inv := 1 / sum
	for k := range p {
		p[k] *= inv
	}
}

// Fits reports whether c can be applied to rows of k classes.
func Fits(c Calibrator, k int) bool {
	n := ClassesOf(c)
	return n == 0 || n == k
}

// ClassesOf is the K that c is for, or its base where it has one; 0 for any.
func ClassesOf(c Calibrator) int {
	switch c := c.(type) {
	case *Corrected:
		return ClassesOf(c.base)
	case Sized:
		return c.Classes()
	}
	return 0
}
