package gorgonia

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

type session struct {
	p      backend.Problem
	mini   *backend.MiniBatch
	eval   *backend.Evaluator
	graphs map[shape]*graph

	// head has the parameters: the memory of the values of params, which are in the order of head.Head.Params.
	head     *head.Head
	params   []valueGrad
	values   []gorgonia.ValueGrad // params
	velocity [][]float32

	rows int     // of the mini-batch, as all ops see it
	loss float64 // what it was, before the graph rounds it
	err  error   // what it met, before the machine wraps it
}

func newSession(p backend.Problem, gemm head.GEMM) (*session, error) {
	mini, err := backend.NewMiniBatch(p)
	if err != nil {
		return nil, err
	}
	mini.Threads = backend.Threads(gemm)
	s := &session{
		p:      p,
		mini:   mini,
		eval:   backend.NewEvaluator(p, gemm),
		graphs: map[shape]*graph{},
		head:   p.Head.Clone(),
	}
	for _, l := range s.head.Layers {
		s.add(l.W, l.Out, l.In)
		s.add(l.B, l.Out)
	}
	return s, nil
}

// add makes a parameter of memory.
func (s *session) add(w []float32, shape ...int) {
	of := func(v []float32) *tensor.Dense {
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(v))
	}
	v := valueGrad{of(w), of(make([]float32, len(w)))}
	s.params, s.values = append(s.params, v), append(s.values, v)
	s.velocity = append(s.velocity, make([]float32, len(w)))
}

// Epoch implements [backend.Session].
func (s *session) Epoch(e backend.EpochPlan) (backend.EpochResult, error) {
	if err := e.Check(s.p); err != nil {
		return backend.EpochResult{}, err
	}
	g, err := s.graphOf(e)
	if err != nil {
		return backend.EpochResult{}, fmt.Errorf("gorgonia: graph: %w", err)
	}
	var solver gorgonia.Solver = newStep(e, s.velocity, s.mini.Threads)
	var sum float64
	for b := range data.Batches(len(e.Rows), e.Batch) {
		if err := e.Stopped(); err != nil {
			return backend.EpochResult{}, err
		}
		if err := s.batch(g, e, b); err != nil {
			return backend.EpochResult{}, fmt.Errorf("mini-batch %d: %w", b, err)
		}
		sum += s.loss * float64(s.rows)
		if err := solver.Step(s.values); err != nil {
			return backend.EpochResult{}, fmt.Errorf("mini-batch %d: gorgonia: %w", b, err)
		}
	}
	return backend.EpochResult{Loss: sum / float64(len(e.Rows)), Rows: len(e.Rows)}, nil
}

func (s *session) graphOf(e backend.EpochPlan) (*graph, error) {
	of := shape{rows: e.Batch, masked: e.Mask != nil}
	of.restrict = of.masked && e.Mask.Restrict
	if g := s.graphs[of]; g != nil {
		return g, nil
	}
	g, err := s.newGraph(of)
	if err != nil {
		return nil, err
	}
	s.graphs[of] = g
	return g, nil
}

// lossOf is the loss of the rows of the mini-batch.
func (s *session) lossOf(z, grad []float32) (float64, error) {
	s.loss, s.err = s.mini.Loss(z, grad)
	return s.loss, s.err
}

// batch runs the graph on a mini-batch.
func (s *session) batch(g *graph, e backend.EpochPlan, b int) error {
	s.rows, s.err = s.mini.LoadTo(g.x, e, b), nil
	if e.Mask != nil {
		s.eval.Masks(e.Mask, uint32(b))
	}
	err := g.vm.RunAll()
	g.vm.Reset()
	if s.err != nil {
		return s.err
	}
	if err != nil {
		return fmt.Errorf("gorgonia: %w", err)
	}
	return nil
}

// Measure implements [backend.Session].
func (s *session) Measure(set int, w backend.Weights) (backend.Measurement, error) {
	return s.eval.Measure(s.head, set, w)
}

// Logits implements [backend.Session].
func (s *session) Logits(set int, w backend.Weights, dst []float32) error {
	return s.eval.Logits(s.head, set, w, dst)
}

// State implements [backend.Session].
func (s *session) State() (*backend.TrainingState, error) {
	st := &backend.TrainingState{Right: append([]int32(nil), s.mini.Right...),
		Seen: append([]int32(nil), s.mini.Seen...)}
	for i, w := range s.head.Params() {
		st.Params = append(st.Params, append([]float32(nil), w...))
		st.Velocity = append(st.Velocity, append([]float32(nil), s.velocity[i]...))
	}
	return st, nil
}

// SetState implements [backend.Session].
func (s *session) SetState(st *backend.TrainingState) error {
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

// Close implements [backend.Session].
func (s *session) Close() error {
	var errs []error
	for _, g := range s.graphs {
		errs = append(errs, g.vm.Close())
	}
	s.graphs = nil
	return errors.Join(errs...)
}
