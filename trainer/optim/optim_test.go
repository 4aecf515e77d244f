package optim

import (
	"math"
	"strings"
	"testing"
)

// TestStepsByHand: two steps of a parameter 2 with gradients 1 and −0.5, lr 0.1, momentum 0.9, decay 0.01.
func TestStepsByHand(t *testing.T) {
	for _, c := range []struct {
		name        string
		opt         SGD
		first, last float64
	}{
		{"plain", SGD{LR: 0.1}, 1.9, 1.95},
		// v = 1, then 0.9 − 0.5
		{"momentum", SGD{LR: 0.1, Momentum: 0.9}, 1.9, 1.86},
		// v = 1.02; then g = −0.5 + 0.01898, v = 0.918 − 0.48102
		{"L2", SGD{LR: 0.1, Momentum: 0.9, WeightDecay: 0.01}, 1.898, 1.854302},
		// 2 − 0.1 − 0.002; then − 0.04 − 0.001898
		{"decoupled", SGD{LR: 0.1, Momentum: 0.9, WeightDecay: 0.01, Decoupled: true}, 1.898, 1.856102},
		// step 1 + 0.9; then −0.5 + 0.36
		{"nesterov", SGD{LR: 0.1, Momentum: 0.9, Nesterov: true}, 1.81, 1.824},
	} {
		w, v := []float32{2}, []float32{0}
		c.opt.Step(w, []float32{1}, v)
		first := float64(w[0])
		c.opt.Step(w, []float32{-0.5}, v)
		if math.Abs(first-c.first) > 1e-6 || math.Abs(float64(w[0])-c.last) > 1e-6 {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, first, w[0], c.first, c.last)
		}
	}
}

func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		s    Schedule
		want []float64 // of 4 epochs
	}{
		{Schedule{}, []float64{1, 1, 1, 1}},
		{Schedule{Kind: Cosine}, []float64{1, (1 + math.Sqrt(0.5)) / 2, 0.5, (1 - math.Sqrt(0.5)) / 2}},
		{Schedule{Kind: Linear, Floor: 0.2}, []float64{1, 0.8, 0.6, 0.4}},
		{Schedule{Kind: Steps, Milestones: []float64{0.5, 0.75}}, []float64{1, 1, 0.1, 0.01}},
		{Schedule{Kind: Constant, Warmup: 3}, []float64{0.25, 0.5, 0.75, 1}},
		{Schedule{Kind: Linear, Warmup: 2}, []float64{1.0 / 3, 2.0 / 3, 1, 0.5}},
	} {
		if err := c.s.Validate(); err != nil {
			t.Errorf("%+v: %v", c.s, err)
		}
		for e, want := range c.want {
			if got := c.s.At(e, 4); math.Abs(got-want) > 1e-12 {
				t.Errorf("%+v: epoch %d: %v, want %v", c.s, e, got, want)
			}
		}
	}
	for want, s := range map[string]Schedule{
		`kind "sine"`:          {Kind: "sine"},
		"warmup -1":            {Warmup: -1},
		"floor 2":              {Floor: 2},
		"factor -1":            {Factor: -1},
		"no milestones":        {Kind: Steps},
		"milestones [0.5 0.5]": {Kind: Steps, Milestones: []float64{0.5, 0.5}},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", s, err, want)
		}
	}
}
