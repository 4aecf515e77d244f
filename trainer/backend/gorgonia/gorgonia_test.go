package gorgonia

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/conformance"
	"github.com/plumbline/plumbline/trainer/blas"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
)

// tolerance: a BLAS may add a product in another order than that of the reference; float32 then differs in the last
// bits, which eight steps at rate 0.1 leave within this.
var tolerance = conformance.Tolerance{Params: 2e-5, Loss: 2e-6}

func TestConformance(t *testing.T) { conformance.Check(t, Backend{}, tolerance) }

func TestConformanceOpenBLAS(t *testing.T) {
	lib, err := blas.Load()
	if err != nil {
		t.Skip(err)
	}
	conformance.Check(t, Backend{GEMM: lib}, tolerance)
}

func random(n, d, k int) *data.Set {
	src := philox.Source{Stream: philox.Stream{Seed: 7}}
	s := &data.Set{D: d, K: k}
	for range n {
		for range d {
			s.X = append(s.X, float32(2*src.Float64()-1))
		}
		s.Y = append(s.Y, int32(src.Below(uint32(k))))
	}
	return s
}

// TestNarrow: one feature, one hidden unit, mini-batches of one row, all of which gorgonia would take for vectors.
func TestNarrow(t *testing.T) {
	for _, c := range []struct{ d, width, k, batch int }{
		{1, 0, 2, 1}, {1, 1, 2, 1}, {3, 1, 4, 5}, {1, 4, 3, 2}, {2, 2, 2, 3}, {4, 0, 3, 1},
	} {
		h := head.FreshLinear(c.d, c.k, 3)
		if c.width > 0 {
			h = head.Bottleneck(c.d, c.width, c.k, 3)
			h.Layers[0].B[0] = 0.5 // a unit that is not dead
		}
		p := backend.Problem{
			Train:  random(11, c.d, c.k),
			Eval:   []*data.Set{random(4, c.d, c.k)},
			Head:   h,
			Losses: []string{"ce"},
			Batch:  c.batch,
		}
		e := backend.EpochPlan{
			Rows:        data.Shuffled(data.Rows(11), 1, 1),
			Batch:       c.batch,
			LR:          0.1,
			Momentum:    0.9,
			WeightDecay: 0.01,
			Mask:        &backend.Mask{Keep: 0.7, Seed: 5, Restrict: true},
		}
		var states [2]*backend.TrainingState
		for i, b := range []backend.Backend{Backend{}, backend.Go{}} {
			s, err := b.Open(p)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := s.Epoch(e); err != nil {
					t.Fatalf("%s: %+v: %v", b.Name(), c, err)
				}
			}
			if states[i], err = s.State(); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		for i, want := range states[1].Params {
			for j, w := range want {
				if d := math.Abs(float64(states[0].Params[i][j] - w)); !(d < 1e-5) {
					t.Errorf("%+v: tensor %d, value %d: %v, want %v", c, i, j, states[0].Params[i][j], w)
				}
			}
		}
	}
}

// TestDiverges: an infinite logit is ErrDiverged, whatever the machine makes of it.
func TestDiverges(t *testing.T) {
	p := backend.Problem{Train: random(64, 5, 3), Head: head.Bottleneck(5, 6, 3, 1), Losses: []string{"ce"}, Batch: 8}
	s, err := Backend{}.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 50 {
		if _, err = s.Epoch(backend.EpochPlan{Rows: data.Rows(64), Batch: 8, LR: 1e20, Momentum: 0.9}); err != nil {
			break
		}
	}
	if !errors.Is(err, backend.ErrDiverged) {
		t.Errorf("error %v, want one that wraps ErrDiverged", err)
	}
}

