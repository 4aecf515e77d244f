package cuda

import (
	"fmt"

	"github.com/plumbline/plumbline/trainer/backend"
)

// session is one training. Its methods run on the device's thread.
type session struct {
	*device
	p      backend.Problem
	direct bool
	losses []*compiled

	sources []*source
	streams bool // whether some features are streamed
	slots   [2]slot
	copies  uintptr
	rows    int // of the largest forward pass

	layers []layer
	size   int // of all parameters with padding, in float32
	// params, grads, velocity and view (weights as a batch sees them) have the same layout, mask a byte a parameter.
	params, grads, velocity, view, mask uint64

	x          uint64
	y, y2      uint64
	history    uint64 // of crl, float64
	values     uint64 // of rows, float64
	around     uint64
	counts     uint64
	beta       uint64
	scores     uint64
	epoch      uint64 // epochParams
	still      uint64 // epochParams of measurements
	total      uint64 // three float64
	right      uint64
	seen       uint64
	cdf        uint64
	lists      lists
	hostBuffer hostBuffer
	graphs     map[graphKey]uintptr
	timing     timing
}

// layer has offsets in params of its weights and biases, and its outputs and their gradients.
type layer struct {
	in, out    int
	w, b       int
	act, delta uint64
}

// align is the padding of tensors in float32: 256 bytes.
const align = 64

// A measurement takes measureRows rows at a time, fewer where one of them has so many features, units or classes that
// an operand would have more than measureNumbers, and never fewer than measureLeast.
const (
	measureRows    = 4096
	measureNumbers = 32 << 20
	measureLeast   = 256
)

// maxParams keeps numbers of parameters within the kernels' int32.
const maxParams = 1 << 30

func padded(n int) int { return (n + align - 1) / align * align }

// allocate takes all memory that training needs, features last.
func (s *session) allocate(featureBytes int64) error {
	s.graphs = map[graphKey]uintptr{}
	if err := s.layOut(); err != nil {
		return err
	}
	if err := s.allocateArrays(); err != nil {
		return err
	}
	if err := s.allocateLayers(); err != nil {
		return err
	}
	if err := s.put(s.cdf, bytesOf(s.p.CDF)); err != nil {
		return err
	}
	if err := s.openLosses(); err != nil {
		return err
	}
	if err := s.putParams(s.params, s.p.Head.Params()); err != nil {
		return err
	}
	if err := s.openSplit(); err != nil {
		return err
	}
	if err := s.openSources(featureBytes); err != nil {
		return err
	}
	return s.openSlots(s.rows)
}

// layOut places the parameters and chooses how many rows a forward pass takes.
func (s *session) layOut() error {
	largest := s.p.Train.N()
	for _, e := range s.p.Eval {
		largest = max(largest, e.N())
	}
	widest := s.p.Train.D
	for _, l := range s.p.Head.Layers {
		s.layers = append(s.layers, layer{in: l.In, out: l.Out, w: s.size, b: s.size + padded(len(l.W))})
		s.size += padded(len(l.W)) + padded(len(l.B))
		widest = max(widest, l.Out)
	}
	if s.size > maxParams {
		return unsupported("%d parameters, allowed 1..%d", s.size, maxParams)
	}
	s.rows = max(s.p.Batch, min(measureRows, largest, max(measureLeast, measureNumbers/widest)))
	return nil
}

// allocateArrays takes the memory of everything but layers, losses and features.
func (s *session) allocateArrays() error {
	bins := len(s.p.CDF)
	for _, c := range s.losses {
		bins = max(bins, int(c.plan.Bins))
	}
	n, batch := s.p.Train.N(), s.p.Batch
	for _, m := range []struct {
		to    *uint64
		what  string
		bytes int
	}{
		{&s.params, "parameters", 4 * s.size},
		{&s.grads, "gradients", 4 * s.size},
		{&s.velocity, "velocities", 4 * s.size},
		{&s.view, "weights", 4 * s.size},
		{&s.mask, "masks", s.size},
		{&s.x, "a batch", 4 * s.rows * s.p.Train.D},
		{&s.y, "labels", 4 * batch},
		{&s.y2, "labels", 4 * batch},
		{&s.history, "history", 8 * batch},
		{&s.values, "values", 8 * 3 * s.rows},
		{&s.around, "quantile", auBytes},
		{&s.counts, "CDF", 8 * bins},
		{&s.cdf, "CDF", 8 * len(s.p.CDF)},
		{&s.beta, "weights of rows", 8 * batch},
		{&s.scores, "scores", 8 * batch},
		{&s.epoch, "epoch", epochBytes},
		{&s.still, "epoch", epochBytes},
		{&s.total, "totals", 24},
		{&s.right, "history", 4 * n},
		{&s.seen, "history", 4 * n},
	} {
		var err error
		if *m.to, err = s.zeroed(m.what, m.bytes); err != nil {
			return err
		}
	}
	return nil
}

