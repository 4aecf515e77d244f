package rule

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestReferenceEqualsRows compares the windows of a rule with those of the rows themselves, pinned and rolling.
func TestReferenceEqualsRows(t *testing.T) {
	for _, mode := range []string{Pinned, Rolling} {
		cfg := Config{Name: "r", Kind: Reference, Measure: Accuracy, Signal: stage.SignalRaw, Rows: 700, MinRows: 1,
			Fire: 1, Reference: mode, ReferenceRows: 900}
		x := testContext(cfg)
		r := newComparison(x).(comparison)
		rng := rand.New(rand.NewPCG(1, 13))
		var panes [][]metric.Bin // a copy of all rows, by pane
		for at := range int64(80) {
			set, bins := drawnSet(t, x.env, rng, 50)
			panes = append(panes, bins)
			in := &stage.Pane{Index: at, End: (at + 1) * x.env.Pane, Labelled: 50,
				Cells: []stage.Cell{{PredictionPane: at, Set: set}}}
			if _, err := r.Observe(in); err != nil {
				t.Fatal(err)
			}
		}
		ref, cur, ok := r.windows(x.cfg)
		if !ok || cur.rows < 700 || cur.rows >= 700+2*(700/blocksOf+150) || ref.rows < 900 {
			t.Fatalf("%s: windows of %d and %d rows", mode, ref.rows, cur.rows)
		}
		n, c, b := len(panes), int(cur.rows)/50, int(ref.rows)/50
		before := panes[:b]
		if mode == Rolling {
			before = panes[n-c-b : n-c]
		}
		got, ok, err := r.Evaluate(0)
		if err != nil || !ok {
			t.Fatal(err)
		}
		want, err := reference.Compare(reference.Window{Bins: sumOf(before)},
			reference.Window{Bins: sumOf(panes[n-c:])})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Value+want.Accuracy.Difference) > 1e-9 || math.Abs(*got.Lo+want.Accuracy.Hi) > 1e-9 {
			t.Errorf("%s: fall of accuracy %v (from %v), want %v", mode, got.Value, *got.Lo, want.Accuracy)
		}
	}
}

// drawnSet returns a set of n labelled rows, and their bins counted row by row.
func drawnSet(t testing.TB, env *stage.Env, rng *rand.Rand, n int) (*acc.Set, []metric.Bin) {
	t.Helper()
	set, err := env.NewSums(4)
	if err != nil {
		t.Fatal(err)
	}
	bins, p := make([]metric.Bin, 15), make([]float64, 4)
	for range n {
		z := []float64{3 * rng.Float64(), 0, 0, 0}
		r, _ := kernel.Logits(z, p)
		y := rng.IntN(2)
		truth := acc.Truth{Class: y, NLL: kernel.NLL(r, z, y, false), Weight: 1, Served: math.NaN()}
		if err := set.Label(r, p, truth); err != nil {
			t.Fatal(err)
		}
		b := &bins[metric.BinIndex(r.Conf, 15)]
		b.N, b.W, b.SumC = b.N+1, b.W+1, b.SumC+r.Conf
		if r.Arg == y {
			b.SumA++
		}
	}
	return set, bins
}

func sumOf(panes [][]metric.Bin) []metric.Bin {
	var out []metric.Bin
	for _, b := range panes {
		out = stage.PlusBins(out, b)
	}
	return out
}
