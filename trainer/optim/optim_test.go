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

// TestStepOfAnyLength: the step by vectors has the bits of the plain one, and writes nothing beyond its end.
func TestStepOfAnyLength(t *testing.T) {
	const room = 70
	value := func(i int, scale float64) float32 { return float32(scale * math.Sin(float64(7*i+1))) }
	for n := range room + 1 {
		var w, g, v, wantW, wantV [room + 8]float32
		for i := range w {
			w[i], g[i], v[i] = value(i, 1), value(i+100, 0.3), value(i+200, 3)
		}
		wantW, wantV = w, v
		o := SGD{LR: 0.1, Momentum: 0.9, WeightDecay: 5e-4}
		for range 3 {
			o.Step(w[:n], g[:n], v[:n])
			o.plain(wantW[:n], g[:n], wantV[:n])
		}
		if w != wantW || v != wantV {
			t.Fatalf("%d values: the step differs from the plain one", n)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	const n = 512 * 512
	w, g, v := make([]float32, n), make([]float32, n), make([]float32, n)
	o := SGD{LR: 0.1, Momentum: 0.9, WeightDecay: 5e-4}
	b.Run("step", func(b *testing.B) {
		b.SetBytes(20 * n)
		for b.Loop() {
			o.Step(w, g, v)
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(20 * n)
		for b.Loop() {
			o.plain(w, g, v)
		}
	})
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
