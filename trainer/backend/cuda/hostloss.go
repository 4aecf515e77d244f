package cuda

import (
	"fmt"
	"unsafe"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/loss"
)

// hostBuffer has, in pinned memory, what the host needs for a loss that the kernels don't have.
type hostBuffer struct {
	z, grad []float32
	history []float64
	y, y2   []int32
	second  []float32
}

func pinnedOf[T any](s *session, n int) ([]T, error) {
	var one T
	b, err := s.hostAlloc(n * int(unsafe.Sizeof(one)))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), nil
}

func (s *session) openHostBuffer() (err error) {
	h, n, k := &s.hostBuffer, s.p.Batch, s.p.Head.K()
	if h.z != nil {
		return nil
	}
	if h.z, err = pinnedOf[float32](s, n*k); err != nil {
		return err
	}
	if h.grad, err = pinnedOf[float32](s, n*k); err != nil {
		return err
	}
	if h.history, err = pinnedOf[float64](s, n); err != nil {
		return err
	}
	h.y, h.y2, h.second = make([]int32, n), make([]int32, n), make([]float32, n*k)
	return nil
}

// hostStep is a step whose loss and gradient package loss computes: logits come to the host, the gradient goes back.
func (s *session) hostStep(t step, e backend.EpochPlan, b int) (float64, error) {
	h, k := &s.hostBuffer, s.p.Head.K()
	weights, err := s.head(t)
	if err != nil {
		return 0, err
	}
	if err := s.used(t.in.slot); err != nil {
		return 0, err
	}
	r := s.ToHost(unsafe.Pointer(&h.z[0]), s.logits(), uint64(4*t.n*k), s.stream)
	if err := s.check("copy of logits", r); err != nil {
		return 0, err
	}
	r = s.ToHost(unsafe.Pointer(&h.history[0]), s.history, uint64(8*t.n), s.stream)
	if err := s.check("copy of history", r); err != nil {
		return 0, err
	}
	if err := s.sync(); err != nil {
		return 0, err
	}
	v, err := s.hostLoss(t, e, b)
	if err != nil {
		return 0, err
	}
	r = s.ToDevice(s.deltas(), unsafe.Pointer(&h.grad[0]), uint64(4*t.n*k), s.stream)
	if err := s.check("copy of gradients", r); err != nil {
		return 0, err
	}
	err = s.launch(rowHits, eachRow(t.n, k), ptr(s.epoch), num(k), ptr(s.logits()), ptr(s.y), ptr(s.lists.rows.at),
		ptr(s.right), ptr(s.seen))
	if err != nil {
		return 0, err
	}
	return v * float64(t.n), s.tail(t, weights)
}

// hostLoss evaluates the loss of a mini-batch, mixed where the features are.
func (s *session) hostLoss(t step, e backend.EpochPlan, b int) (float64, error) {
	h, k, n := &s.hostBuffer, s.p.Head.K(), t.n
	z, grad := h.z[:n*k], h.grad[:n*k]
	for i, v := range z {
		if d := v - v; d != 0 {
			return 0, fmt.Errorf("row %d: logit %v: %w", i/k, v, backend.ErrDiverged)
		}
	}
	from := b * e.Batch
	for i := range n {
		h.y[i] = s.p.Train.Y[e.Rows[from+i]]
	}
	batch := loss.Batch{N: n, K: k, Y: h.y[:n], Correct: h.history[:n], CDF: s.p.CDF}
	v, err := t.loss.host.Eval32(z, batch, grad)
	if err != nil || e.Mix == nil {
		return v, err
	}
	for i := range n {
		h.y2[i] = s.p.Train.Y[e.Mix.Partner[from+i]]
	}
	batch.Y = h.y2[:n]
	v2, err := t.loss.host.Eval32(z, batch, h.second[:n*k])
	lambda := e.Mix.Lambda[b]
	for i, g := range h.second[:n*k] {
		grad[i] = lambda*grad[i] + (1-lambda)*g
	}
	return float64(lambda)*v + (1-float64(lambda))*v2, err
}
