package variant

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
)

// balance is a learnable linear head and a fixed simplex on an adaptor's values: with U of orthonormal columns,
//
//	a = W·x + b,  f = h/‖h‖ with h = ReLU(A·x + d),  e = fᵀM with M = √(K/(K−1))·U·(I − 11ᵀ/K)
//	loss = λ·L(a) + (1 − λ)·L(ε∘e),  ε_k = √((n/n')/n_k) by the n_k rows of class k and the n' classes of the batch
//	logits = λ·a + (1 − λ)·e
//
// After every epoch λ is 1 where δ·accuracy of a is above its confidence, else where, by bisection, δ·accuracy of the
// logits is their confidence, on training rows: mixing logits and the bisection are those of the released code. What is
// served has the mean of ‖h‖ over training rows in place of each row's, which makes it layers with ReLU between.
// Reference: Ni et al., Balancing Two Classifiers via A Simplex ETF Structure for Model Calibration, CVPR 2025.
type balance struct {
	delta            float64
	linear, adaptor  *head.Head
	gLinear, gAdapt  *head.Head
	pLinear, pAdapt  *head.Pass
	simplex          []float32 // K×width: column k of M is row k
	lens, f, norm, e []float32
	eGrad            []float32
	state            []float32 // λ and the mean norm
	k, width         int
}

const (
	firstBalance = 0.8
	settleRows   = 20_000 // of the training rows that settle λ
	settleBits   = 14     // of λ
	leastNorm    = 1e-12
)

func newBalance(p backend.Problem, cfg Config, gemm head.GEMM) (*balance, error) {
	if len(p.Head.Layers) != 1 {
		return nil, fmt.Errorf("method %s: a head of %d layers, allowed 1", Balanced, len(p.Head.Layers))
	}
	d, k := p.Head.D(), p.Head.K()
	w := cfg.Width
	if w == 0 {
		const most = 512
		w = max(min(d, most), k)
	}
	if w < k {
		return nil, fmt.Errorf("method %s: width %d for %d classes, allowed at least as many", Balanced, w, k)
	}
	adaptor := head.Bottleneck(d, w, k, cfg.Seed)
	n := &balance{delta: cfg.Delta, k: k, width: w, linear: p.Head.Clone(),
		adaptor: &head.Head{Layers: adaptor.Layers[:1]}, state: []float32{firstBalance, 1}}
	if n.delta == 0 {
		n.delta = 1
	}
	n.gLinear, n.gAdapt = n.linear.Clone(), n.adaptor.Clone()
	n.pLinear, n.pAdapt = head.NewPass(n.linear, p.Batch, gemm), head.NewPass(n.adaptor, p.Batch, gemm)
	n.simplex = simplex(k, w, cfg.Seed)
	n.lens = make([]float32, k)
	n.f, n.norm = make([]float32, p.Batch*w), make([]float32, p.Batch)
	n.e, n.eGrad = make([]float32, p.Batch*k), make([]float32, p.Batch*k)
	n.settleNorm(p.Train)
	return n, nil
}

// simplex draws M, transposed.
func simplex(k, width int, seed uint64) []float32 {
	src := philox.Source{Stream: philox.Stream{Seed: seed, Purpose: philox.Latent, A: 1}}
	u := make([][]float64, k)
	for i := range u {
		u[i] = make([]float64, width)
		for j := range u[i] {
			u[i][j] = src.Float64() - 0.5
		}
		for _, before := range u[:i] {
			dot := 0.
			for j, v := range before {
				dot += v * u[i][j]
			}
			for j, v := range before {
				u[i][j] -= dot * v
			}
		}
		norm := 0.
		for _, v := range u[i] {
			norm += v * v
		}
		for j := range u[i] {
			u[i][j] /= math.Sqrt(norm)
		}
	}
	out := make([]float32, 0, k*width)
	for i := range u {
		for j := range u[i] {
			mean := 0.
			for _, row := range u {
				mean += row[j] / float64(k)
			}
			out = append(out, float32(math.Sqrt(float64(k)/float64(k-1))*(u[i][j]-mean)))
		}
	}
	return out
}

func (n *balance) params() [][]float32 { return append(params(n.linear, n.adaptor), n.state) }
func (n *balance) grads() [][]float32  { return append(params(n.gLinear, n.gAdapt), nil) }

// forward fills f, norm and e of the rows, ε aside, and returns the learnable logits.
func (n *balance) forward(x []float32, rows int) []float32 {
	a, u := n.pLinear.Forward(n.linear, x, rows), n.pAdapt.Forward(n.adaptor, x, rows)
	for r := range rows {
		f := n.f[r*n.width : (r+1)*n.width]
		var square float64
		for j, v := range u[r*n.width : (r+1)*n.width] {
			f[j] = max(0, v)
			square += float64(f[j]) * float64(f[j])
		}
		n.norm[r] = float32(max(math.Sqrt(square), leastNorm))
		for j := range f {
			f[j] /= n.norm[r]
		}
		for k := range n.k {
			var dot float64
			for j, v := range n.simplex[k*n.width : (k+1)*n.width] {
				dot += float64(v) * float64(f[j])
			}
			n.e[r*n.k+k] = float32(dot)
		}
	}
	return a
}

// scale fills ε of the labels of a mini-batch.
func (n *balance) scale(y []int32) {
	count, present := make([]int, n.k), 0
	for _, label := range y {
		if count[label]++; count[label] == 1 {
			present++
		}
	}
	for k, c := range count {
		if n.lens[k] = 1; c > 0 {
			n.lens[k] = float32(math.Sqrt(float64(len(y)) / float64(present) / float64(c)))
		}
	}
}

