package serve

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/plumbline/plumbline/trainer/head"
)

// Head is a head that is ready to serve; safe for concurrent use.
type Head struct {
	layers []blas32.General
	bias   [][]float32
	pool   sync.Pool // of the row, and of the values between layers
}

// New prepares a head, which must not be changed after; the error is that of head.Check.
func New(h *head.Head) (*Head, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	s := &Head{}
	width := 0
	for _, l := range h.Layers {
		s.layers = append(s.layers, blas32.General{Rows: l.Out, Cols: l.In, Stride: l.In, Data: aligned(l.W)})
		s.bias = append(s.bias, l.B)
		width = max(width, l.Out)
	}
	s.pool.New = func() any {
		b := make([]float32, room(s.Features())+2*room(width))
		return &b
	}
	return s, nil
}

// The sums of gonum's assembly begin where their operands reach 16 bytes, so the last bits of a logit depend on where
// a row lies in memory. Rows come from messages and from files, and must get the same logits: operands are copied to
// where allocations begin, which are multiples of 16 bytes from alignment numbers on.
const alignment = 8

// room is how many numbers there are from an aligned one to the first aligned one behind n.
func room(n int) int { return (n + alignment - 1) / alignment * alignment }

func aligned(v []float32) []float32 {
	out := make([]float32, room(len(v)))[:len(v)]
	copy(out, v)
	return out
}

// Features is D, the number of inputs.
func (s *Head) Features() int { return s.layers[0].Cols }

// Classes is K, the number of logits.
func (s *Head) Classes() int { return s.layers[len(s.layers)-1].Rows }

// Logits writes the K logits of a row of D features: z = W·relu(… W·x + b …) + b.
func (s *Head) Logits(z, x []float32) {
	scratch := s.pool.Get().(*[]float32)
	defer s.pool.Put(scratch)
	row := room(len(x))
	between := (*scratch)[row:]
	step := len(between) / 2
	x = (*scratch)[:copy(*scratch, x)]
	for i, l := range s.layers {
		out := z
		if i < len(s.layers)-1 {
			out = between[i%2*step:][:l.Rows]
		}
		copy(out, s.bias[i])
		in, logits := blas32.Vector{N: l.Cols, Inc: 1, Data: x}, blas32.Vector{N: l.Rows, Inc: 1, Data: out}
		blas32.Gemv(blas.NoTrans, 1, l, in, 1, logits)
		if i < len(s.layers)-1 {
			for j, v := range out {
				out[j] = max(v, 0)
			}
		}
		x = out
	}
}
