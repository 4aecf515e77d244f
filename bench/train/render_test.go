package main

import (
	"strings"
	"testing"
)

// given are trials of cross-entropy and of auto on one setting, with the NLLs by seed and, for cross-entropy, point.
func given(ce [][]float64, auto []float64) results {
	r := results{}
	for seed, points := range ce {
		for point, v := range points {
			k := key{"clean", reference, uint64(seed), point}
			r[k] = trial{key: k, Plain: outcome{ValidNLL: 9, NLL: 9}, Tempered: outcome{ValidNLL: v, NLL: v,
				ECE: v / 10, Accuracy: 1 - v}}
		}
	}
	for seed, v := range auto {
		k := key{"clean", "auto", uint64(seed), 0}
		r[k] = trial{key: k, Chosen: "cross_entropy", Tempered: outcome{NLL: v, ECE: v / 10, Accuracy: 1 - v}}
	}
	return r
}

// TestPickTakesTheLowestValidationNLL: of a seed with every point; a seed of which one is missing or failed has none or
// the rest.
func TestPickTakesTheLowestValidationNLL(t *testing.T) {
	r := given([][]float64{{0.5, 0.3, 0.4, 0.6}, {0.5, 0.3, 0.4}, {0.2, 0.3, 0.4, 0.6}}, nil)
	failed := r[key{"clean", reference, 2, 0}]
	failed.Error = "training diverged"
	r[failed.key] = failed
	got := r.pick("clean", find(methods(), reference), true)
	if len(got) != 2 || got[0].Point != 1 || got[2].Point != 1 {
		t.Errorf("got %v, want point 1 of seeds 0 and 2", got)
	}
}

func TestAutoTableHasTheDifference(t *testing.T) {
	var b strings.Builder
	given([][]float64{{0.5, 0.3, 0.4, 0.6}, {0.5, 0.32, 0.4, 0.9}}, []float64{0.31, 0.33}).autoTable(&b,
		[]setting{clean(), drifts()[0]})
	for _, want := range []string{"| clean | +0.0100 ±0.0000 (2) | +0.10 ±0.00 (2) | -1.00 ±0.00 (2) | ce 2 |",
		"| noise_s1 | – | – | – |  |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestMark: bold where better, italics where worse, by whether more is better; nothing within the interval.
func TestMark(t *testing.T) {
	for _, c := range []struct {
		of   measurement
		diff []float64
		want string
	}{
		{nll, []float64{-0.1, -0.11, -0.1}, "**x**"}, {nll, []float64{0.1, 0.11, 0.1}, "*x*"}, {accuracy,
			[]float64{5, 5.1, 5}, "**x**"},
		{nll, []float64{-0.1, 0.11, -0.1}, "x"}, {nll, []float64{-1e-6, -1e-6, -1e-6}, "x"}, {floor,
			[]float64{-5, -5, -5}, "x"},
	} {
		if got := c.of.mark("x", c.diff); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.of.title, c.diff, got, c.want)
		}
	}
}

// TestStoreForgetsOtherGrids: a trial of settings that the grid no longer has is run again.
func TestStoreForgetsOtherGrids(t *testing.T) {
	m := find(methods(), reference)
	j := job{setting: clean(), method: m, key: key{"clean", reference, 3, 1}}
	c := m.grid[1]
	c.Seed = 3
	if !j.made(trial{key: j.key, Config: &c}) {
		t.Error("the grid's own trial is forgotten")
	}
	other := c
	other.LR *= 2
	if j.made(trial{key: j.key, Config: &other}) {
		t.Error("a trial at another rate is kept")
	}
}

// TestGridsAreValid: every point of every grid is a recipe.
func TestGridsAreValid(t *testing.T) {
	seen := map[key]bool{}
	for _, j := range all() {
		if seen[j.key] {
			t.Errorf("%+v twice", j.key)
		}
		seen[j.key] = true
		for _, c := range j.method.grid {
			if err := c.Validate(); err != nil {
				t.Errorf("%s: %v", j.method.name, err)
			}
		}
	}
	if _, ok := seen[key{"clean", "maccal", 4, 0}]; !ok {
		t.Error("no MaC-Cal on clean rows with seed 4")
	}
}
