package backend

import (
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
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
	batch, err := NewMiniBatch(p)
	if err != nil {
		return nil, err
	}
	batch.Threads = Threads(g.GEMM)
	s := &goSession{
		p:       p,
		mini:    batch,
		eval:    NewEvaluator(p, g.GEMM),
		head:    p.Head.Clone(),
		grad:    p.Head.Clone(),
		pass:    head.NewPass(p.Head, p.Batch, gemmOr(g.GEMM)),
		threads: batch.Threads,
	}
	for _, w := range p.Head.Params() {
		s.velocity = append(s.velocity, make([]float32, len(w)))
	}
	return s, nil
}

type goSession struct {
	p          Problem
	mini       *MiniBatch
	eval       *Evaluator
	head, grad *head.Head
	velocity   [][]float32
	pass       *head.Pass
	threads    int
}

func (s *goSession) Epoch(e EpochPlan) (EpochResult, error) {
	if err := e.Check(s.p); err != nil {
		return EpochResult{}, err
	}
	opt := e.SGD()
	var sum float64
	for b := range data.Batches(len(e.Rows), e.Batch) {
		if err := e.Stopped(); err != nil {
			return EpochResult{}, err
		}
		v, n, err := s.batch(e, b)
		if err != nil {
			return EpochResult{}, fmt.Errorf("mini-batch %d: %w", b, err)
		}
		sum += v * float64(n)
		grads := s.grad.Params()
		for i, w := range s.head.Params() {
			if e.Trained > 0 && i >= 2*e.Trained { // a weight and a bias each
				break
			}
			Step(opt, s.threads, w, grads[i], s.velocity[i])
		}
	}
	return EpochResult{Loss: sum / float64(len(e.Rows)), Rows: len(e.Rows)}, nil
}

// batch fills grad and returns the loss and the number of rows.
func (s *goSession) batch(e EpochPlan, b int) (float64, int, error) {
	x, n := s.mini.Load(e, b)
	h := s.head
	if e.Mask != nil {
		h = s.eval.masked(s.head, e.Mask, uint32(b))
	}
	z := s.pass.Forward(h, x, n)
	v, err := s.mini.Loss(z, s.pass.Grad(n))
	if err != nil {
		return 0, 0, err
	}
	s.pass.Backward(h, s.grad, x, n)
	if e.Mask != nil && e.Mask.Restrict {
		for l, mask := range s.eval.masks {
			head.Masked(s.grad.Layers[l].W, s.grad.Layers[l].W, mask)
		}
	}
	return v, n, nil
}

func (s *goSession) Measure(set int, w Weights) (Measurement, error) {
	return s.eval.Measure(s.head, set, w)
}

func (s *goSession) Logits(set int, w Weights, dst []float32) error {
	return s.eval.Logits(s.head, set, w, dst)
}

func copies[T any](in [][]T) [][]T {
	out := make([][]T, len(in))
	for i, v := range in {
		out[i] = append([]T(nil), v...)
	}
	return out
}

func (s *goSession) State() (*TrainingState, error) {
	return &TrainingState{
		Params:   copies(s.head.Params()),
		Velocity: copies(s.velocity),
		Right:    slices.Clone(s.mini.Right),
		Seen:     slices.Clone(s.mini.Seen),
	}, nil
}

func (s *goSession) SetState(st *TrainingState) error {
	if err := st.Check(s.p); err != nil {
		return err
	}
	for i, w := range s.head.Params() {
		copy(w, st.Params[i])
		copy(s.velocity[i], st.Velocity[i])
	}
	copy(s.mini.Right, st.Right)
	copy(s.mini.Seen, st.Seen)
	return nil
}

func (s *goSession) Close() error { return nil }
