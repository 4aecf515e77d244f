package backend

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/optim"
	"github.com/plumbline/plumbline/trainer/philox"
)

// threaded is a product that says how many share it.
type threaded struct {
	head.Gonum
	n int
}

func (t threaded) Threads() int { return t.n }

// TestRanges: every place once, for any number of threads, also where there are more of them than places.
func TestRanges(t *testing.T) {
	for _, c := range []struct{ threads, n, width int }{
		{1, 10, leastShared}, {2, 7, 1}, {2, 7, leastShared}, {3, 7, leastShared}, {8, 3, leastShared}, {5, 0, 1},
	} {
		seen := make([]atomic.Int32, c.n)
		ranges(c.threads, c.n, c.width, func(from, to int) {
			for i := from; i < to; i++ {
				seen[i].Add(1)
			}
		})
		for i := range seen {
			if n := seen[i].Load(); n != 1 {
				t.Errorf("%+v: place %d seen %d times, want once", c, i, n)
			}
		}
	}
}

// TestThreadsSameBits: steps and gathered rows of several goroutines are those of one.
func TestThreadsSameBits(t *testing.T) {
	const n = leastShared + 13
	src := philox.Source{Stream: philox.Stream{Seed: 3}}
	x := make([][]float32, 3)
	for i := range x {
		for range n {
			x[i] = append(x[i], float32(src.Float64()-0.5))
		}
	}
	opt := optim.SGD{LR: 0.1, Momentum: 0.9, WeightDecay: 0.01}
	w, v := slices.Clone(x[0]), slices.Clone(x[2])
	opt.Step(w, x[1], v)
	w2, v2 := slices.Clone(x[0]), slices.Clone(x[2])
	if Step(opt, 3, w2, x[1], v2); !slices.Equal(w, w2) || !slices.Equal(v, v2) {
		t.Error("a step of three goroutines differs from that of one")
	}

	const d, k, rows = 1031, 3, 400
	set := &data.Set{D: d, K: k, X: make([]float32, rows*d), Y: make([]int32, rows)}
	for i := range set.X {
		set.X[i] = x[0][i%n] * float32(1+i/n)
	}
	p := Problem{Train: set, Head: head.FreshLinear(d, k, 1), Losses: []string{"ce"}, Batch: rows}
	e := EpochPlan{Rows: data.Shuffled(data.Rows(rows), 1, 0), Batch: 300}
	var got [2][]float32
	for i, threads := range []int{1, 3} {
		m, err := NewMiniBatch(p)
		if err != nil {
			t.Fatal(err)
		}
		m.Threads = threads
		loaded, count := m.Load(e, 0)
		if count != 300 {
			t.Fatalf("%d rows, want 300", count)
		}
		got[i] = slices.Clone(loaded)
	}
	if !slices.Equal(got[0], got[1]) {
		t.Error("rows gathered by three goroutines differ from those of one")
	}
	if a, b := Threads(threaded{n: 4}), Threads(head.Gonum{}); a != 4 || b != 1 {
		t.Errorf("%d and %d threads, want 4 and 1", a, b)
	}
}
