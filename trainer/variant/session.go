package variant

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// Methods.
const (
	Variational = "variational" // of V-TST
	Balanced    = "balanced"    // BalCAL
)

// Config is a method with its settings.
type Config struct {
	Method string
	// KL weighs the divergence of the variational layer, a sum over its units; 0 means one over their number.
	KL float64
	// Width is that of the adaptor of the balanced head; 0 means min(D, 512), at least K.
	Width int
	// Delta is δ: the balance is where the confidence is δ times the accuracy; 0 means 1.
	Delta float64
	// Seed decides the noise of the variational layer, the adaptor's first weights and the simplex.
	Seed uint64
}

// net is a head while it learns. It keeps the last mini-batch.
type net interface {
	// params are the numbers that training changes, in memory of the net; grads those of the last loss, nil for numbers
	// that no gradient changes.
	params() [][]float32
	grads() [][]float32
	// loss runs a mini-batch forward and backward.
	loss(mini *backend.MiniBatch, x []float32, y []int32, step uint32) (float64, error)
	// settle is called after every epoch.
	settle(train *data.Set)
	// head is the network to serve, by parameters.
	head(params [][]float32) *head.Head
}

// Session is a training of a net.
type Session struct {
	p        backend.Problem
	cfg      Config
	net      net
	mini     *backend.MiniBatch
	eval     *backend.Evaluator
	velocity [][]float32
	y        []int32
	step     uint32
}

// Open begins a training. The problem's head is what is learnt: for the variational method two layers, of which the
// first becomes the mean of the latent values; for the balanced one a single layer.
func Open(p backend.Problem, cfg Config, gemm head.GEMM) (*Session, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if gemm == nil {
		gemm = head.Gonum{}
	}
	s := &Session{p: p, cfg: cfg, y: make([]int32, p.Batch)}
	var err error
	switch cfg.Method {
	case Variational:
		s.net, err = newLatent(p, cfg, gemm)
	case Balanced:
		s.net, err = newBalance(p, cfg, gemm)
	default:
		err = fmt.Errorf("method %q, allowed %s, %s", cfg.Method, Variational, Balanced)
	}
	if err != nil {
		return nil, err
	}
	if s.mini, err = backend.NewMiniBatch(p); err != nil {
		return nil, err
	}
	served := p
	served.Head = s.net.head(s.net.params())
	s.eval = backend.NewEvaluator(served, gemm)
	for _, w := range s.net.params() {
		s.velocity = append(s.velocity, make([]float32, len(w)))
	}
	return s, nil
}

// Epoch implements [backend.Session].
func (s *Session) Epoch(e backend.EpochPlan) (backend.EpochResult, error) {
	if err := e.Check(s.p); err != nil {
		return backend.EpochResult{}, err
	}
	if e.Mask != nil || e.Mix != nil || e.Trained != 0 {
		return backend.EpochResult{}, fmt.Errorf("epoch: masks, mixup or frozen layers with method %s", s.cfg.Method)
	}
	opt := e.SGD()
	var sum float64
	for b := range data.Batches(len(e.Rows), e.Batch) {
		if err := e.Stopped(); err != nil {
			return backend.EpochResult{}, err
		}
		x, n := s.mini.Load(e, b)
		for i, r := range e.Rows[b*e.Batch : b*e.Batch+n] {
			s.y[i] = s.p.Train.Y[r]
		}
		v, err := s.net.loss(s.mini, x, s.y[:n], s.step)
		if err != nil {
			return backend.EpochResult{}, fmt.Errorf("mini-batch %d: %w", b, err)
		}
		s.step++
		sum += v * float64(n)
		grads := s.net.grads()
		for i, w := range s.net.params() {
			if grads[i] != nil {
				opt.Step(w, grads[i], s.velocity[i])
			}
		}
	}
	s.net.settle(s.p.Train)
	return backend.EpochResult{Loss: sum / float64(len(e.Rows)), Rows: len(e.Rows)}, nil
}

// Measure implements [backend.Session].
func (s *Session) Measure(set int, w backend.Weights) (backend.Measurement, error) {
	return s.eval.Measure(s.net.head(s.net.params()), set, w)
}

// Logits implements [backend.Session].
func (s *Session) Logits(set int, w backend.Weights, dst []float32) error {
	return s.eval.Logits(s.net.head(s.net.params()), set, w, dst)
}

// State implements [backend.Session]. The number of mini-batches so far, which decides the noise, is the first of the
// parameters.
func (s *Session) State() (*backend.TrainingState, error) {
	st := &backend.TrainingState{
		Params:   [][]float32{{math.Float32frombits(s.step)}},
		Velocity: [][]float32{{0}},
		Right:    slices.Clone(s.mini.Right),
		Seen:     slices.Clone(s.mini.Seen),
	}
	for i, w := range s.net.params() {
		st.Params, st.Velocity = append(st.Params, slices.Clone(w)), append(st.Velocity, slices.Clone(s.velocity[i]))
	}
	return st, nil
}

// SetState implements [backend.Session].
func (s *Session) SetState(st *backend.TrainingState) error {
	now, err := s.State()
	if err != nil {
		return err
	}
	same := func(a, b [][]float32) bool {
		return slices.EqualFunc(a, b, func(x, y []float32) bool { return len(x) == len(y) })
	}
	if !same(st.Params, now.Params) || !same(st.Velocity, now.Velocity) || len(st.Right) != len(now.Right) ||
		len(st.Seen) != len(now.Seen) {
		return fmt.Errorf("state: it is not of a training of this shape")
	}
	s.step = math.Float32bits(st.Params[0][0])
	for i, w := range s.net.params() {
		copy(w, st.Params[i+1])
		copy(s.velocity[i], st.Velocity[i+1])
	}
	copy(s.mini.Right, st.Right)
	copy(s.mini.Seen, st.Seen)
	return nil
}

// Served is the network of the parameters of a state.
func (s *Session) Served(params [][]float32) *head.Head { return s.net.head(params[1:]) }

// Close implements [backend.Session].
func (s *Session) Close() error { return nil }
