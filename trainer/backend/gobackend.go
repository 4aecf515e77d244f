package backend

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/loss"
	"github.com/plumbline/plumbline/trainer/optim"
	"github.com/plumbline/plumbline/trainer/philox"
)

// Go is the reference backend: float32 on the CPU, with the losses of package loss.
type Go struct {
	// GEMM multiplies matrices; nil means head.Gonum.
	GEMM head.GEMM
}

// Name implements [Backend].
func (Go) Name() string { return "go" }

// Open implements [Backend].
func (g Go) Open(p Problem) (Session, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s := &goSession{p: p, head: p.Head.Clone(), view: p.Head.Clone(), grad: p.Head.Clone()}
	for _, text := range p.Losses {
		l, err := loss.Parse(text)
		if err != nil {
			return nil, err
		}
		s.losses = append(s.losses, l)
	}
	gemm := g.GEMM
	if gemm == nil {
		gemm = head.Gonum{}
	}
	s.pass = head.NewPass(p.Head, max(p.Batch, measureRows), gemm)
	for _, w := range p.Head.Params() {
		s.velocity = append(s.velocity, make([]float32, len(w)))
	}
	for _, l := range p.Head.Layers {
		s.masks = append(s.masks, make([]uint8, len(l.W)))
	}
	n := p.Train.N()
	s.right, s.seen = make([]int32, n), make([]int32, n)
	s.x, s.y, s.y2 = make([]float32, p.Batch*p.Train.D), make([]int32, p.Batch), make([]int32, p.Batch)
	s.chunk = make([]float32, max(p.Batch, measureRows)*p.Train.D)
	s.history, s.grad2 = make([]float64, p.Batch), make([]float32, p.Batch*p.Train.K)
	return s, nil
}

// measureRows is how many rows a measurement takes at a time.
const measureRows = 1024

type goSession struct {
	p           Problem
	head        *head.Head
	view, grad  *head.Head // the weights as a batch sees them; gradients
	velocity    [][]float32
	masks       [][]uint8
	losses      []*loss.Loss
	pass        *head.Pass
	right, seen []int32

	x       []float32
	chunk   []float32 // rows of a measurement, or mixup's partners
	y, y2   []int32
	history []float64
	grad2   []float32
}

func (s *goSession) Epoch(e Epoch) (EpochResult, error) {
	if err := e.Check(s.p); err != nil {
		return EpochResult{}, err
	}
	opt := optim.SGD{LR: e.LR, Momentum: e.Momentum, WeightDecay: e.WeightDecay, Decoupled: e.Decoupled, Nesterov: e.Nesterov}
	var sum float64
	for b := range data.Batches(len(e.Rows), e.Batch) {
		v, n, err := s.batch(e, b)
		if err != nil {
			return EpochResult{}, fmt.Errorf("mini-batch %d: %w", b, err)
		}
		sum += v * float64(n)
		grads := s.grad.Params()
		for i, w := range s.head.Params() {
			opt.Step(w, grads[i], s.velocity[i])
		}
	}
	return EpochResult{Loss: sum / float64(len(e.Rows)), Rows: len(e.Rows)}, nil
}

// batch fills grad and returns the loss and the number of rows.
func (s *goSession) batch(e Epoch, b int) (float64, int, error) {
	rows := e.Rows[b*e.Batch : min((b+1)*e.Batch, len(e.Rows))]
	n := len(rows)
	s.gather(rows)
	lambda := float32(1)
	if e.Mix != nil {
		lambda = e.Mix.Lambda[b]
		s.mix(e.Mix.Partner[b*e.Batch:b*e.Batch+n], lambda)
	}
	h := s.head
	if e.Mask != nil {
		h = s.masked(e.Mask, uint32(b))
	}
	x := s.x[:n*s.p.Train.D]
	z := s.pass.Forward(h, x, n)
	v, err := s.lossOf(e, z, n, rows, lambda)
	if err != nil {
		return 0, 0, err
	}
	s.pass.Backward(h, s.grad, x, n)
	if e.Mask != nil && e.Mask.Restrict {
		for l, mask := range s.masks {
			for i, m := range mask {
				s.grad.Layers[l].W[i] *= float32(m)
			}
		}
	}
	return v, n, nil
}

func (s *goSession) gather(rows []int32) {
	s.p.Train.Gather(s.x[:len(rows)*s.p.Train.D], rows)
	for i, r := range rows {
		s.y[i] = s.p.Train.Y[r]
		s.history[i] = 0
		if s.seen[r] > 0 {
			s.history[i] = float64(s.right[r]) / float64(s.seen[r])
		}
	}
}

func (s *goSession) mix(partner []int32, lambda float32) {
	other := s.chunk[:len(partner)*s.p.Train.D]
	s.p.Train.Gather(other, partner)
	for i, v := range other {
		s.x[i] = lambda*s.x[i] + (1-lambda)*v
	}
	for i, r := range partner {
		s.y2[i] = s.p.Train.Y[r]
	}
}

