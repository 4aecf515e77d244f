package calibrator

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/vexp"
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

// Correction is what corrects the probabilities q of a calibrator between two refits:
//
//	r_k = q_k^β/Σ_j q_j^β,  p_ŷ = c' = Map(r_ŷ),  p_k = (1 - c') r_k/(1 - r_ŷ) for k ≠ ŷ,  ŷ = argmax q
//
// β = Power is a temperature of 1/β of all classes. ŷ stays on top: where c' would fall below another class, it is the
// least that does not, with a relative distance that float32 tells apart.
type Correction struct {
	// Power is in [1/MaxTemperature, 1/MinTemperature]; 0, as where it is not given, is 1.
	Power float64 `json:"power,omitempty"`
	TopCorrection
	// Apart are the predicted classes ŷ whose rows have a Map of their own, ascending.
	Apart []ClassCorrection `json:"apart,omitempty"`
}

func (c *Correction) power() float64 {
	if c.Power == 0 {
		return 1
	}
	return c.Power
}

// None reports whether it changes nothing.
func (c *Correction) None() bool {
	return c.power() == 1 && c.TopCorrection.None() && len(c.Apart) == 0
}

// Check refuses what is out of bounds.
func (c *Correction) Check() error {
	return errors.Join(within("power", []float64{c.power()}, 1/MaxTemperature, 1/MinTemperature),
		c.TopCorrection.Check(), CheckClasses(c.Apart))
}

// Has reports whether the rows of a predicted class have a Map of their own.
func (c *Correction) Has(class int) bool {
	return slices.ContainsFunc(c.Apart, func(x ClassCorrection) bool { return x.Class == class })
}

// of is the Map of the rows of a predicted class.
func (c *Correction) of(class int) TopCorrection {
	for _, x := range c.Apart {
		if x.Class == class {
			return x.TopCorrection
		}
	}
	return c.TopCorrection
}

// aHair is how far the class on top stays above the next, relative to it.
const aHair = 1 + 0x1p-20

// Apply corrects the probabilities of a row in place.
func (c *Correction) Apply(p []float64) { c.ApplyRatios(p, nil) }

// ApplyRatios is Apply where the LogRatios of p are known; nil where they are not.
func (c *Correction) ApplyRatios(p, ratios []float64) {
	a := argmax(p)
	rest, second := others(p, a)
	if !(rest > 0 && p[a] > 0) { // no doubt that could be corrected, or NaN
		return
	}
	if b := c.power(); b != 1 {
		if ratios == nil {
			LogRatios(p, p)
			ratios = p
		}
		Raise(p, ratios, b)
		rest, second = others(p, a)
		if rest == 0 {
			return
		}
	}
	l := c.of(a).logOdds(math.Log(p[a] / rest))
	now, doubt := sigmoid(l), sigmoid(-l)
	if least := second * aHair; now*rest < least*doubt {
		now, doubt = least/(rest+least), rest/(rest+least)
	}
	for k := range p {
		p[k] *= doubt / rest
	}
	p[a] = now
}

// others are the sum and the largest of the probabilities of all classes but a.
func others(p []float64, a int) (sum, largest float64) {
	for k, v := range p {
		if k == a {
			continue
		}
		if sum += v; v > largest {
			largest = v
		}
	}
	return sum, largest
}

// LogRatios writes ln q_k - ln max q of probabilities, at most 0 and finite. z and q have one length and may be one
// slice.
func LogRatios(z, q []float64) {
	most := q[0]
	for _, v := range q {
		if v > most {
			most = v
		}
	}
	top := kernel.LogProb(most)
	for k, v := range q {
		z[k] = kernel.LogProb(v) - top
	}
}

// Raised is a row after a power β of its probabilities, of which z are the LogRatios.
type Raised struct {
	Top       float64 // confidence r = 1/Σ_k e^{βz_k}
	Mean, Var float64 // of z, where class k has the probability r e^{βz_k}
}

// Raise writes r e^{βz_k} to p, which has the length of z and may be z: then there is no Mean and Var. With the label y
// the log loss is L(β) = -ln r - βz_y, its slope Mean - z_y and its curvature Var ≥ 0.
func Raise(p, z []float64, power float64) Raised {
	for k, x := range z {
		p[k] = power * x
	}
	vexp.Shifted(p, p, 0)
	var sum, first, second float64
	for k, e := range p {
		sum, first, second = sum+e, first+e*z[k], second+e*z[k]*z[k]
	}
	r := 1 / sum
	for k := range p {
		p[k] *= r
	}
	mean := first * r
	return Raised{r, mean, max(0, second*r-mean*mean)}
}

// Corrected is a calibrator with a correction. Encode does not write it: what is published is its parts. Make it with
// Correct.
type Corrected struct {
	base Calibrator
	by   Correction
	// first gives what then corrects. A power of a temperature is another one, which costs no logarithms.
	first Calibrator
	then  Correction
}

// Correct returns base with a correction. One that changes nothing leaves it as it is.
func Correct(base Calibrator, by Correction) (Calibrator, error) {
	if by.None() {
		return base, nil
	}
	if err := by.Check(); err != nil {
		return nil, fmt.Errorf("correction of a calibrator: %w", err)
	}
	c := &Corrected{base, by, base, by}
	temperature := 0.0
	switch t := base.(type) {
	case Identity:
		temperature = 1
	case Temperature:
		temperature = t.T()
	}
	if t, err := NewTemperature(temperature / by.power()); err == nil && by.power() != 1 {
		c.first, c.then.Power = t, 1
	}
	return c, nil
}

// Apply implements Calibrator.
func (c *Corrected) Apply(p, z []float64) {
	p = p[:len(z)]
	c.first.Apply(p, z)
	c.then.Apply(p)
}

// Method implements Calibrator: it is that of the base.
func (c *Corrected) Method() string { return c.base.Method() }

// Describe implements Calibrator.
func (c *Corrected) Describe() string {
	return fmt.Sprintf("%s, corrected by power %.4g, slope %.4g, intercept %.4g", c.base.Describe(), c.by.power(),
		c.by.Slope, c.by.Intercept)
}
