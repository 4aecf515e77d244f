package recipe_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/conformance"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// candidates are cross-entropy, a short training, under several names.
func candidates(names ...string) []recipe.Named {
	var list []recipe.Named
	for _, name := range names {
		c := recipe.Named{Name: name, Config: recipe.CrossEntropy()}
		c.Config.Epochs, c.Config.Batch = 8, 16
		list = append(list, c)
	}
	return list
}

// TestAutoTakesWhatIsBetter: a baseline that learns nothing loses to one that learns, whose temperature is in the head.
func TestAutoTakesWhatIsBetter(t *testing.T) {
	in := small()
	in.Valid = conformance.Rows(400, 2)
	list := candidates("lazy", "eager", "mad")
	list[0].Config.LR = 0
	list[2].Config.LR, list[2].Config.WeightDecay = 1e6, 1
	h, r, err := recipe.RunAuto(context.Background(), list, in, backend.Go{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Chosen != "eager" || !r.Tried[1].Better || r.OverCurrent == nil || r.OverCurrent.Mean >= 0 {
		t.Errorf("chosen %s, %+v", r.Chosen, r.Tried[1])
	}
	if r.Tried[2].Error == "" || !strings.Contains(r.Tried[2].Error, "diverged") {
		t.Errorf("the diverging candidate: %+v", r.Tried[2])
	}
	plain, _ := mustRun(t, list[1].Config, in)
	z, zt := logits(plain, in), logits(h, in)
	for i := range z {
		if math.Abs(float64(z[i])/r.Temperature-float64(zt[i])) > 1e-5 {
			t.Fatalf("logit %d: %v, want %v over %v", i, zt[i], z[i], r.Temperature)
		}
	}
}

func logits(h *head.Head, in recipe.Input) []float32 {
	return head.NewPass(h, in.Valid.N(), head.Gonum{}).Forward(h, in.Valid.X, in.Valid.N())
}

// TestAutoKeepsTheBaseline: candidates that are the same, or worse, do not replace it.
func TestAutoKeepsTheBaseline(t *testing.T) {
	list := candidates("first", "same", "worse")
	list[2].Config.LR = 0
	_, r, err := recipe.RunAuto(context.Background(), list, small(), backend.Go{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Chosen != "first" || r.Tried[1].Better || r.Tried[2].Better || r.Level != 0.025 {
		t.Errorf("chosen %s at level %v: %+v", r.Chosen, r.Level, r.Tried)
	}
	list[0].Config.Loss = "x"
	_, _, err = recipe.RunAuto(context.Background(), list, small(), backend.Go{})
	if err == nil || !strings.Contains(err.Error(), "auto: first:") {
		t.Errorf("error %v", err)
	}
}

// TestAutoBaselineIsTheBestOfThose: the best of the candidates that are marked as baseline is the baseline, without a
// test; only the others are tested, against it.
func TestAutoBaselineIsTheBestOfThose(t *testing.T) {
	list := candidates("lazy", "same", "eager")
	list[0].Baseline, list[2].Baseline = true, true
	list[0].Config.LR = 0
	_, r, err := recipe.RunAuto(context.Background(), list, small(), backend.Go{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Baseline != "eager" || r.Chosen != "eager" || r.Level != 0.05 {
		t.Errorf("baseline %s, chosen %s at level %v, want eager, eager, 0.05", r.Baseline, r.Chosen, r.Level)
	}
	if s := r.Tried[1]; s.Better || s.Paired.Mean != 0 || s.Paired.SE != 0 {
		t.Errorf("what does the same as the baseline: %+v, want no difference", s.Paired)
	}
	if s := r.Tried[0]; s.Better || s.Paired != (recipe.Paired{}) {
		t.Errorf("a recipe of the baseline was tested: %+v", s)
	}
}

// TestRealAuto: after a drift, the NLL on test rows is at most that of cross-entropy with a temperature, within two
// standard errors.
func TestRealAuto(t *testing.T) {
	if testing.Short() {
		t.Skip("trains nine heads")
	}
	in, test := drifted(t, "gauss_noise_s1_f")
	list := recipe.Candidates(1)
	h, r, err := recipe.RunAuto(context.Background(), list, in, backend.Go{})
	if err != nil {
		t.Fatal(err)
	}
	base, _, err := recipe.RunAuto(context.Background(), list[:3], in, backend.Go{})
	if err != nil {
		t.Fatal(err)
	}
	acc, ece := score(t, h, test)
	accBase, eceBase := score(t, base, test)
	d := rowDifferences(h, base, recipe.Input{Valid: test})
	t.Logf("%s, T %.3f: accuracy %.2f, ECE %.2f; cross-entropy and T: %.2f, %.2f; NLL %+.4f ± %.4f",
		r.Chosen, r.Temperature, acc, ece, accBase, eceBase, d.Mean, d.SE)
	if d.Mean > 2*d.SE {
		t.Errorf("%s has an NLL higher by %v ± %v than cross-entropy with a temperature", r.Chosen, d.Mean, d.SE)
	}
}

func rowDifferences(a, b *head.Head, in recipe.Input) recipe.Paired {
	n, k := in.Valid.N(), in.Valid.K
	x := in.Valid.Chunk(nil, 0, n)
	za := append([]float32(nil), head.NewPass(a, n, head.Gonum{}).Forward(a, x, n)...)
	zb := head.NewPass(b, n, head.Gonum{}).Forward(b, x, n)
	row := func(z []float32, y int32) float64 {
		var s float64
		for _, v := range z {
			s += math.Exp(float64(v))
		}
		return math.Log(s) - float64(z[y])
	}
	var sum, square float64
	for i, y := range in.Valid.Y {
		d := row(za[i*k:(i+1)*k], y) - row(zb[i*k:(i+1)*k], y)
		sum, square = sum+d, square+d*d
	}
	m := float64(n)
	return recipe.Paired{Mean: sum / m, SE: math.Sqrt((square/m - sum/m*sum/m) / m)}
}
