package backend_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/loss"
	"github.com/plumbline/plumbline/trainer/optim"
	"github.com/plumbline/plumbline/trainer/philox"
)

func rows(n, d, k int) *data.Set {
	src := philox.Source{Stream: philox.Stream{Seed: 5}}
	s := &data.Set{D: d, K: k}
	for range n {
		for range d {
			s.X = append(s.X, float32(2*src.Float64()-1))
		}
		s.Y = append(s.Y, int32(src.Below(uint32(k))))
	}
	return s
}

// TestEpochByHand: an epoch is, mini-batch after mini-batch, the loss's gradient through x, the masks' words and a step
// of the optimiser.
func TestEpochByHand(t *testing.T) {
	const n, d, k, batch = 20, 4, 3, 8
	for _, restrict := range []bool{false, true} {
		p := backend.Problem{
			Train:  rows(n, d, k),
			Head:   head.FreshLinear(d, k, 1),
			Losses: []string{"focal"},
			Batch:  batch,
		}
		e := backend.EpochPlan{
			Rows:        data.Shuffled(data.Rows(n), 1, 0),
			Batch:       batch,
			LR:          0.3,
			Momentum:    0.5,
			WeightDecay: 0.1,
			Mask:        &backend.Mask{Keep: 0.4, Seed: 77, FirstStep: 5, Restrict: restrict},
		}
		s, err := backend.Go{}.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Epoch(e); err != nil {
			t.Fatal(err)
		}
		got, err := s.State()
		if err != nil {
			t.Fatal(err)
		}
		want := byHand(t, p, e)
		for i := range want {
			for j, w := range want[i] {
				if g := got.Params[i][j]; g-w > 1e-5 || w-g > 1e-5 {
					t.Errorf("restrict %v: tensor %d, value %d: %v, want %v", restrict, i, j, g, w)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func byHand(t *testing.T, p backend.Problem, e backend.EpochPlan) [][]float32 {
	l, err := loss.Parse(p.Losses[0])
	if err != nil {
		t.Fatal(err)
	}
	d, k := p.Head.D(), p.Head.K()
	w, b := append([]float32(nil), p.Head.Layers[0].W...), append([]float32(nil), p.Head.Layers[0].B...)
	vw, vb := make([]float32, len(w)), make([]float32, len(b))
	for s := 0; s*e.Batch < len(e.Rows); s++ {
		batch := e.Rows[s*e.Batch : min((s+1)*e.Batch, len(e.Rows))]
		words := philox.Stream{Seed: e.Mask.Seed, Purpose: philox.Mask, A: 0, B: e.Mask.FirstStep + uint32(s)}
		kept := func(i int) float32 {
			if i := uint32(i); uint64(words.Block4(i / 4)[i%4]) < philox.Threshold(e.Mask.Keep) {
				return 1
			}
			return 0
		}
		z, y := make([]float64, len(batch)*k), make([]int32, len(batch))
		for i, r := range batch {
			y[i] = p.Train.Y[r]
			for c := range k {
				z[i*k+c] = float64(b[c])
				for j := range d {
					z[i*k+c] += float64(w[c*d+j]*kept(c*d+j)) * float64(p.Train.X[int(r)*d+j])
				}
			}
		}
		g := make([]float64, len(z))
		if _, err := l.Eval(z, loss.Batch{N: len(batch), K: k, Y: y}, g); err != nil {
			t.Fatal(err)
		}
		gw, gb := make([]float32, len(w)), make([]float32, len(b))
		for i, r := range batch {
			for c := range k {
				gb[c] += float32(g[i*k+c])
				for j := range d {
					gw[c*d+j] += float32(g[i*k+c] * float64(p.Train.X[int(r)*d+j]))
				}
			}
		}
		for i := range gw {
			if e.Mask.Restrict {
				gw[i] *= kept(i)
			}
		}
		o := optim.SGD{LR: e.LR, Momentum: e.Momentum, WeightDecay: e.WeightDecay}
		o.Step(w, gw, vw)
		o.Step(b, gb, vb)
	}
	return [][]float32{w, b}
}

func TestOpenRefuses(t *testing.T) {
	for want, edit := range map[string]func(*backend.Problem){
		"batch 0":            func(p *backend.Problem) { p.Batch = 0 },
		"0 losses":           func(p *backend.Problem) { p.Losses = nil },
		`loss "x"`:           func(p *backend.Problem) { p.Losses = []string{"x"} },
		"set 0: no rows":     func(p *backend.Problem) { p.Eval = []*data.Set{{D: 4, K: 3}} },
		"set -1: 4 features": func(p *backend.Problem) { p.Head = head.FreshLinear(5, 3, 1) },
		"row 2: label 9":     func(p *backend.Problem) { p.Train.Y[2] = 9 },
		"head: layer 0":      func(p *backend.Problem) { p.Head.Layers[0].B = nil },
	} {
		p := backend.Problem{Train: rows(6, 4, 3), Head: head.FreshLinear(4, 3, 1), Losses: []string{"ce"}, Batch: 2}
		edit(&p)
		if _, err := (backend.Go{}).Open(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestHistory: crl learns from how often a row was right in earlier epochs.
func TestHistory(t *testing.T) {
	p := backend.Problem{Train: rows(30, 4, 3), Head: head.FreshLinear(4, 3, 1), Losses: []string{"crl"}, Batch: 30}
	s, err := backend.Go{}.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	e := backend.EpochPlan{Rows: data.Rows(30), Batch: 30}
	first, err := s.Epoch(e)
	if err != nil {
		t.Fatal(err)
	}
	if first.Loss != 0 {
		t.Errorf("loss %v before there is a history, want 0", first.Loss)
	}
	second, err := s.Epoch(e)
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Measure(backend.TrainSet, backend.Weights{})
	if err != nil {
		t.Fatal(err)
	}
	var right, seen int32
	for i := range st.Right {
		right, seen = right+st.Right[i], seen+st.Seen[i]
	}
	if second.Loss <= 0 || seen != 60 || float64(right)/60 != m.Accuracy {
		t.Errorf("loss %v, %d of %d right, accuracy %v", second.Loss, right, seen, m.Accuracy)
	}
}

func BenchmarkEpoch(b *testing.B) {
	for _, c := range []struct{ n, d, width, k int }{{5000, 64, 0, 10}, {5000, 64, 64, 10}, {2000, 512, 128, 100}} {
		for _, masked := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dx%d-%d-%d masked=%v", c.n, c.d, c.width, c.k, masked), func(b *testing.B) {
				h := head.FreshLinear(c.d, c.k, 1)
				if c.width > 0 {
					h = head.Bottleneck(c.d, c.width, c.k, 1)
				}
				p := backend.Problem{Train: rows(c.n, c.d, c.k), Head: h, Losses: []string{"ce"}, Batch: 128}
				s, err := backend.Go{}.Open(p)
				if err != nil {
					b.Fatal(err)
				}
				e := backend.EpochPlan{Rows: data.Rows(c.n), Batch: 128, LR: 0.01, Momentum: 0.9, WeightDecay: 5e-4}
				if masked {
					e.Mask = &backend.Mask{Keep: 0.6, Restrict: true}
				}
				for b.Loop() {
					if _, err := s.Epoch(e); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
