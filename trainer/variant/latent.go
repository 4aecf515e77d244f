package variant

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
)

// latent is a last hidden layer of Gaussian values: with features x and noise ε ~ N(0, 1),
//
//	μ = W_μ·x + b_μ,  s = W_s·x + b_s,  z = μ + exp(s/2)·ε,  logits = V·ReLU(z) + c
//	loss = mean of L(logits) + κ·KL(N(μ, exp(s)) ‖ N(0, 1)),  KL = ½ Σ_j (μ_j² + exp(s_j) − 1 − s_j)
//
// κ is 1 over the number of units, as the released code has it; the paper prints the sum, κ = 1. What is served is the
// network at z = μ. The paper averages the probabilities of ten draws of z, which is no network of layers with ReLU.
// Reference: Jordahn and Olmos, Decoupling Feature Extraction and Classification Layers for Calibrated Neural Networks,
// ICML 2024.
type latent struct {
	kl            float64
	seed          uint64
	mean, spread  *head.Head // one layer each
	decode        *head.Head
	gMean, gSpre  *head.Head
	gDecode       *head.Head
	pMean, pSpr   *head.Pass
	pDecode       *head.Pass
	noise, relu   []float32
	width, labels int
}

// mostSpread bounds |s|: beyond it the deviation is below 1/20 or above 20 times that of the prior.
const mostSpread = 6

func newLatent(p backend.Problem, cfg Config, gemm head.GEMM) (*latent, error) {
	if len(p.Head.Layers) != 2 {
		return nil, fmt.Errorf("method %s: a head of %d layers, allowed 2", Variational, len(p.Head.Layers))
	}
	l := p.Head.Clone().Layers
	w := l[0].Out
	one := func(layer head.Layer) *head.Head { return &head.Head{Layers: []head.Layer{layer}} }
	n := &latent{kl: cfg.KL, seed: cfg.Seed, width: w, labels: l[1].Out, mean: one(l[0]), decode: one(l[1]),
		spread: one(head.Layer{In: l[0].In, Out: w, W: make([]float32, len(l[0].W)), B: make([]float32, w)})}
	if n.kl == 0 {
		n.kl = 1 / float64(w)
	}
	n.gMean, n.gSpre, n.gDecode = n.mean.Clone(), n.spread.Clone(), n.decode.Clone()
	n.pMean, n.pSpr = head.NewPass(n.mean, p.Batch, gemm), head.NewPass(n.spread, p.Batch, gemm)
	n.pDecode = head.NewPass(n.decode, p.Batch, gemm)
	n.noise, n.relu = make([]float32, p.Batch*w), make([]float32, p.Batch*w)
	return n, nil
}

func (n *latent) params() [][]float32 { return params(n.mean, n.spread, n.decode) }
func (n *latent) grads() [][]float32  { return params(n.gMean, n.gSpre, n.gDecode) }

func params(heads ...*head.Head) (out [][]float32) {
	for _, h := range heads {
		out = append(out, h.Params()...)
	}
	return out
}

// draw fills the noise of a mini-batch.
func (n *latent) draw(step uint32, count int) {
	src := philox.Source{Stream: philox.Stream{Seed: n.seed, Purpose: philox.Latent, B: step}}
	for i := 0; i < count; i += 2 {
		r, a := math.Sqrt(-2*math.Log(1-src.Float64())), 2*math.Pi*src.Float64()
		n.noise[i] = float32(r * math.Cos(a))
		if i+1 < count {
			n.noise[i+1] = float32(r * math.Sin(a))
		}
	}
}

func bounded(s float32) (v float64, inside bool) {
	return min(max(float64(s), -mostSpread), mostSpread), s > -mostSpread && s < mostSpread
}

func (n *latent) loss(mini *backend.MiniBatch, x []float32, y []int32, step uint32) (float64, error) {
	rows := len(y)
	n.draw(step, rows*n.width)
	mu, s := n.pMean.Forward(n.mean, x, rows), n.pSpr.Forward(n.spread, x, rows)
	var kl float64
	for i, m := range mu {
		v, _ := bounded(s[i])
		n.relu[i] = max(0, m+float32(math.Exp(v/2))*n.noise[i])
		kl += (float64(m)*float64(m) + math.Exp(v) - 1 - v) / 2
	}
	z := n.pDecode.Forward(n.decode, n.relu[:rows*n.width], rows)
	g := n.pDecode.Grad(rows)
	value, err := mini.Loss(z, g)
	if err != nil {
		return 0, err
	}
	n.backward(x, rows, mu, s)
	return value + n.kl*kl/float64(rows), nil
}

// backward fills the gradients from that of the logits.
func (n *latent) backward(x []float32, rows int, mu, s []float32) {
	g := n.pDecode.Grad(rows)
	n.pDecode.Backward(n.decode, n.gDecode, n.relu[:rows*n.width], rows)
	v, scale := n.decode.Layers[0].W, n.kl/float64(rows)
	dMean, dSpread := n.pMean.Grad(rows), n.pSpr.Grad(rows)
	for r := range rows {
		for j := range n.width {
			i := r*n.width + j
			var dz float64
			if n.relu[i] > 0 {
				for k := range n.labels {
					dz += float64(g[r*n.labels+k]) * float64(v[k*n.width+j])
				}
			}
			at, inside := bounded(s[i])
			spread := scale * (math.Exp(at) - 1) / 2 // outside too: it leads back
			if inside {
				spread += dz * float64(n.noise[i]) * math.Exp(at/2) / 2
			}
			dMean[i], dSpread[i] = float32(dz+scale*float64(mu[i])), float32(spread)
		}
	}
	n.pMean.Backward(n.mean, n.gMean, x, rows)
	n.pSpr.Backward(n.spread, n.gSpre, x, rows)
}

func (n *latent) settle(*data.Set) {}

func (n *latent) head(p [][]float32) *head.Head {
	h := &head.Head{Layers: []head.Layer{n.mean.Layers[0], n.decode.Layers[0]}}
	h = h.Clone()
	for i, from := range [][]float32{p[0], p[1], p[4], p[5]} {
		copy(h.Params()[i], from)
	}
	return h
}
