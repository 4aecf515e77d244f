package backend

import (
	"math"

	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
)

// measureRows is how many rows a measurement takes at a time.
const measureRows = 1024

// Evaluator measures heads on the sets of a problem, in float32 on the CPU. It is not safe for concurrent use.
type Evaluator struct {
	p     Problem
	pass  *head.Pass
	view  *head.Head // weights under masks
	masks [][]uint8
	chunk []float32
}

// NewEvaluator makes room for p; a nil gemm means head.Gonum.
func NewEvaluator(p Problem, gemm head.GEMM) *Evaluator {
	e := &Evaluator{
		p:     p,
		view:  p.Head.Clone(),
		pass:  head.NewPass(p.Head, measureRows, gemmOr(gemm)),
		chunk: make([]float32, measureRows*p.Train.D),
	}
	for _, l := range p.Head.Layers {
		e.masks = append(e.masks, make([]uint8, len(l.W)))
	}
	return e
}

// Masks draws the masks of a mini-batch, a value for each weight of each layer; valid until the next call.
func (e *Evaluator) Masks(m *Mask, step uint32) [][]uint8 {
	for l, mask := range e.masks {
		philox.Stream{Seed: m.Seed, Purpose: philox.Mask, A: uint32(l), B: m.FirstStep + step}.Bernoulli(mask, m.Keep)
	}
	return e.masks
}

// Drawn is where Masks puts those of a layer.
func (e *Evaluator) Drawn(layer int) []uint8 { return e.masks[layer] }

// masked is h under the masks of a mini-batch; valid until the next call.
func (e *Evaluator) masked(h *head.Head, m *Mask, step uint32) *head.Head {
	masks := e.Masks(m, step)
	for l := range e.view.Layers {
		from, to := h.Layers[l], e.view.Layers[l]
		head.Masked(to.W, from.W, masks[l])
		copy(to.B, from.B)
	}
	return e.view
}

// each calls f with the logits of chunks of a set.
func (e *Evaluator) each(h *head.Head, set int, w Weights, f func(from int, z []float32)) error {
	rows, err := e.p.rowsOf(set)
	if err != nil {
		return err
	}
	switch {
	case w.Mask != nil:
		h = e.masked(h, w.Mask, 0)
	case w.Scale != 0 && w.Scale != 1:
		h = h.Scaled(w.Scale)
	}
	for from := 0; from < rows.N(); from += measureRows {
		n := min(measureRows, rows.N()-from)
		z := e.pass.Forward(h, rows.Chunk(e.chunk, from, n), n)
		if err := diverged(z); err != nil {
			return err
		}
		f(from, z)
	}
	return nil
}

// Measure is [Session.Measure] of h.
func (e *Evaluator) Measure(h *head.Head, set int, w Weights) (Measurement, error) {
	rows, err := e.p.rowsOf(set)
	if err != nil {
		return Measurement{}, err
	}
	m, k := Measurement{N: rows.N()}, h.K()
	err = e.each(h, set, w, func(from int, z []float32) {
		for i := 0; i < len(z)/k; i++ {
			m.addRow(z[i*k:(i+1)*k], rows.Y[from+i])
		}
	})
	if err != nil {
		return Measurement{}, err
	}
	n := float64(m.N)
	m.NLL, m.Accuracy, m.Confidence = m.NLL/n, m.Accuracy/n, m.Confidence/n
	return m, nil
}

func (m *Measurement) addRow(row []float32, label int32) {
	top := argmax(row)
	var rest float64
	for j, v := range row {
		if int32(j) != top {
			rest += math.Exp(float64(v) - float64(row[top]))
		}
	}
	m.Confidence += 1 / (1 + rest)
	m.NLL += math.Log1p(rest) + float64(row[top]) - float64(row[label])
	if label == top {
		m.Accuracy++
	}
}

// Logits is [Session.Logits] of h.
func (e *Evaluator) Logits(h *head.Head, set int, w Weights, dst []float32) error {
	return e.each(h, set, w, func(from int, z []float32) { copy(dst[from*h.K():], z) })
}
