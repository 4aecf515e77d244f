package head

// Pass runs a head forward and backward on batches of up to a number of rows. It keeps its workspace and is not safe
// for concurrent use.
type Pass struct {
	gemm GEMM
	k    int
	// act[l] has the outputs of layer l after ReLU (none after the last), rows×Out; delta their gradients.
	act, delta [][]float32
}

// NewPass prepares for heads of h's shape.
func NewPass(h *Head, rows int, gemm GEMM) *Pass {
	p := &Pass{gemm: gemm, k: h.K()}
	for _, l := range h.Layers {
		p.act = append(p.act, make([]float32, rows*l.Out))
		p.delta = append(p.delta, make([]float32, rows*l.Out))
	}
	return p
}

// Forward returns the n×K logits of x, n×D; they are valid until the next call.
func (p *Pass) Forward(h *Head, x []float32, n int) []float32 {
	for i, l := range h.Layers {
		out := p.act[i][:n*l.Out]
		for r := range n {
			copy(out[r*l.Out:], l.B)
		}
		p.gemm.Gemm(1, Dense(n, l.In, x), Dense(l.Out, l.In, l.W).T(), 1, Dense(n, l.Out, out))
		if i < len(h.Layers)-1 {
			ReLU(out)
		}
		x = out
	}
	return x
}

// Grad is where the loss's gradient with respect to the logits of the last Forward goes, n×K.
func (p *Pass) Grad(n int) []float32 {
	return p.delta[len(p.delta)-1][:n*p.k]
}

// Backward overwrites grad, of h's shape, with the gradient of its parameters, given [Pass.Grad] filled for the last
// Forward of x.
func (p *Pass) Backward(h, grad *Head, x []float32, n int) {
	for i := len(h.Layers) - 1; i >= 0; i-- {
		l, g := h.Layers[i], grad.Layers[i]
		in := x
		if i > 0 {
			in = p.act[i-1]
		}
		d := Dense(n, l.Out, p.delta[i][:n*l.Out])
		p.gemm.Gemm(1, d.T(), Dense(n, l.In, in), 0, Dense(l.Out, l.In, g.W))
		ColumnSums(g.B, d.Data)
		if i > 0 {
			below := p.delta[i-1][:n*l.In]
			p.gemm.Gemm(1, d, Dense(l.Out, l.In, l.W), 0, Dense(n, l.In, below))
			ReLUGrad(below, p.act[i-1][:n*l.In], below)
		}
	}
}
