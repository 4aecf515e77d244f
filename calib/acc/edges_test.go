package acc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/testsize"
)

// awkward are rows of k classes on which a rounded probability lands in another bin than an exact one: the largest or
// another probability on every edge j/cells, ties, uniform rows, |z| = 80 and 2000.
func awkward(rng *rand.Rand, k, cells int, probs bool) metric.Rows {
	r := metric.Rows{K: k, Probs: probs}
	add := func(p []float64) {
		for _, v := range p {
			if !probs {
				v = max(math.Log(v), -2000)
			}
			r.F32 = append(r.F32, float32(v))
		}
		r.Labels = append(r.Labels, int32(rng.IntN(k)))
	}
	p := make([]float64, k)
	for j := 1; j < cells; j++ {
		edge := float64(j) / float64(cells)
		for i := range p { // the rest alike: ties
			p[i] = (1 - edge) / float64(k-1)
		}
		p[rng.IntN(k)] = edge
		add(p)
		rest := 1 - edge // or by halves
		for i, at := range rng.Perm(k) {
			switch i {
			case 0:
				p[at] = edge
			case k - 1:
				p[at] = rest
			default:
				p[at] = rest / 2
				rest /= 2
			}
		}
		add(p)
	}
	for _, at := range rng.Perm(k)[:min(k, 5)] {
		for ties := 1; ties <= k; ties = 2*ties + 1 {
			clear(p)
			for i := range ties {
				p[(at+i)%k] = 1 / float64(ties)
			}
			add(p)
		}
		for i := range p {
			p[i] = 1 / float64(k)
		}
		add(p)
		if !probs {
			for _, z := range []float32{80, 372.5, 1000} {
				for i := range k {
					r.F32 = append(r.F32, z*float32(rng.IntN(3)-1))
					if i == at {
						r.F32[len(r.F32)-1] = z
					}
				}
				r.Labels = append(r.Labels, int32(rng.IntN(k)))
			}
		}
	}
	return r
}

func widened(r metric.Rows) metric.Rows {
	w := metric.Rows{K: r.K, Probs: r.Probs, Labels: r.Labels, W: r.W}
	for _, v := range r.F32 {
		w.F64 = append(w.F64, float64(v))
	}
	return w
}

// setsOf returns the rows as a stream has them: by blocks, and one by one.
func setsOf(t *testing.T, r metric.Rows) (blocks, rows *Set) {
	t.Helper()
	blocks, rows = must(New(Config{K: r.K})), must(New(Config{K: r.K}))
	b, step := NewBlock(r.K), BlockRows(r.K)
	one, v := make([]kernel.Row, 1), make([]float32, r.K)
	for at := 0; at < len(r.Labels); at += step {
		y := r.Labels[at:min(at+step, len(r.Labels))]
		scores := r.F32[at*r.K : (at+len(y))*r.K]
		b.Score(scores, r.Probs)
		var all []int32
		for i, y := range y {
			if err := b.SetRow(i, int(y), 1, 0, math.NaN()); err != nil {
				t.Fatal(err)
			}
			all = append(all, int32(i))
			q := scores[i*r.K : (i+1)*r.K]
			e, z := v, q
			if r.Probs {
				kernel.ProbRows(one, q, r.K)
				e, z = q, nil
			} else {
				kernel.LogitRows(one, v, q, r.K, 1)
			}
			if err := rows.LabelScaled(one[0], e, z, Truth{int(y), kernel.NLL(one[0], q, int(y), r.Probs), 1, 0,
				math.NaN()}); err != nil {
				t.Fatal(err)
			}
		}
		if err := blocks.LabelRows(b, all); err != nil {
			t.Fatal(err)
		}
	}
	return blocks, rows
}

