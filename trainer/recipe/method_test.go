package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// TestMethods: each recipe of another head trains, is reported, and resumed goes on with the same bits.
func TestMethods(t *testing.T) {
	in := small()
	for _, name := range []string{"tst", "vtst", "balcal", "plp"} {
		list, err := recipe.Lookup(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		c := list[0].Config
		c.Epochs, c.Batch, c.LR = 8, 16, 0.05
		whole, report := mustRun(t, c, in)
		if first, last := report.Before.NLL, report.Epochs[7].Valid.NLL; !(last < first) || whole.Check() != nil {
			t.Errorf("%s: NLL %v, then %v", name, first, last)
		}
		a, err := recipe.New(c, in, backend.Go{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := a.Step(); err != nil {
				t.Fatal(err)
			}
		}
		text, err := a.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		b, err := recipe.New(c, in, backend.Go{})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(text); err != nil {
			t.Fatal(err)
		}
		for !b.Done() {
			if err := b.Step(); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range b.Head().Params() {
			if !slices.Equal(p, whole.Params()[i]) {
				t.Errorf("%s: tensor %d of a resumed training differs", name, i)
			}
		}
	}
}

// TestPeel: the last layer stays as it is from half of the epochs on, and moves before.
func TestPeel(t *testing.T) {
	in, c := small(), recipe.PLP()
	c.Epochs, c.Batch = 6, 16
	tr, err := recipe.New(c, in, backend.Go{})
	if err != nil {
		t.Fatal(err)
	}
	before := tr.Head()
	for epoch := range c.Epochs {
		if err := tr.Step(); err != nil {
			t.Fatal(err)
		}
		after := tr.Head()
		was, is := before.Layers[1], after.Layers[1]
		frozen := slices.Equal(was.W, is.W) && slices.Equal(was.B, is.B)
		if slices.Equal(before.Layers[0].W, after.Layers[0].W) || frozen != (epoch >= 3) {
			t.Errorf("epoch %d: the last layer is frozen: %v", epoch+1, frozen)
		}
		before = after
	}
}

// TestMethodsRefused: a method says what it does not go with.
func TestMethodsRefused(t *testing.T) {
	vtst, balcal := recipe.VTST(), recipe.BalCAL()
	vtst.Head, balcal.Mixup = recipe.HeadLinear, 0.5
	other := recipe.TST()
	other.Method = "x"
	for want, c := range map[string]recipe.Config{"from head linear, allowed bottleneck": vtst,
		"with maccal, mixup or peel": balcal, `method "x", allowed variational, balanced`: other} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
