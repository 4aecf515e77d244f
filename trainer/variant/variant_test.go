package variant

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
)

const (
	testD, testK, testWidth = 5, 3, 6
	testBatch               = 7
)

func rows(n int, seed uint64) *data.Set {
	src := philox.Source{Stream: philox.Stream{Seed: seed}}
	s := &data.Set{D: testD, K: testK}
	for range n {
		top, y := math.Inf(-1), int32(0)
		for j := range testD {
			v := 4*src.Float64() - 2
			s.X = append(s.X, float32(v))
			if j < testK && v > top {
				top, y = v, int32(j)
			}
		}
		s.Y = append(s.Y, y)
	}
	return s
}

func open(t *testing.T, method string) *Session {
	t.Helper()
	h := head.FreshLinear(testD, testK, 1)
	if method == Variational {
		h = head.Bottleneck(testD, testWidth, testK, 1)
	}
	p := backend.Problem{Train: rows(60, 1), Eval: []*data.Set{rows(200, 2)}, Head: h, Losses: []string{"ce"},
		Batch: testBatch}
	s, err := Open(p, Config{Method: method, Width: testWidth, Seed: 3, KL: 0.2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// numbers copies parameters as float64.
func numbers(p [][]float32) (out [][]float64) {
	for _, v := range p {
		var d []float64
		for _, x := range v {
			d = append(d, float64(x))
		}
		out = append(out, d)
	}
	return out
}

// affine is W·x + b.
func affine(w, b, x []float64) []float64 {
	out := slices.Clone(b)
	for i := range out {
		for j, v := range x {
			out[i] += w[i*len(x)+j] * v
		}
	}
	return out
}

func crossEntropy(z []float64, y int32) float64 {
	var sum float64
	for _, v := range z {
		sum += math.Exp(v)
	}
	return math.Log(sum) - z[y]
}

// slowLatent is the definition of the variational loss.
func slowLatent(p [][]float64, x [][]float64, y []int32, noise []float32, kl float64) float64 {
	var sum float64
	for r := range x {
		mu, s := affine(p[0], p[1], x[r]), affine(p[2], p[3], x[r])
		z := make([]float64, len(mu))
		for j := range mu {
			z[j] = math.Max(0, mu[j]+math.Exp(s[j]/2)*float64(noise[r*len(mu)+j]))
			sum += kl / 2 * (mu[j]*mu[j] + math.Exp(s[j]) - 1 - s[j])
		}
		sum += crossEntropy(affine(p[4], p[5], z), y[r])
	}
	return sum / float64(len(x))
}

// slowBalance is the definition of the balanced loss; m is K×width.
func slowBalance(p [][]float64, x [][]float64, y []int32, m []float32) float64 {
	count, present := map[int32]float64{}, 0.
	for _, label := range y {
		if count[label]++; count[label] == 1 {
			present++
		}
	}
	var sum float64
	for r := range x {
		h, norm := affine(p[2], p[3], x[r]), 0.
		for j, v := range h {
			h[j] = math.Max(0, v)
			norm += h[j] * h[j]
		}
		e := make([]float64, testK)
		for k := range e {
			for j, v := range h {
				e[k] += v / math.Sqrt(norm) * float64(m[k*len(h)+j])
			}
			if c := count[int32(k)]; c > 0 {
				e[k] *= math.Sqrt(float64(len(y)) / present / c)
			}
		}
		lambda := p[4][0]
		sum += lambda*crossEntropy(affine(p[0], p[1], x[r]), y[r]) + (1-lambda)*crossEntropy(e, y[r])
	}
	return sum / float64(len(x))
}

// TestGradients: value and gradients of a mini-batch against the definition in float64 and its differences.
func TestGradients(t *testing.T) {
	for _, method := range []string{Variational, Balanced} {
		s := open(t, method)
		plan := backend.EpochPlan{Rows: data.Rows(testBatch), Batch: testBatch}
		x32, n := s.mini.Load(plan, 0)
		y := s.p.Train.Y[:n]
		got, err := s.net.loss(s.mini, x32, y, 0)
		if err != nil {
			t.Fatal(err)
		}
		var x [][]float64
		for r := range n {
			x = append(x, numbers([][]float32{x32[r*testD : (r+1)*testD]})[0])
		}
		at := numbers(s.net.params())
		value := func() float64 {
			if l, ok := s.net.(*latent); ok {
				return slowLatent(at, x, y, l.noise, l.kl)
			}
			return slowBalance(at, x, y, s.net.(*balance).simplex)
		}
		if want := value(); math.Abs(got-want) > 1e-5 {
			t.Errorf("%s: loss %v, want %v", method, got, want)
		}
		checked := 0
		for i, g := range s.net.grads() {
			for j := range g {
				const step = 1e-5
				was := at[i][j]
				at[i][j] = was + step
				up := value()
				at[i][j] = was - step
				want := (up - value()) / (2 * step)
				at[i][j] = was
				checked++
				if math.Abs(float64(g[j])-want) > 2e-5 {
					t.Errorf("%s: gradient %d of tensor %d is %v, want %v", method, j, i, g[j], want)
				}
			}
		}
		if checked < 50 {
			t.Errorf("%s: %d gradients were checked", method, checked)
		}
	}
}

// TestSimplex: columns of M have length 1 and the cosine −1/(K − 1) to each other.
func TestSimplex(t *testing.T) {
	const k, width = 4, 9
	m := simplex(k, width, 5)
	for a := range k {
		for b := range k {
			var dot float64
			for j := range width {
				dot += float64(m[a*width+j]) * float64(m[b*width+j])
			}
			want := -1. / (k - 1)
			if a == b {
				want = 1
			}
			if math.Abs(dot-want) > 1e-6 {
				t.Errorf("columns %d and %d: %v, want %v", a, b, dot, want)
			}
		}
	}
}

// TestServed: what is served is layers with ReLU that say what the definition says at the mean of the noise, or with
// the mean norm; λ makes the confidence the accuracy.
func TestServed(t *testing.T) {
	for _, method := range []string{Variational, Balanced} {
		s := open(t, method)
		for range 30 {
			plan := backend.EpochPlan{Rows: data.Rows(s.p.Train.N()), Batch: testBatch, LR: 0.05, Momentum: 0.9}
			if _, err := s.Epoch(plan); err != nil {
				t.Fatal(err)
			}
		}
		st, err := s.State()
		if err != nil {
			t.Fatal(err)
		}
		h := s.Served(st.Params)
		if err := h.Check(); err != nil {
			t.Fatal(err)
		}
		m, err := s.Measure(0, backend.Weights{})
		if err != nil || m.Accuracy < 0.8 {
			t.Errorf("%s: %+v, %v", method, m, err)
		}
		p, row := numbers(s.net.params()), numbers([][]float32{s.p.Train.X[:testD]})[0]
		got := head.NewPass(h, 1, head.Gonum{}).Forward(h, s.p.Train.X[:testD], 1)
		var want []float64
		if method == Variational {
			z := affine(p[0], p[1], row)
			for j := range z {
				z[j] = math.Max(0, z[j])
			}
			want = affine(p[4], p[5], z)
		} else {
			want = affine(p[0], p[1], row)
			u, lambda, m := affine(p[2], p[3], row), p[4][0], s.net.(*balance).simplex
			for k := range want {
				want[k] *= lambda
				for j, v := range u {
					want[k] += (1 - lambda) * math.Max(0, v) / p[4][1] * float64(m[k*testWidth+j])
				}
			}
			on, err := s.Measure(backend.TrainSet, backend.Weights{})
			if err != nil || lambda < 1 && math.Abs(on.Confidence-on.Accuracy) > 0.03 {
				t.Errorf("λ %v: confidence %v, accuracy %v, %v", lambda, on.Confidence, on.Accuracy, err)
			}
		}
		for k := range want {
			if math.Abs(want[k]-float64(got[k])) > 1e-4 {
				t.Errorf("%s: logits %v, want %v", method, got, want)
			}
		}
	}
}

// TestResumed: a state put into a new session goes on with the same bits.
func TestResumed(t *testing.T) {
	for _, method := range []string{Variational, Balanced} {
		a, b := open(t, method), open(t, method)
		plan := backend.EpochPlan{Rows: data.Rows(a.p.Train.N()), Batch: testBatch, LR: 0.1, Momentum: 0.9}
		epoch := func(s *Session) {
			if _, err := s.Epoch(plan); err != nil {
				t.Fatal(err)
			}
		}
		epoch(a)
		st, err := a.State()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.SetState(st); err != nil {
			t.Fatal(err)
		}
		epoch(a)
		epoch(b)
		var text [2]bytes.Buffer
		for i, s := range []*Session{a, b} {
			for _, p := range s.net.params() {
				for _, v := range p {
					text[i].WriteString(string(rune(math.Float32bits(v) & 0xffff)))
				}
			}
		}
		if !bytes.Equal(text[0].Bytes(), text[1].Bytes()) {
			t.Errorf("%s: a resumed training differs", method)
		}
		st.Params = st.Params[1:]
		if err := b.SetState(st); err == nil {
			t.Errorf("%s: a state of another shape is taken", method)
		}
	}
}

// TestRefused: heads, widths and methods that do not fit.
func TestRefused(t *testing.T) {
	p := backend.Problem{Train: rows(9, 1), Head: head.FreshLinear(testD, testK, 1), Losses: []string{"ce"}, Batch: 3}
	for want, cfg := range map[string]Config{
		"a head of 1 layers, allowed 2":           {Method: Variational},
		"width 2 for 3 classes, allowed at least": {Method: Balanced, Width: 2},
		`method "x", allowed`:                     {Method: "x"},
	} {
		if _, err := Open(p, cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
}