// TestStreamEqualsEvalOnEdges: the bins of a stream and of eval of float32 rows are those of the same rows in float64,
// and the stream's metrics those of eval but for the rounding to fixed point.
func TestStreamEqualsEvalOnEdges(t *testing.T) {
	testsize.Slow(t)
	for _, k := range []int{2, 3, 5, 10, 15, 100} {
		for _, probs := range []bool{false, true} {
			for _, cells := range []int{15, 3600} {
				if cells == 3600 && k > 15 && testing.Short() {
					continue
				}
				rng := rand.New(rand.NewPCG(uint64(k), uint64(cells)))
				r := awkward(rng, k, cells, probs)
				if len(r.Labels) < 2*(cells-1) {
					t.Fatalf("only %d rows", len(r.Labels))
				}
				what := fmt.Sprintf("K = %d, probabilities %v, edges of %d", k, probs, cells)
				compareEdges(t, what, r)
			}
		}
	}
	compareEdges(t, "one row", metric.Rows{K: 15, F32: make([]float32, 15), Labels: []int32{3}})
	compareEdges(t, "one row of probabilities", metric.Rows{K: 2, F32: []float32{.6, .4}, Labels: []int32{1},
		Probs: true})
}

func compareEdges(t *testing.T, what string, r metric.Rows) {
	t.Helper()
	eval, err := metric.Basic(r, metric.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f64, err := metric.Basic(widened(r), metric.Options{})
	if err != nil {
		t.Fatal(err)
	}
	full, err := metric.Evaluate(r, metric.Options{Resamples: 1})
	if err != nil {
		t.Fatal(err)
	}
	blocks, rows := setsOf(t, r)
	for form, s := range map[string]*Set{"blocks": blocks, "rows": rows} {
		l, name := s.Labelled, what+", "+form+": "
		bins := must(l.MSP.Bins(15))
		for b, got := range bins {
			if got.N != eval.Bins[b].N || got.N != f64.Bins[b].N || got.SumA != f64.Bins[b].SumA {
				t.Errorf("%sbin %d: got %d rows, %v right; eval has %d, float64 %d, %v", name, b, got.N, got.SumA,
					eval.Bins[b].N, f64.Bins[b].N, f64.Bins[b].SumA)
			}
		}
		for class := range r.K {
			e, x := eval.Classes.Bins(class), f64.Classes.Bins(class)
			for b, got := range l.ClassWise.Bins(class) {
				if got.N != e[b].N || got.N != x[b].N || got.SumA != e[b].SumA || got.SumA != x[b].SumA {
					t.Errorf("%sclass %d, bin %d: got %d rows, %v labels; eval has %d, %v, float64 %d, %v",
						name, class, b, got.N, got.SumA, e[b].N, e[b].SumA, x[b].N, x[b].SumA)
				}
			}
		}
		cw, cw2 := l.ClassWise.ECE()
		const tol = 1e-9 // of fixed point
		near(t, name+"ece", metric.ECE(bins), full.ECE, tol)
		near(t, name+"mce", metric.MCE(bins), full.MCE, tol)
		near(t, name+"cwece", cw, full.CWECE, tol)
		near(t, name+"cwece_l2", cw2, full.CWECEL2, tol)
		near(t, name+"nll", l.Scores.NLL(), full.NLL, tol)
		near(t, name+"brier", l.Scores.Brier(), full.Brier, tol)
		for _, m := range []int{10, 24, 3600} {
			got := must(l.MSP.Bins(m))
			for b, want := range metric.EqualWidth(confidences64(r), make([]bool, len(r.Labels)), nil, m) {
				if got[b].N != want.N {
					t.Errorf("%sbin %d of %d: got %d rows, want %d", name, b, m, got[b].N, want.N)
				}
			}
		}
	}
}

// confidences64 are the rows' confidences in float64.
func confidences64(r metric.Rows) []float64 {
	p := make([]float64, r.K)
	c := make([]float64, len(r.Labels))
	for i := range c {
		row, _ := kernel.Probs(r.F32[i*r.K:(i+1)*r.K], p)
		if !r.Probs {
			row, _ = kernel.Logits(r.F32[i*r.K:(i+1)*r.K], p)
		}
		c[i] = row.Conf
	}
	return c
}