// masked returns the weights under the masks of a mini-batch.
func (s *goSession) masked(m *Mask, step uint32) *head.Head {
	for l, mask := range s.masks {
		philox.Stream{Seed: m.Seed, Purpose: philox.Mask, A: uint32(l), B: m.FirstStep + step}.Bernoulli(mask, m.Keep)
		from, to := s.head.Layers[l], s.view.Layers[l]
		for i, w := range from.W {
			to.W[i] = w * float32(mask[i])
		}
		copy(to.B, from.B)
	}
	return s.view
}

// lossOf evaluates the loss, puts its gradient where Backward takes it, and notes which rows were right.
func (s *goSession) lossOf(e Epoch, z []float32, n int, rows []int32, lambda float32) (float64, error) {
	l, g := s.losses[e.Loss], s.pass.Grad(n)
	b := loss.Batch{N: n, K: s.p.Train.K, Y: s.y[:n], Correct: s.history[:n], CDF: s.p.CDF}
	if err := diverged(z); err != nil {
		return 0, err
	}
	v, err := l.Eval32(z, b, g)
	if err != nil {
		return 0, err
	}
	if e.Mix != nil {
		b.Y = s.y2[:n]
		v2, err := l.Eval32(z, b, s.grad2[:len(g)])
		if err != nil {
			return 0, err
		}
		for i, g2 := range s.grad2[:len(g)] {
			g[i] = lambda*g[i] + (1-lambda)*g2
		}
		v = float64(lambda)*v + (1-float64(lambda))*v2
	}
	for i, r := range rows {
		s.seen[r]++
		if argmax(z[i*b.K:(i+1)*b.K]) == s.p.Train.Y[r] {
			s.right[r]++
		}
	}
	return v, nil
}

func diverged(z []float32) error {
	for _, v := range z {
		if d := v - v; d != 0 {
			return fmt.Errorf("logit %v: %w", v, ErrDiverged)
		}
	}
	return nil
}

func argmax(z []float32) int32 {
	best := 0
	for k, v := range z {
		if v > z[best] {
			best = k
		}
	}
	return int32(best)
}

// each calls f with the logits of chunks of a set.
func (s *goSession) each(set int, w Weights, f func(from int, z []float32)) (*data.Set, error) {
	rows := s.p.Train
	if set != TrainSet {
		if set < 0 || set >= len(s.p.Eval) {
			return nil, fmt.Errorf("set %d, allowed %d..%d", set, TrainSet, len(s.p.Eval)-1)
		}
		rows = s.p.Eval[set]
	}
	h := s.head
	switch {
	case w.Mask != nil:
		h = s.masked(w.Mask, 0)
	case w.Scale != 0 && w.Scale != 1:
		h = s.head.Scaled(w.Scale)
	}
	for from := 0; from < rows.N(); from += measureRows {
		n := min(measureRows, rows.N()-from)
		z := s.pass.Forward(h, rows.Chunk(s.chunk, from, n), n)
		if err := diverged(z); err != nil {
			return nil, err
		}
		f(from, z)
	}
	return rows, nil
}

func (s *goSession) Measure(set int, w Weights) (Measure, error) {
	var m Measure
	k := s.p.Head.K()
	y := s.p.Train.Y
	if set >= 0 && set < len(s.p.Eval) {
		y = s.p.Eval[set].Y
	}
	rows, err := s.each(set, w, func(from int, z []float32) {
		for i := 0; i < len(z)/k; i++ {
			row := z[i*k : (i+1)*k]
			top := argmax(row)
			var rest float64
			for j, v := range row {
				if int32(j) != top {
					rest += math.Exp(float64(v) - float64(row[top]))
				}
			}
			label := y[from+i]
			m.Confidence += 1 / (1 + rest)
			m.NLL += math.Log1p(rest) + float64(row[top]) - float64(row[label])
			if label == top {
				m.Accuracy++
			}
		}
	})
	if err != nil {
		return Measure{}, err
	}
	m.N = rows.N()
	n := float64(m.N)
	m.NLL, m.Accuracy, m.Confidence = m.NLL/n, m.Accuracy/n, m.Confidence/n
	return m, nil
}

func (s *goSession) Logits(set int, w Weights, dst []float32) error {
	k := s.p.Head.K()
	_, err := s.each(set, w, func(from int, z []float32) { copy(dst[from*k:], z) })
	return err
}

func copies[T any](in [][]T) [][]T {
	out := make([][]T, len(in))
	for i, v := range in {
		out[i] = append([]T(nil), v...)
	}
	return out
}

func (s *goSession) State() (*State, error) {
	return &State{Params: copies(s.head.Params()), Velocity: copies(s.velocity), Right: append([]int32(nil), s.right...),
		Seen: append([]int32(nil), s.seen...)}, nil
}

func (s *goSession) SetState(st *State) error {
	if err := st.Check(s.p); err != nil {
		return err
	}
	for i, w := range s.head.Params() {
		copy(w, st.Params[i])
		copy(s.velocity[i], st.Velocity[i])
	}
	copy(s.right, st.Right)
	copy(s.seen, st.Seen)
	return nil
}

func (s *goSession) Close() error { return nil }
