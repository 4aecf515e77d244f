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

// layerParams are a layer's parameters as the graph has them.
type layerParams struct {
	w, b *tensor.Dense // In×Out and Out
}

type session struct {
	p      backend.Problem
	mini   *backend.MiniBatch
	eval   *backend.Evaluator
	graphs map[shape]*graph

	params          []layerParams
	values          []gorgonia.ValueGrad // parameters and gradients in the order of head.Head.Params
	grads, velocity [][]float32

	rows int     // of the mini-batch that the loss sees
	loss float64 // what it was, before the graph rounds it
	err  error   // what it met, before the machine wraps it
	view *head.Head
}

// least is the smallest size of a matrix in the graph: gorgonia takes a matrix of one row or column for a vector, and its
// product for another. Rows and columns of zeros are added, whose parameters and gradients stay 0.
const least = 2

func newSession(p backend.Problem, gemm head.GEMM) (*session, error) {
	mini, err := backend.NewMiniBatch(p)
	if err != nil {
		return nil, err
	}
	s := &session{p: p, mini: mini, eval: backend.NewEvaluator(p, gemm), graphs: map[shape]*graph{}, view: p.Head.Clone()}
	for _, l := range p.Head.Layers {
		in, out := max(l.In, least), max(l.Out, least)
		lp := layerParams{matrix(in, out), tensor.New(tensor.WithShape(out), tensor.WithBacking(make([]float32, out)))}
		s.params = append(s.params, lp)
		for _, t := range []*tensor.Dense{lp.w, lp.b} {
			n := t.Shape().TotalSize()
			g := make([]float32, n)
			s.grads, s.velocity = append(s.grads, g), append(s.velocity, make([]float32, n))
			s.values = append(s.values, valueGrad{t, tensor.New(tensor.WithShape(t.Shape()...), tensor.WithBacking(g))})
		}
	}
	for i, w := range p.Head.Params() {
		s.put(i, floats(s.values[i].Value()), w)
	}
	return s, nil
}

// put writes parameter i of a head, or what is shaped like it, as the graph has it: weights transposed.
func (s *session) put(i int, to, from []float32) {
	l := s.p.Head.Layers[i/2]
	if i%2 == 1 {
		copy(to, from)
		return
	}
	transpose(to, max(l.Out, least), from, l.In, l.Out, l.In)
}

// get is the reverse of put.
func (s *session) get(i int, to, from []float32) {
	l := s.p.Head.Layers[i/2]
	if i%2 == 1 {
		copy(to, from)
		return
	}
	transpose(to, l.In, from, max(l.Out, least), l.In, l.Out)
}

// transpose writes the rows×cols matrix from to to as cols×rows; ldTo and ldFrom are the lengths of their rows.
func transpose[T float32 | uint8](to []float32, ldTo int, from []T, ldFrom, rows, cols int) {
	const tile = 16 // of both matrices, in a cache
	for i0 := 0; i0 < rows; i0 += tile {
		for j0 := 0; j0 < cols; j0 += tile {
			for i := i0; i < min(i0+tile, rows); i++ {
				for j := j0; j < min(j0+tile, cols); j++ {
					to[j*ldTo+i] = float32(from[i*ldFrom+j])
				}
			}
		}
	}
}

// Epoch implements [backend.Session].
func (s *session) Epoch(e backend.Epoch) (backend.EpochResult, error) {
	if err := e.Check(s.p); err != nil {
		return backend.EpochResult{}, err
	}
	g, err := s.graphOf(e)
	if err != nil {
		return backend.EpochResult{}, fmt.Errorf("gorgonia: graph: %w", err)
	}
	var solver gorgonia.Solver = newStep(e, s.velocity)
	var sum float64
	for b := range data.Batches(len(e.Rows), e.Batch) {
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

func (s *session) graphOf(e backend.Epoch) (*graph, error) {
	of := shape{rows: max(e.Batch, least), masked: e.Mask != nil}
	of.restrict = of.masked && e.Mask.Restrict
	if g := s.graphs[of]; g != nil {
		return g, nil
	}
	g, err := s.newGraph(of, s.lossOf)
	if err != nil {
		return nil, err
	}
	s.graphs[of] = g
	return g, nil
}

// lossOf is the loss of the rows of the mini-batch; the rows that fill it up have gradient 0.
func (s *session) lossOf(z, grad []float32) (v float64, err error) {
	n := s.rows * s.p.Head.K()
	clear(grad[n:])
	s.loss, s.err = s.mini.Loss(z[:n], grad[:n])
	return s.loss, s.err
}

// batch runs the graph on a mini-batch.
func (s *session) batch(g *graph, e backend.Epoch, b int) error {
	s.rows, s.err = s.load(floats(g.x), e, b), nil
	if e.Mask != nil {
		for l, m := range s.eval.Masks(e.Mask, uint32(b)) {
			s.putMask(l, floats(g.masks[l]), m)
		}
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

// load gathers a mini-batch into the graph's features, of which rows and columns that fill them up are 0.
func (s *session) load(to []float32, e backend.Epoch, b int) int {
	d := s.p.Train.D
	if d >= least {
		n := s.mini.LoadTo(to, e, b)
		clear(to[n*d:])
		return n
	}
	clear(to)
	x, n := s.mini.Load(e, b)
	for i := range n {
		copy(to[i*least:], x[i*d:(i+1)*d])
	}
	return n
}

func (s *session) putMask(l int, to []float32, m []uint8) {
	in := s.p.Head.Layers[l].In
	out := s.p.Head.Layers[l].Out
	transpose(to, max(out, least), m, in, out, in)
}

// current is the head as it is now; valid until the next call.
func (s *session) current() *head.Head {
	for i, w := range s.view.Params() {
		s.get(i, w, floats(s.values[i].Value()))
	}
	return s.view
}

// Measure implements [backend.Session].
func (s *session) Measure(set int, w backend.Weights) (backend.Measure, error) {
	return s.eval.Measure(s.current(), set, w)
}

// Logits implements [backend.Session].
func (s *session) Logits(set int, w backend.Weights, dst []float32) error {
	return s.eval.Logits(s.current(), set, w, dst)
}

// State implements [backend.Session].
func (s *session) State() (*backend.State, error) {
	st := &backend.State{Right: append([]int32(nil), s.mini.Right...), Seen: append([]int32(nil), s.mini.Seen...)}
	for i, w := range s.p.Head.Params() {
		p, v := make([]float32, len(w)), make([]float32, len(w))
		s.get(i, p, floats(s.values[i].Value()))
		s.get(i, v, s.velocity[i])
		st.Params, st.Velocity = append(st.Params, p), append(st.Velocity, v)
	}
	return st, nil
}

// SetState implements [backend.Session].
func (s *session) SetState(st *backend.State) error {
	if err := st.Check(s.p); err != nil {
		return err
	}
	for i := range st.Params {
		s.put(i, floats(s.values[i].Value()), st.Params[i])
		s.put(i, s.velocity[i], st.Velocity[i])
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