// openSplit takes room for the parts of the largest operands of products.
func (s *session) openSplit() error {
	if s.info.Precision != TF32x3 {
		return nil
	}
	n := s.rows * s.p.Train.D
	for _, l := range s.layers {
		n = max(n, s.rows*l.out, l.in*l.out)
	}
	for i := range s.parts {
		var err error
		if s.parts[i], err = s.alloc("parts of operands", 4*n); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) allocateLayers() error {
	// Biases have no masks: all of them are kept.
	ones := make([]byte, s.size)
	for i := range ones {
		ones[i] = 1
	}
	if err := s.put(s.mask, ones); err != nil {
		return err
	}
	for i := range s.layers {
		l := &s.layers[i]
		var err error
		if l.act, err = s.alloc("outputs", 4*s.rows*l.out); err != nil {
			return err
		}
		// Where a logit is not finite nobody writes the row's, and the epoch ends with an error after the sums.
		if l.delta, err = s.zeroed("gradients of outputs", 4*s.p.Batch*l.out); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) openLosses() error {
	for _, c := range s.losses {
		if !c.fused {
			if err := s.openHostBuffer(); err != nil {
				return err
			}
			continue
		}
		var err error
		if c.at, err = s.alloc("loss", planBytes); err != nil {
			return err
		}
		if err := s.put(c.at, bytesOf([]lossPlan{c.plan})); err != nil {
			return err
		}
	}
	return nil
}

// float32At is the address of number i of an array.
func float32At(array uint64, i int) uint64 { return array + 4*uint64(i) }

// tensor is where tensor i of head.Head.Params starts.
func (s *session) tensor(at uint64, i int) uint64 {
	l := s.layers[i/2]
	if i%2 == 0 {
		return float32At(at, l.w)
	}
	return float32At(at, l.b)
}

func (s *session) putParams(at uint64, from [][]float32) error {
	for i, w := range from {
		if err := s.put(s.tensor(at, i), bytesOf(w)); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) getParams(at uint64) ([][]float32, error) {
	var out [][]float32
	for i, w := range s.p.Head.Params() {
		to := make([]float32, len(w))
		if err := s.get(bytesOf(to), s.tensor(at, i)); err != nil {
			return nil, err
		}
		out = append(out, to)
	}
	return out, nil
}

// State implements [backend.Session].
func (s *session) State() (*backend.TrainingState, error) {
	n := s.p.Train.N()
	st := &backend.TrainingState{Right: make([]int32, n), Seen: make([]int32, n)}
	err := s.thread.do(func() (err error) {
		if st.Params, err = s.getParams(s.params); err != nil {
			return err
		}
		if st.Velocity, err = s.getParams(s.velocity); err != nil {
			return err
		}
		if err := s.get(bytesOf(st.Right), s.right); err != nil {
			return err
		}
		return s.get(bytesOf(st.Seen), s.seen)
	})
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return st, nil
}

// SetState implements [backend.Session].
func (s *session) SetState(st *backend.TrainingState) error {
	if err := st.Check(s.p); err != nil {
		return err
	}
	return s.thread.do(func() error {
		if err := s.putParams(s.params, st.Params); err != nil {
			return err
		}
		if err := s.putParams(s.velocity, st.Velocity); err != nil {
			return err
		}
		if err := s.put(s.right, bytesOf(st.Right)); err != nil {
			return err
		}
		return s.put(s.seen, bytesOf(st.Seen))
	})
}

// Close implements [backend.Session].
func (s *session) Close() error {
	s.tell()
	if s.context != 0 {
		_ = s.thread.do(func() error {
			for _, g := range s.graphs {
				if g != warmed {
					s.GraphExecDestroy(g)
				}
			}
			return nil
		})
	}
	s.p, s.sources = backend.Problem{}, nil
	return s.close()
}