// TestOneGraphAShape: graphs are kept, also for a smaller last mini-batch.
func TestOneGraphAShape(t *testing.T) {
	p := backend.Problem{Train: random(50, 5, 3), Head: head.FreshLinear(5, 3, 1), Losses: []string{"ce"}, Batch: 16}
	opened, err := Backend{}.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	s := opened.(*session)
	for _, e := range []backend.EpochPlan{
		{Batch: 16},
		{Batch: 16},
		{Batch: 7},
		{Batch: 16, Mask: &backend.Mask{Keep: 0.5}},
		{Batch: 16, Mask: &backend.Mask{Keep: 0.2, FirstStep: 9}},
		{Batch: 16, Mask: &backend.Mask{Keep: 0.5, Restrict: true}},
	} {
		e.Rows, e.LR = data.Rows(50), 0.1
		if _, err := s.Epoch(e); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.graphs) != 4 {
		t.Errorf("%d graphs, want 4: two sizes, masks with and without restriction", len(s.graphs))
	}
}

// TestMachine: loss and gradients are those of gorgonia's own tape machine, to the bit, also of a mini-batch that has
// fewer rows than the graph.
func TestMachine(t *testing.T) {
	p := backend.Problem{Train: random(20, 5, 3), Head: head.Bottleneck(5, 6, 3, 1), Losses: []string{"ce"}, Batch: 16}
	for _, of := range []shape{{rows: 16}, {rows: 16, masked: true}, {rows: 16, masked: true, restrict: true}} {
		opened, err := Backend{}.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		s := opened.(*session)
		e := backend.EpochPlan{Rows: data.Rows(20), Batch: 16, LR: 0.1}
		if of.masked {
			e.Mask = &backend.Mask{Keep: 0.5, Restrict: of.restrict}
		}
		g, err := s.graphOf(e)
		if err != nil {
			t.Fatal(err)
		}
		x := matrix(of.rows, 5)
		expr, outputs, err := s.express(of, x)
		if err != nil {
			t.Fatal(err)
		}
		program, places, err := gorgonia.CompileFunction(expr, expr.Inputs(), outputs)
		if err != nil {
			t.Fatal(err)
		}
		tape := gorgonia.NewTapeMachine(expr, gorgonia.WithPrecompiled(program, places))
		for b := range 2 {
			if err := s.batch(g, e, b); err != nil {
				t.Fatal(err)
			}
			var want [][]float32
			for _, v := range s.params {
				want = append(want, slices.Clone(floats(v.grad)))
				clear(floats(v.grad))
			}
			loss := s.loss
			copy(floats(x), g.x)
			if err := tape.RunAll(); err != nil {
				t.Fatal(err)
			}
			tape.Reset()
			if s.loss != loss || loss == 0 {
				t.Errorf("%+v, mini-batch %d: loss %v, the tape machine's is %v", of, b, loss, s.loss)
			}
			for i, v := range s.params {
				if tapes := floats(v.grad); !slices.Equal(tapes, want[i]) {
					t.Errorf("%+v, mini-batch %d: gradient %d is %v, the tape machine's %v", of, b, i, want[i], tapes)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkEpoch is an epoch of 2,000 rows, 512 → 128 → 100, for both backends and both products, on one thread.
func BenchmarkEpoch(b *testing.B) {
	p := backend.Problem{
		Train:  random(2000, 512, 100),
		Head:   head.Bottleneck(512, 128, 100, 1),
		Losses: []string{"ce"},
		Batch:  128,
	}
	gemms := map[string]head.GEMM{"gonum": head.Gonum{}}
	if _, err := blas.Load(); err == nil {
		gemms["openblas"] = blas.Best(slog.New(slog.NewTextHandler(io.Discard, nil)), 1)
	}
	for name, gemm := range gemms {
		for _, which := range []backend.Backend{backend.Go{GEMM: gemm}, Backend{GEMM: gemm}} {
			for _, masked := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%s/masked=%v", which.Name(), name, masked), func(b *testing.B) {
					s, err := which.Open(p)
					if err != nil {
						b.Fatal(err)
					}
					defer s.Close()
					e := backend.EpochPlan{Rows: data.Rows(2000), Batch: 128, LR: 0.01, Momentum: 0.9}
					if masked {
						e.Mask = &backend.Mask{Keep: 0.5, Restrict: true}
					}
					for b.Loop() {
						if _, err := s.Epoch(e); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(2000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
				})
			}
		}
	}
}
