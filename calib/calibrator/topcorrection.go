package calibrator

import (
	"errors"
	"fmt"
	"math"
)

// TopCorrection is Platt's map of the log-odds ℓ = ln c/(1-c) of a top confidence c, on top of a calibrator:
//
//	c' = σ(Slope ℓ₀ + Intercept + ℓ - ℓ₀)
//
// with ℓ₀ = ℓ kept within ±ln((1-ε)/ε), ε = 1e-4. Beyond that errors are too rare to learn from, so ℓ is moved as at
// the bound. Slope 1 and intercept 0 change nothing.
// Reference: Gupta and Ramdas, Online Platt Scaling with Calibeating, ICML 2023, the map of its Algorithm 1.
type TopCorrection struct {
	Slope     float64 `json:"slope"`
	Intercept float64 `json:"intercept"`
}

// None reports whether it changes nothing.
func (t TopCorrection) None() bool { return t.Slope == 1 && t.Intercept == 0 }

// Check refuses a slope below 0, which would turn the order of the confidences round, and numbers above 1e6.
func (t TopCorrection) Check() error {
	if err := within("slope", []float64{t.Slope}, 0, maxParam); err != nil {
		return err
	}
	return within("intercept", []float64{t.Intercept}, -maxParam, maxParam)
}

// ClassCorrection is the correction of the rows of one predicted class, in place of that of all.
type ClassCorrection struct {
	Class int `json:"class"`
	TopCorrection
}

// CheckClasses refuses corrections of classes that are not ascending from 0, or that Check refuses.
func CheckClasses(apart []ClassCorrection) error {
	last := -1
	for _, x := range apart {
		if x.Class <= last {
			return fmt.Errorf("class %d, allowed are ascending ones above %d", x.Class, last)
		}
		if err := x.Check(); err != nil {
			return fmt.Errorf("class %d: %w", x.Class, err)
		}
		last = x.Class
	}
	return nil
}

// Map returns c' in [0, 1] of c in [0, 1]; NaN gives NaN.
func (t TopCorrection) Map(c float64) float64 { return sigmoid(t.logOdds(math.Log(c / (1 - c)))) }

// defaultClip is the clip of OnlinePlatt where none is set.
const defaultClip = 1e-4

var correctedReach = math.Log((1 - defaultClip) / defaultClip)

func (t TopCorrection) logOdds(l float64) float64 {
	at := max(-correctedReach, min(correctedReach, l))
	if l-at == 0 {
		return t.Slope*at + t.Intercept
	}
	return t.Slope*at + t.Intercept + (l - at)
}

// Corrected is a calibrator with a correction of its top confidence:
//
//	p_ŷ = c' = Map(c),  p_k = (1 - c') q_k / (1 - c) for k ≠ ŷ,  q = base(z), ŷ = argmax q, c = q_ŷ
//
// ŷ stays on top: where c' would fall below another class, it is the least that does not, with a relative distance
// that float32 tells apart. Rows of some classes ŷ may have a Map of their own. Encode does not write it: what is
// published is its parts. Make it with Correct.
type Corrected struct {
	base  Calibrator
	top   TopCorrection
	apart []ClassCorrection
}

// Correct returns base with a correction of its top confidence, and those of the predicted classes that have their own,
// ascending. One that changes nothing leaves it as it is.
func Correct(base Calibrator, top TopCorrection, apart ...ClassCorrection) (Calibrator, error) {
	if top.None() && len(apart) == 0 {
		return base, nil
	}
	if err := errors.Join(top.Check(), CheckClasses(apart)); err != nil {
		return nil, fmt.Errorf("correction of the top confidence: %w", err)
	}
	return &Corrected{base, top, apart}, nil
}

// of is the correction of the rows of a predicted class.
func (c *Corrected) of(class int) TopCorrection {
	for _, x := range c.apart {
		if x.Class == class {
			return x.TopCorrection
		}
	}
	return c.top
}

// aHair is how far the class on top stays above the next, relative to it.
const aHair = 1 + 0x1p-20

// Apply implements Calibrator.
func (c *Corrected) Apply(p, z []float64) {
	p = p[:len(z)]
	c.base.Apply(p, z)
	a := argmax(p)
	var rest, second float64
	for k, v := range p {
		if k != a {
			rest, second = rest+v, max(second, v)
		}
	}
	if !(rest > 0 && p[a] > 0) { // no doubt that could be corrected, or NaN
		return
	}
	l := c.of(a).logOdds(math.Log(p[a] / rest))
	now, others := sigmoid(l), sigmoid(-l)
	if least := second * aHair; now*rest < least*others {
		now, others = least/(rest+least), rest/(rest+least)
	}
	for k := range p {
		p[k] *= others / rest
	}
	p[a] = now
}

// Method implements Calibrator: it is that of the base.
func (c *Corrected) Method() string { return c.base.Method() }

// Describe implements Calibrator.
func (c *Corrected) Describe() string {
	return fmt.Sprintf("%s, top confidence corrected by slope %.4g, intercept %.4g", c.base.Describe(), c.top.Slope,
		c.top.Intercept)
}
