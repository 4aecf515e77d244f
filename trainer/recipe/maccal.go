package recipe

import (
	"fmt"
	"math"
)

// Ways to look at the head when MaC-Cal measures Conf and Acc on the training rows.
const (
	MeasurePlain  = "plain"  // all weights as they are
	MeasureScaled = "scaled" // weights times q
	MeasureMasked = "masked" // under one mask
)

// MaCCal trains under Bernoulli masks on the weights, whose share of kept weights q follows the confidence:
//
//	q_t = clamp(q_{t−1} ± clip(Conf_t − γ·Acc_t, −η_t, η_t), q_min, 1),  η_t = η_1·(η_T/η_1)^(t/T)
//
// with a new mask for every mini-batch on the weights of every layer, and the same mask on their gradient. The sign is
// + as printed, − where Reversed. Every part can be switched off.
// Reference: Ni et al., MaC-Cal, Algorithm 1. γ, the masks during the measurement and the scaling at inference are not
// printed there; docs/math.md says what was found about them.
type MaCCal struct {
	// Gamma is γ.
	Gamma float64 `json:"gamma"`
	// Start is q₀, and the q of the whole training where it is not Adaptive. Min is q_min.
	Start float64 `json:"start"`
	Min   float64 `json:"min"`
	// Masks puts the masks on; Restrict also on the gradient; Adaptive lets q follow; Decay lets the bound of its steps
	// fall from EtaFirst to EtaLast, else it stays at EtaFirst.
	Masks    bool    `json:"masks"`
	Restrict bool    `json:"restrict"`
	Adaptive bool    `json:"adaptive"`
	Decay    bool    `json:"decay"`
	EtaFirst float64 `json:"eta_first"`
	EtaLast  float64 `json:"eta_last"`
	Reversed bool    `json:"reversed"`
	// Measure is plain, scaled or masked.
	Measure string `json:"measure"`
	// Scale multiplies the weights by q at inference, which includes validation and the head that results.
	Scale bool `json:"scale"`
}

// MaCCalStable is the preset that is stable on real features: weights times q at inference and in the measurement, a
// reversed controller, q ≥ 0.5.
func MaCCalStable() Config {
	c := maccal()
	c.LR = 0.03
	c.MaCCal.Reversed, c.MaCCal.Min, c.MaCCal.Measure, c.MaCCal.Scale = true, 0.5, MeasureScaled, true
	return c
}

// MaCCalPrinted is what the paper's text gives. On features of 64 numbers q rises to 1 within about 20 epochs and the
// method becomes cross-entropy on a bottleneck.
func MaCCalPrinted() Config {
	c := maccal()
	c.LR = 0.1
	c.MaCCal.Measure = MeasurePlain
	return c
}

func maccal() Config {
	return Config{
		Loss:        "ce",
		Head:        HeadBottleneck,
		Epochs:      40,
		Batch:       128,
		Momentum:    0.9,
		WeightDecay: 5e-4,
		KeepLast:    true,
		MaCCal: &MaCCal{
			Gamma:    0.95,
			Start:    0.5,
			Masks:    true,
			Restrict: true,
			Adaptive: true,
			Decay:    true,
			EtaFirst: 0.1,
			EtaLast:  0.001,
		},
	}
}

func (m *MaCCal) validate() error {
	for _, r := range []struct {
		key    string
		v      float64
		lo, hi float64
	}{
		{"gamma", m.Gamma, 0, 10},
		{"start", m.Start, 0, 1},
		{"min", m.Min, 0, 1},
		{"eta_first", m.EtaFirst, 0, 1},
		{"eta_last", m.EtaLast, 0, 1},
	} {
		if !(r.v >= r.lo && r.v <= r.hi) {
			return fmt.Errorf("%s %v, allowed %v..%v", r.key, r.v, r.lo, r.hi)
		}
	}
	if m.Start < m.Min {
		return fmt.Errorf("start %v, allowed min (%v) to 1", m.Start, m.Min)
	}
	if m.Decay && (m.EtaFirst == 0 || m.EtaLast == 0) {
		return fmt.Errorf("decay from eta_first %v to eta_last %v, allowed above 0", m.EtaFirst, m.EtaLast)
	}
	switch m.Measure {
	case MeasurePlain, MeasureScaled, MeasureMasked:
	default:
		return fmt.Errorf("measure %q, allowed plain, scaled, masked", m.Measure)
	}
	if m.Adaptive && m.Masks && !m.Reversed && m.Measure != MeasurePlain {
		return fmt.Errorf("measure %q with the printed sign, allowed plain, or reversed: fewer kept weights lower the "+
			"confidence that is measured, and the printed sign answers low confidence with fewer still, "+
			"so q falls to 0 and accuracy with it", m.Measure)
	}
	return nil
}

// eta is η_t, t = 1 … epochs.
func (m *MaCCal) eta(t, epochs int) float64 {
	if !m.Decay {
		return m.EtaFirst
	}
	return m.EtaFirst * math.Pow(m.EtaLast/m.EtaFirst, float64(t)/float64(epochs))
}

// next is q_t.
func (m *MaCCal) next(q, conf, acc, eta float64) float64 {
	if !m.Adaptive {
		return q
	}
	step := min(max(conf-m.Gamma*acc, -eta), eta)
	if m.Reversed {
		step = -step
	}
	return min(max(q+step, m.Min), 1)
}
