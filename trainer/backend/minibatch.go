package backend

import (
	"fmt"

	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/loss"
)

// MiniBatch is the host's part of a step, for backends whose rows come from host memory: it gathers rows, mixes them,
// evaluates losses of package loss, and keeps the history of crl.
type MiniBatch struct {
	// Right and Seen are those of State.
	Right, Seen []int32
	// Threads gather a mini-batch of many values that lie in memory; 0 means 1.
	Threads int

	p       Problem
	losses  []*loss.Loss
	x       []float32
	other   []float32 // mixup's partners
	y, y2   []int32
	history []float64
	grad2   []float32

	// the mini-batch that was loaded last
	rows   []int32
	loss   int
	mixed  bool
	lambda float32
}

// NewMiniBatch makes room for mini-batches of p.
func NewMiniBatch(p Problem) (*MiniBatch, error) {
	n := p.Train.N()
	m := &MiniBatch{
		p:       p,
		Right:   make([]int32, n),
		Seen:    make([]int32, n),
		y:       make([]int32, p.Batch),
		y2:      make([]int32, p.Batch),
		history: make([]float64, p.Batch),
		grad2:   make([]float32, p.Batch*p.Train.K),
	}
	for _, text := range p.Losses {
		l, err := loss.Parse(text)
		if err != nil {
			return nil, err
		}
		m.losses = append(m.losses, l)
	}
	return m, nil
}

// Load gathers mini-batch b of a checked epoch and returns its features, n×D, valid until the next Load.
func (m *MiniBatch) Load(e EpochPlan, b int) (x []float32, n int) {
	if m.x == nil {
		m.x = make([]float32, m.p.Batch*m.p.Train.D)
	}
	n = m.LoadTo(m.x, e, b)
	return m.x[:n*m.p.Train.D], n
}

// LoadTo is Load with memory for the features, of at least the batch's rows.
func (m *MiniBatch) LoadTo(x []float32, e EpochPlan, b int) (n int) {
	m.rows = e.Rows[b*e.Batch : min((b+1)*e.Batch, len(e.Rows))]
	n = len(m.rows)
	m.loss, m.mixed, m.lambda = e.Loss, e.Mix != nil, 1
	x = x[:n*m.p.Train.D]
	m.gather(x, m.rows)
	for i, r := range m.rows {
		m.y[i] = m.p.Train.Y[r]
		m.history[i] = 0
		if m.Seen[r] > 0 {
			m.history[i] = float64(m.Right[r]) / float64(m.Seen[r])
		}
	}
	if m.mixed {
		m.lambda = e.Mix.Lambda[b]
		m.mix(x, e.Mix.Partner[b*e.Batch:b*e.Batch+n])
	}
	return n
}

func (m *MiniBatch) gather(x []float32, rows []int32) {
	s := m.p.Train
	if s.Stored != nil || m.Threads <= 1 {
		s.Gather(x, rows)
		return
	}
	ranges(m.Threads, len(rows), s.D, func(from, to int) { s.Gather(x[from*s.D:to*s.D], rows[from:to]) })
}

func (m *MiniBatch) mix(x []float32, partner []int32) {
	if m.other == nil {
		m.other = make([]float32, m.p.Batch*m.p.Train.D)
	}
	other := m.other[:len(x)]
	m.gather(other, partner)
	for i, v := range other {
		x[i] = m.lambda*x[i] + (1-m.lambda)*v
	}
	for i, r := range partner {
		m.y2[i] = m.p.Train.Y[r]
	}
}

// Loss evaluates the loss of the loaded mini-batch at logits z, n×K, overwrites grad with its gradient, and notes which
// rows were right.
func (m *MiniBatch) Loss(z, grad []float32) (float64, error) {
	n, k, l := len(m.rows), m.p.Train.K, m.losses[m.loss]
	b := loss.Batch{N: n, K: k, Y: m.y[:n], Correct: m.history[:n], CDF: m.p.CDF}
	v, err := l.Eval32(z, b, grad)
	if err != nil {
		if d := diverged(z); d != nil {
			return 0, d
		}
		return 0, err
	}
	if m.mixed {
		b.Y = m.y2[:n]
		second := m.grad2[:len(grad)]
		v2, err := l.Eval32(z, b, second)
		if err != nil {
			return 0, err
		}
		for i, g := range second {
			grad[i] = m.lambda*grad[i] + (1-m.lambda)*g
		}
		v = float64(m.lambda)*v + (1-float64(m.lambda))*v2
	}
	top := l.Top()
	for i, r := range m.rows {
		m.Seen[r]++
		if top[i] == m.p.Train.Y[r] {
			m.Right[r]++
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

// rowsOf is a set of a problem by its place.
func (p Problem) rowsOf(set int) (*data.Set, error) {
	if set == TrainSet {
		return p.Train, nil
	}
	if set < 0 || set >= len(p.Eval) {
		return nil, fmt.Errorf("set %d, allowed %d..%d", set, TrainSet, len(p.Eval)-1)
	}
	return p.Eval[set], nil
}

// gemmOr is g, or gonum where that is nil.
func gemmOr(g head.GEMM) head.GEMM {
	if g == nil {
		return head.Gonum{}
	}
	return g
}