func (n *balance) loss(mini *backend.MiniBatch, x []float32, y []int32, _ uint32) (float64, error) {
	rows, lambda := len(y), n.state[0]
	a := n.forward(x, rows)
	n.scale(y)
	e, g := n.e[:rows*n.k], n.eGrad[:rows*n.k]
	for i := range e {
		e[i] *= n.lens[i%n.k]
	}
	fixed, err := mini.Loss(e, g)
	if err != nil {
		return 0, err
	}
	for i := range g {
		g[i] *= (1 - lambda) * n.lens[i%n.k]
	}
	learnt, err := mini.Loss(a, n.pLinear.Grad(rows))
	if err != nil {
		return 0, err
	}
	for i, v := range n.pLinear.Grad(rows) {
		n.pLinear.Grad(rows)[i] = lambda * v
	}
	n.pLinear.Backward(n.linear, n.gLinear, x, rows)
	n.backward(x, rows)
	return float64(lambda)*learnt + float64(1-lambda)*fixed, nil
}

// backward fills the adaptor's gradient from that of e.
func (n *balance) backward(x []float32, rows int) {
	du := n.pAdapt.Grad(rows)
	df := make([]float64, n.width)
	for r := range rows {
		f, out := n.f[r*n.width:(r+1)*n.width], du[r*n.width:(r+1)*n.width]
		clear(df)
		for k := range n.k {
			g := float64(n.eGrad[r*n.k+k])
			for j, v := range n.simplex[k*n.width : (k+1)*n.width] {
				df[j] += g * float64(v)
			}
		}
		var along float64
		for j, v := range f {
			along += float64(v) * df[j]
		}
		for j, v := range f {
			if out[j] = 0; v > 0 {
				out[j] = float32((df[j] - along*float64(v)) / float64(n.norm[r]))
			}
		}
	}
	n.pAdapt.Backward(n.adaptor, n.gAdapt, x, rows)
}

// each calls f with mini-batches of some training rows, forward done.
func (n *balance) each(train *data.Set, f func(rows []int32, a []float32)) {
	var rows []int32
	for i, step := 0, max(1, train.N()/settleRows); i < train.N(); i += step {
		rows = append(rows, int32(i))
	}
	batch := len(n.norm)
	x := make([]float32, batch*train.D)
	for from := 0; from < len(rows); from += batch {
		part := rows[from:min(from+batch, len(rows))]
		train.Gather(x[:len(part)*train.D], part)
		f(part, n.forward(x[:len(part)*train.D], len(part)))
	}
}

func (n *balance) settleNorm(train *data.Set) {
	var sum, count float64
	n.each(train, func(rows []int32, _ []float32) {
		for _, v := range n.norm[:len(rows)] {
			sum, count = sum+float64(v), count+1
		}
	})
	n.state[1] = float32(max(sum/count, leastNorm))
}

// settle finds λ.
func (n *balance) settle(train *data.Set) {
	n.settleNorm(train)
	var a, e []float32
	var y []int32
	n.each(train, func(rows []int32, logits []float32) {
		a, e = append(a, logits...), append(e, n.e[:len(rows)*n.k]...)
		for _, r := range rows {
			y = append(y, train.Y[r])
		}
	})
	if n.surplus(a, e, y, 1) <= 0 {
		n.state[0] = 1
		return
	}
	low, high := 0., 1.
	for range settleBits {
		if mid := (low + high) / 2; n.surplus(a, e, y, mid) < 0 {
			low = mid
		} else {
			high = mid
		}
	}
	n.state[0] = float32((low + high) / 2)
}

// surplus is the mean confidence less δ times the accuracy of the logits mixed by λ.
func (n *balance) surplus(a, e []float32, y []int32, lambda float64) float64 {
	var sum float64
	z := make([]float64, n.k)
	for r, label := range y {
		top := 0
		for k := range z {
			z[k] = lambda*float64(a[r*n.k+k]) + (1-lambda)*float64(e[r*n.k+k])
			if z[k] > z[top] {
				top = k
			}
		}
		var rest float64
		for _, v := range z {
			rest += math.Exp(v - z[top])
		}
		sum += 1 / rest
		if int(label) == top {
			sum -= n.delta
		}
	}
	return sum / float64(len(y))
}

// head has three groups of hidden units: the adaptor's, the features, and their negatives.
func (n *balance) head(p [][]float32) *head.Head {
	d, w, lambda, norm := n.linear.D(), n.width, p[4][0], p[4][1]
	hidden := w + 2*d
	first := head.Layer{In: d, Out: hidden, W: make([]float32, hidden*d), B: make([]float32, hidden)}
	copy(first.W, p[2])
	copy(first.B, p[3])
	last := head.Layer{In: hidden, Out: n.k, W: make([]float32, n.k*hidden), B: make([]float32, n.k)}
	for j := range d {
		first.W[(w+j)*d+j], first.W[(w+d+j)*d+j] = 1, -1
	}
	for k := range n.k {
		row := last.W[k*hidden : (k+1)*hidden]
		for j, v := range n.simplex[k*w : (k+1)*w] {
			row[j] = (1 - lambda) / norm * v
		}
		for j, v := range p[0][k*d : (k+1)*d] {
			row[w+j], row[w+d+j] = lambda*v, -lambda*v
		}
		last.B[k] = lambda * p[1][k]
	}
	return &head.Head{Layers: []head.Layer{first, last}}
}
