package recipe_test

import (
	"context"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// TestRefit: the head is that of a training that has both sets as its training rows, after so many epochs of the same
// schedule, whether the sets are views of one slab or apart.
func TestRefit(t *testing.T) {
	for _, name := range []string{"cross-entropy", "stable", "interleaved"} {
		cfg, in := variants()[name], small()
		n, m, d := in.Train.N(), in.Valid.N(), in.Train.D
		both := &data.Set{D: d, K: in.Train.K, X: append(append([]float32(nil), in.Train.X...), in.Valid.X...),
			Y: append(append([]int32(nil), in.Train.Y...), in.Valid.Y...)}
		rows := data.Rows(n + m)
		views := recipe.Input{Train: both.Select(rows[:n]), Valid: both.Select(rows[n:]), Current: in.Current}
		const best = 4
		last := cfg
		last.KeepLast = true
		tr, err := recipe.New(last, recipe.Input{Train: both, Valid: in.Valid, Current: in.Current}, backend.Go{})
		if err != nil {
			t.Fatal(err)
		}
		for range best {
			if err := tr.Step(); err != nil {
				t.Fatal(err)
			}
		}
		for how, in := range map[string]recipe.Input{"apart": in, "views": views} {
			h, err := recipe.Refit(context.Background(), cfg, in, best, backend.Go{})
			if err != nil {
				t.Fatal(err)
			}
			if !same(h, tr.Head()) {
				t.Errorf("%s, %s: not the head of a training on all rows", name, how)
			}
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRefitOfNothing(t *testing.T) {
	cfg, in := variants()["cross-entropy"], small()
	if h, err := recipe.Refit(context.Background(), cfg, in, 0, backend.Go{}); err != nil || !same(h, in.Current) {
		t.Errorf("0 epochs: %v, want the current head", err)
	}
	_, err := recipe.Refit(context.Background(), cfg, in, 7, backend.Go{})
	if err == nil || !strings.Contains(err.Error(), "epoch 7, allowed 0..6") {
		t.Errorf("7 of 6 epochs: error %v", err)
	}
}
