package recipe_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// measured is a problem whose features are in other units: feature j is a_j + b_j·x. Its current head gives the same
// logits as that of the problem.
func measured(in recipe.Input, a, b func(j int) float32) recipe.Input {
	for _, s := range []**data.Set{&in.Train, &in.Valid} {
		changed := **s
		changed.X = slices.Clone(changed.X)
		for i := range changed.X {
			j := i % changed.D
			changed.X[i] = a(j) + b(j)*changed.X[i]
		}
		*s = &changed
	}
	in.Current = in.Current.Clone()
	l := in.Current.Layers[0]
	for i := range l.W {
		j := i % l.In
		l.W[i] /= b(j)
		l.B[i/l.In] -= l.W[i] * a(j)
	}
	return in
}

// standard is small with features of mean 0 and deviation 1.
func standard() recipe.Input {
	in := small()
	d := in.Train.D
	mean, square := make([]float64, d), make([]float64, d)
	for i, v := range in.Train.X {
		mean[i%d] += float64(v) / float64(in.Train.N())
		square[i%d] += float64(v) * float64(v) / float64(in.Train.N())
	}
	sd := func(j int) float32 { return float32(math.Sqrt(square[j] - mean[j]*mean[j])) }
	from0 := func(j int) float32 { return -float32(mean[j]) / sd(j) }
	return measured(in, from0, func(j int) float32 { return 1 / sd(j) })
}

// TestUnitsOfFeatures: in whatever units features come, every recipe learns what it learns where their mean is 0 and
// their deviation 1, begins with the current head, and its head takes them as they are.
func TestUnitsOfFeatures(t *testing.T) {
	constant := func(v float32) func(int) float32 { return func(int) float32 { return v } }
	units := map[string][2]func(int) float32{
		"thousands":       {constant(0), constant(3000)},
		"thousandths":     {constant(0), constant(0.001)},
		"far from 0":      {constant(100), constant(2)},
		"of several ones": {constant(-3), func(j int) float32 { return []float32{.01, 1, 1e4}[j%3] }},
	}
	for name, cfg := range variants() {
		cfg.LR /= 10 // so that rounding stays small
		_, want := mustRun(t, cfg, standard())
		if want.Scaled {
			t.Errorf("%s: features of about 1 are scaled", name)
		}
		for unit, of := range units {
			in := measured(standard(), of[0], of[1])
			h, got := mustRun(t, cfg, in)
			if start := nll(in.Current, in); cfg.Head == recipe.HeadCurrent && math.Abs(got.Before.NLL-start) > 1e-3 {
				t.Errorf("%s, %s: it begins with NLL %v, the current head has %v", name, unit, got.Before.NLL, start)
			}
			last := len(got.Epochs) - 1
			if a, b := got.Epochs[last].Valid.NLL, want.Epochs[last].Valid.NLL; !got.Scaled || math.Abs(a-b) > .01*b {
				t.Errorf("%s, %s: scaled %v, NLL %v, want %v", name, unit, got.Scaled, a, b)
			}
			reported := got.Before.NLL
			if got.Best > 0 {
				reported = got.Epochs[got.Best-1].Valid.NLL
			}
			if left := nll(h, in); math.Abs(left-reported) > 1e-3 {
				t.Errorf("%s, %s: the head has NLL %v, reported %v", name, unit, left, reported)
			}
		}
	}
}

// TestScaledAndNotBetter: where no epoch is better than the current head, that is what comes back, bit for bit.
func TestScaledAndNotBetter(t *testing.T) {
	in := measured(small(), func(int) float32 { return 7 }, func(int) float32 { return 300 })
	cfg := recipe.CrossEntropy()
	cfg.Epochs, cfg.LR = 2, 1e4
	h, r := mustRun(t, cfg, in)
	if !r.Scaled || r.Best != 0 || !same(h, in.Current) {
		t.Errorf("scaled %v, best epoch %d, the head of before: %v", r.Scaled, r.Best, same(h, in.Current))
	}
	left, err := recipe.Refit(context.Background(), cfg, in, 0, backend.Go{})
	if err != nil || !same(left, in.Current) {
		t.Errorf("refit of 0 epochs: the head of before: %v, %v", err == nil && same(left, in.Current), err)
	}
}
