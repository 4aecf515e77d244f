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
	pool   sync.Pool // of the values between layers
}

// New prepares a head, which must not be changed after; the error is that of head.Check.
func New(h *head.Head) (*Head, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	s := &Head{}
	width := 0
	for _, l := range h.Layers {
		s.layers = append(s.layers, blas32.General{Rows: l.Out, Cols: l.In, Stride: l.In, Data: l.W})
		s.bias = append(s.bias, l.B)
		width = max(width, l.Out)
	}
	s.pool.New = func() any {
		b := make([]float32, 2*width)
		return &b
	}
	return s, nil
}

// Features is D, the number of inputs.
func (s *Head) Features() int { return s.layers[0].Cols }

// Classes is K, the number of logits.
func (s *Head) Classes() int { return s.layers[len(s.layers)-1].Rows }

// Logits writes the K logits of a row of D features: z = W·relu(… W·x + b …) + b.
func (s *Head) Logits(z, x []float32) {
	scratch := s.pool.Get().(*[]float32)
	defer s.pool.Put(scratch)
	half := len(*scratch) / 2
	for i, l := range s.layers {
		out := z
		if i < len(s.layers)-1 {
			out = (*scratch)[i%2*half:][:l.Rows]
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
