package calibrator

import (
	"fmt"
	"math"
)

// ParameterisedTemperature is parameterised temperature scaling, p = softmax(z/T(z)): a small network reads the s
// largest logits of the row and gives its temperature. Every row has a T of its own, so confidences may change
// places between rows, but no two classes of a row do.
//
//	x_j = max(z_(j+1) - z_(1), -100), j = 1..s-1
//	T = exp(l + (h - l) σ(a·tanh(V tanh(U x + b) + c) + d)),  l, h the logarithms of MinTemperature, MaxTemperature
//
// U is H×(s-1), V is H×H. The differences make T the same when a constant is added to a row, as softmax is. Apply
// panics on a row of another K. Make it with FitParameterised.
// Reference: Tomani, Cremers, Buettner, Parameterized Temperature Scaling for Boosting the Expressive Power in
// Post-Hoc Uncertainty Calibration, ECCV 2022. There the network sees z_(1)..z_(s) themselves, has ReLU, and T is
// the absolute value of its output; tanh and the bounds keep T sensible on rows unlike those that were fitted.
type ParameterisedTemperature struct{ p parameterisedParams }

type parameterisedParams struct {
	K  int       `json:"classes"`
	S  int       `json:"top"`    // s ≤ K
	H  int       `json:"hidden"` // H
	W1 []float64 `json:"w1"`     // H×(s-1), U above
	B1 []float64 `json:"b1"`     // H
	W2 []float64 `json:"w2"`     // H×H, V above
	B2 []float64 `json:"b2"`     // H
	W3 []float64 `json:"w3"`     // H, a above
	B3 float64   `json:"b3"`
}

// leastInput bounds the differences of logits that the network sees; the released code clips logits there.
const leastInput = -100

// Classes is K.
func (c *ParameterisedTemperature) Classes() int { return c.p.K }

// T returns the temperature of the row z of K logits; NaN where the largest is NaN or infinite.
func (c *ParameterisedTemperature) T(z []float64) float64 {
	mustHave(c.Method(), c.p.K, len(z))
	return c.temperature(z, make([]float64, c.scratch(len(z))))
}

// Apply implements Calibrator.
func (c *ParameterisedTemperature) Apply(p, z []float64) {
	var few [64]float64 // enough at the default options
	scratch := few[:]
	if n := c.scratch(len(z)); n > len(few) {
		scratch = make([]float64, n)
	}
	c.applyScratch(p, z, scratch)
}

func (c *ParameterisedTemperature) scratch(int) int { return c.p.S + 2*c.p.H }

func (c *ParameterisedTemperature) applyScratch(p, z, scratch []float64) {
	mustHave(c.Method(), c.p.K, len(z))
	softmax(p, z, c.temperature(z, scratch))
}

func (c *ParameterisedTemperature) temperature(z, scratch []float64) float64 {
	s, h := c.p.S, c.p.H
	top, h1, h2 := scratch[:s], scratch[s:s+h], scratch[s+h:s+2*h]
	largest(top, z)
	if math.IsNaN(top[0]) || math.IsInf(top[0], 0) {
		return math.NaN()
	}
	differences(top)
	out, _ := c.p.temperature(top[1:], h1, h2)
	return out
}

// Method implements Calibrator; it is "parameterised_temperature".
func (*ParameterisedTemperature) Method() string { return "parameterised_temperature" }

// Describe implements Calibrator.
func (c *ParameterisedTemperature) Describe() string {
	return fmt.Sprintf("parameterised temperature scaling, %d classes, T from the %d largest logits by two layers of "+
		"%d", c.p.K, c.p.S, c.p.H)
}

func (c *ParameterisedTemperature) params() any { return &c.p }

func (c *ParameterisedTemperature) check() error {
	p := &c.p
	switch {
	case p.K < 2:
		return fmt.Errorf("classes: %d, allowed are 2 and more", p.K)
	case p.S < 1 || p.S > min(p.K, MaxTop):
		return fmt.Errorf("top: %d, allowed 1..%d for %d classes", p.S, min(p.K, MaxTop), p.K)
	case p.H < 1 || p.H > MaxHidden:
		return fmt.Errorf("hidden: %d, allowed 1..%d", p.H, MaxHidden)
	}
	for _, l := range []struct {
		name string
		v    []float64
		n    int
	}{{"w1", p.W1, p.H * (p.S - 1)}, {"b1", p.B1, p.H}, {"w2", p.W2, p.H * p.H}, {"b2", p.B2, p.H}, {"w3", p.W3, p.H},
		{"b3", []float64{p.B3}, 1}} {
		if len(l.v) != l.n {
			return fmt.Errorf("%s: %d values, allowed are %d", l.name, len(l.v), l.n)
		}
		if err := within(l.name, l.v, -maxParam, maxParam); err != nil {
			return err
		}
	}
	return nil
}

// temperature is T of the inputs x. It leaves the two layers in h1 and h2; share is σ(…).
func (p *parameterisedParams) temperature(x, h1, h2 []float64) (t, share float64) {
	layer(h1, p.W1, p.B1, x)
	layer(h2, p.W2, p.B2, h1)
	out := p.B3
	for j, v := range h2 {
		out += p.W3[j] * v
	}
	share = sigmoid(out)
	return math.Exp(temperatureLo + (temperatureHi-temperatureLo)*share), share
}

// The bounds of the temperature in logarithms.
var (
	temperatureLo = math.Log(MinTemperature)
	temperatureHi = math.Log(MaxTemperature)
)

// layer writes tanh(W x + b) to h, W row-major len(h)×len(x).
func layer(h, w, b, x []float64) {
	for j := range h {
		s := b[j]
		for l, v := range w[j*len(x) : (j+1)*len(x)] {
			s += v * x[l]
		}
		h[j] = math.Tanh(s)
	}
}

// largest writes the len(top) largest of z, in falling order. A NaN comes first.
func largest(top, z []float64) {
	fill(top, math.Inf(-1))
	last := len(top) - 1
	for _, v := range z {
		if v <= top[last] {
			continue
		}
		if math.IsNaN(v) {
			top[0] = v
			return
		}
		j := last
		for ; j > 0 && top[j-1] < v; j-- {
			top[j] = top[j-1]
		}
		top[j] = v
	}
}

// differences subtracts the largest logit; top[1:] are the inputs of the network.
func differences(top []float64) {
	for j := len(top) - 1; j >= 0; j-- {
		top[j] = max(top[j]-top[0], leastInput)
	}
}
