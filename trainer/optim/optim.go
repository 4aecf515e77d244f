package optim

import (
	"fmt"
	"math"
)

// SGD is a step's settings.
type SGD struct {
	LR          float32
	Momentum    float32
	WeightDecay float32
	// Decoupled takes the decay off the weights themselves (SGDW), not through the momentum.
	Decoupled bool
	// Nesterov looks ahead by the momentum.
	Nesterov bool
}

// Step updates parameters w with gradient g and velocity v, which starts at 0:
//
//	L2:         g ← g + λw;  v ← μv + g;  w ← w − lr·v          (PyTorch's SGD)
//	decoupled:  v ← μv + g;  w ← w − lr·v − lr·λw
//
// and with Nesterov w ← w − lr·(g + μv) in place of lr·v. g is left as it is.
// Reference: Loshchilov, Hutter, Decoupled Weight Decay Regularization, ICLR 2019, Algorithm 1.
func (o SGD) Step(w, g, v []float32) {
	g, v = g[:len(w)], v[:len(w)]
	if !o.Nesterov && !o.Decoupled {
		o.step(w, g, v)
		return
	}
	l2, shrink := o.WeightDecay, float32(0)
	if o.Decoupled {
		l2, shrink = 0, o.LR*o.WeightDecay
	}
	for i, wi := range w {
		gi := g[i] + l2*wi
		v[i] = o.Momentum*v[i] + gi
		step := v[i]
		if o.Nesterov {
			step = gi + o.Momentum*v[i]
		}
		w[i] = wi - o.LR*step - shrink*wi
	}
}

// plain is the step with L2 decay. Products are rounded before they are added, so that all paths give the same bits.
func (o SGD) plain(w, g, v []float32) {
	lr, mu, l2 := o.LR, o.Momentum, o.WeightDecay
	g, v = g[:len(w)], v[:len(w)]
	for i, wi := range w {
		vi := float32(mu*v[i]) + (float32(l2*wi) + g[i])
		v[i] = vi
		w[i] = wi - float32(lr*vi)
	}
}

// Kinds of schedules.
const (
	Constant = "constant"
	Cosine   = "cosine" // half a cosine to Floor
	Steps    = "steps"  // times Factor at each of Milestones
	Linear   = "linear" // down to Floor
)

// Schedule is a learning rate by epoch.
type Schedule struct {
	// Kind is constant (also where empty), cosine, steps or linear.
	Kind string `json:"kind,omitempty"`
	// Warmup is the number of epochs in which the rate rises linearly from LR/(Warmup+1).
	Warmup int `json:"warmup,omitempty"`
	// Floor is the share of the rate that cosine and linear end at.
	Floor float64 `json:"floor,omitempty"`
	// Milestones are shares of the training in (0, 1), ascending, and Factor what steps multiplies by; 0 means 0.1.
	Milestones []float64 `json:"milestones,omitempty"`
	Factor     float64   `json:"factor,omitempty"`
}

// Validate returns an error that names the key, its value and what is allowed.
func (s Schedule) Validate() error {
	switch s.Kind {
	case "", Constant, Cosine, Linear, Steps:
	default:
		return fmt.Errorf("schedule: kind %q, allowed constant, cosine, linear, steps", s.Kind)
	}
	if s.Warmup < 0 {
		return fmt.Errorf("schedule: warmup %d, allowed 0 or more epochs", s.Warmup)
	}
	if !(s.Floor >= 0 && s.Floor <= 1) {
		return fmt.Errorf("schedule: floor %v, allowed 0..1", s.Floor)
	}
	if !(s.Factor >= 0 && s.Factor <= 1) {
		return fmt.Errorf("schedule: factor %v, allowed 0..1", s.Factor)
	}
	last := 0.0
	for _, m := range s.Milestones {
		if !(m > last && m < 1) {
			return fmt.Errorf("schedule: milestones %v, allowed ascending shares between 0 and 1", s.Milestones)
		}
		last = m
	}
	if s.Kind == Steps && len(s.Milestones) == 0 {
		return fmt.Errorf("schedule: no milestones, required by steps")
	}
	return nil
}

// At is the share of the learning rate in epoch t = 0 … T−1.
func (s Schedule) At(t, epochs int) float64 {
	if t < s.Warmup {
		return float64(t+1) / float64(s.Warmup+1)
	}
	done := 0.0
	if n := epochs - s.Warmup; n > 0 {
		done = float64(t-s.Warmup) / float64(n)
	}
	switch s.Kind {
	case Cosine:
		return s.Floor + (1-s.Floor)*(1+math.Cos(math.Pi*done))/2
	case Linear:
		return 1 - (1-s.Floor)*done
	case Steps:
		f, v := s.Factor, 1.0
		if f == 0 {
			f = 0.1
		}
		for _, m := range s.Milestones {
			if float64(t) >= m*float64(epochs) {
				v *= f
			}
		}
		return v
	}
	return 1
}
