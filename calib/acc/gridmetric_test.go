package acc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/realdata"
)

// rounding covers what fixed point and float64 sums of some thousand rows leave.
const rounding = 1e-9

// gridCases are labelled confidences: random, tied, at cell edges, saturated, separated, few, and real ones.
func gridCases(t *testing.T) map[string][]obs {
	rng := rand.New(rand.NewPCG(12, 34))
	cases := map[string][]obs{}
	add := func(name string, n int, draw func(i int) float64) {
		for i := range n {
			c := draw(i)
			cases[name] = append(cases[name], obs{c, 1, rng.Float64() < 0.1+0.85*c})
		}
	}
	add("random", 4000, func(int) float64 { return rng.Float64() })
	add("confident", 4000, func(int) float64 { return 1 - math.Exp(-12*rng.Float64()) })
	add("every kind", 3000, func(int) float64 { return randConf(rng) })
	add("20 levels", 2000, func(int) float64 { return float64(1+rng.IntN(20)) / 20 })
	add("inside one cell", 500, func(int) float64 { return 0.50001 + 1e-4*rng.Float64() })
	add("two rows", 2, func(i int) float64 { return 0.3 + 0.3*float64(i) })
	add("one row", 1, func(int) float64 { return 0.7 })
	for i := range 300 {
		cases["separated"] = append(cases["separated"], obs{float64(i) / 300, 1, i > 100})
		cases["all right"] = append(cases["all right"], obs{0.9, 1, true})
		cases["all wrong"] = append(cases["all wrong"], obs{float64(i) / 300, 1, false})
	}
	for name, rows := range realCases(t) {
		cases[name] = rows
	}
	return cases
}

func realCases(t *testing.T) map[string][]obs {
	cases := map[string][]obs{}
	t.Run("read", func(t *testing.T) { // skips alone
		for file, model := range map[string]string{"c10_chenyaofo19_logits.npz": "mobilenetv2_x1_0",
			"c100_chenyaofo_logits.npz": "resnet56"} {
			k := 10
			if file[:4] == "c100" {
				k = 100
			}
			scores, labels := realdata.Scores(t, file, model, "test_labels")
			p := make([]float64, k)
			for i, y := range labels {
				r, _ := kernel.Logits(scores[i*k:(i+1)*k], p)
				cases[file] = append(cases[file], obs{r.Conf, 1, r.Arg == int(y)})
			}
		}
	})
	return cases
}

func sortedObs(rows []obs) metric.Sorted {
	var c, w []float64
	var a []bool
	for _, o := range rows {
		c, a, w = append(c, o.c), append(a, o.a), append(w, o.w)
	}
	return metric.SortWeighted(c, a, w)
}

// boundaryBound is how far the ACE of cells may be from that of the rows: only how the rows of the cell over an end of
// a bin are shared between two bins is not known. With q_b such a cell's share of the weight and v_b its width, it is
// Σ_b q_b (1 + v_b)/2 over the inner ends of m bins.
func boundaryBound(g *Grid, ends []float64, total float64) float64 {
	var bound, low float64
	for c := range g.Cells() {
		high := low + c.Wrong.W + c.Correct.W
		for _, e := range ends {
			if e > low && e < high {
				bound += (high - low) / total * (1 + c.Hi - c.Lo) / 2
			}
		}
		low = high
	}
	return bound
}

func TestGridEqualMassWithinItsBound(t *testing.T) {
	for name, rows := range gridCases(t) {
		g, s := gridOf(t, rows), sortedObs(rows)
		for _, m := range []int{1, 2, 15, 100} {
			want := metric.EqualMass(s, m)
			var ends []float64
			end := 0.0
			for _, b := range want[:m-1] {
				end += b.W
				ends = append(ends, end)
			}
			got := metric.EqualMassCells(g.Groups(), m)
			for i := range got {
				if got[i].N != want[i].N || math.Abs(got[i].W-want[i].W) > rounding {
					t.Fatalf("%s: bin %d of %d: %d rows, want %d", name, i, m, got[i].N, want[i].N)
				}
			}
			bound := boundaryBound(g, ends, float64(len(rows))) + rounding
			near(t, fmt.Sprintf("%s: ace of %d bins", name, m), metric.ECE(got), metric.ECE(want), bound)
			// Each bin's gap moves by what it gets; so the L2 norm moves by at most the sum over bins of n_b^-½ times
			// it.
			smallest := math.Inf(1)
			for _, b := range want {
				if b.W > 0 {
					smallest = min(smallest, b.W/float64(len(rows)))
				}
			}
			near(t, fmt.Sprintf("%s: ace_l2 of %d bins", name, m), metric.ECEL2(got), metric.ECEL2(want),
				bound/math.Sqrt(smallest))
		}
	}
}
