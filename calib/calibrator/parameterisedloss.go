package calibrator

import (
	"math"

	"github.com/plumbline/plumbline/internal/vexp"
)

// networkRows is how many rows go through the network at once: their exponentials are then computed together, and all
// numbers stay in the nearest cache.
const networkRows = 64

// networkBlock is the scratch of networkRows rows.
type networkBlock struct {
	h1, h2, g1    []float64 // networkRows×h; g1 is of one row
	t, share, top []float64
	q             []float64 // networkRows×K
}

// loss is the objective in θ.
func (n *network) loss(set Parameterised) objective {
	ridge := set.Ridge / n.rows
	first := n.start()
	make1 := func(of int) []float64 { return make([]float64, networkRows*of) }
	b := networkBlock{
		h1: make1(n.h), h2: make1(n.h), g1: make([]float64, n.h),
		t: make1(1), share: make1(1), top: make1(1), q: make1(n.k),
	}
	of := n.blockNLL
	if set.MSE {
		of = n.blockMSE
	}
	return func(grad, theta []float64) float64 {
		clear(grad)
		p, g := n.view(theta), n.view(grad)
		var sum float64
		for from := 0; from < n.n; from += networkRows {
			rows := min(networkRows, n.n-from)
			b.forward(&p, n.x[from*n.m:(from+rows)*n.m], rows)
			b.exponentials(n.z[from*n.k:(from+rows)*n.k], n.k)
			for i := range rows {
				loss, slope := of(from+i, b.q[i*n.k:(i+1)*n.k], 1/b.t[i], b.top[i])
				sum += n.w[from+i] * loss
				// dβ/dout = -β (h - l) σ'.
				share := b.share[i]
				out := n.w[from+i] / n.total * slope / -b.t[i] * (temperatureHi - temperatureLo) * share * (1 - share)
				if out != 0 {
					grad[len(grad)-1] += out
					x := n.x[(from+i)*n.m : (from+i+1)*n.m]
					p.back(&g, out, layers{x: x, h1: b.h1[i*n.h : (i+1)*n.h], h2: b.h2[i*n.h : (i+1)*n.h]}, b.g1)
				}
			}
		}
		var away float64
		for j, v := range theta {
			d := v - first[j]
			away += d * d
			grad[j] += 2 * ridge * d
		}
		return sum/n.total + ridge*away
	}
}

// forward is parameterisedParams.temperature of so many rows of inputs.
func (b *networkBlock) forward(p *parameterisedParams, x []float64, rows int) {
	h1, h2 := b.h1[:rows*p.H], b.h2[:rows*p.H]
	m := p.S - 1
	for i := range rows {
		affine(h1[i*p.H:(i+1)*p.H], p.W1, p.B1, x[i*m:(i+1)*m])
	}
	tanh(h1, b.q)
	for i := range rows {
		affine(h2[i*p.H:(i+1)*p.H], p.W2, p.B2, h1[i*p.H:(i+1)*p.H])
	}
	tanh(h2, b.q)
	t, share := b.t[:rows], b.share[:rows]
	for i := range rows {
		out := p.B3
		for j, v := range h2[i*p.H : (i+1)*p.H] {
			out += p.W3[j] * v
		}
		share[i], t[i] = out, -math.Abs(out)
	}
	vexp.Shifted(t, t, 0)
	for i, e := range t { // σ of either sign from e^-|out|
		if e /= 1 + e; share[i] > 0 {
			e = 1 - e
		}
		share[i] = e
		t[i] = (temperatureHi - temperatureLo) * (e - 1)
	}
	vexp.Shifted(t, t, 0)
	for i := range t {
		t[i] *= MaxTemperature
	}
}

// affine writes W x + b to u, W row-major len(u)×len(x).
func affine(u, w, b, x []float64) {
	for j := range u {
		s := b[j]
		for l, v := range w[j*len(x) : (j+1)*len(x)] {
			s += v * x[l]
		}
		u[j] = s
	}
}

// tanh replaces v by tanh v = ±(1 - e)/(1 + e), e = e^(-2|v|), to an absolute 1e-16.
func tanh(v, scratch []float64) {
	if len(scratch) < len(v) { // fewer classes than the layers are wide
		scratch = make([]float64, len(v))
	}
	e := scratch[:len(v)]
	for i, x := range v {
		e[i] = -2 * math.Abs(x)
	}
	vexp.Shifted(e, e, 0)
	for i, x := range v {
		v[i] = math.Copysign((1-e[i])/(1+e[i]), x)
	}
}

// exponentials writes exp(β (z - max z)) of the rows to q, and max z to top.
func (b *networkBlock) exponentials(z []float64, k int) {
	q := b.q[:len(z)]
	for i := range len(z) / k {
		row := z[i*k : (i+1)*k]
		top := row[0]
		for _, v := range row {
			if v > top {
				top = v
			}
		}
		b.top[i] = top
		beta := 1 / b.t[i]
		for j, v := range row {
			q[i*k+j] = beta * (v - top)
		}
	}
	vexp.Shifted(q, q, 0)
}

// blockNLL is the NLL of softmax(β z) of row i and its derivative by β, from q = exp(β (z - top)).
func (n *network) blockNLL(i int, q []float64, beta, top float64) (loss, slope float64) {
	z := n.row(i)
	sum, mean := n.tilted(z, q, top)
	d := z[n.y[i]] - top
	return math.Log(sum) - beta*d, mean - d
}

// blockMSE is Σ_k (softmax(β z)_k - 1[y = k])² of row i and its derivative by β.
func (n *network) blockMSE(i int, q []float64, _, top float64) (loss, slope float64) {
	z := n.row(i)
	sum, mean := n.tilted(z, q, top)
	for k, v := range z {
		p := q[k] / sum
		miss := p
		if k == int(n.y[i]) {
			miss--
		}
		loss += miss * miss
		if p > 0 {
			slope += 2 * miss * p * (v - top - mean)
		}
	}
	return loss, slope
}

// tilted returns Σ q and the mean of z - top under q.
func (n *network) tilted(z, q []float64, top float64) (sum, mean float64) {
	for k, e := range q {
		if e > 0 {
			sum += e
			mean += e * (z[k] - top)
		}
	}
	return sum, mean / sum
}

// layers are the inputs of a row and the outputs of the hidden layers.
type layers struct{ x, h1, h2 []float64 }

// back adds the gradient of the layers for the slope out at the output. g1 is scratch.
func (p *parameterisedParams) back(g *parameterisedParams, out float64, at layers, g1 []float64) {
	x, h1 := at.x, at.h1
	clear(g1)
	for j, v := range at.h2 {
		g.W3[j] += out * v
		d := out * p.W3[j] * (1 - v*v)
		g.B2[j] += d
		to, from := g.W2[j*len(h1):(j+1)*len(h1)], p.W2[j*len(h1):(j+1)*len(h1)]
		for l, u := range h1 {
			to[l] += d * u
			g1[l] += d * from[l]
		}
	}
	for j, v := range h1 {
		d := g1[j] * (1 - v*v)
		g.B1[j] += d
		to := g.W1[j*len(x) : (j+1)*len(x)]
		for l, u := range x {
			to[l] += d * u
		}
	}
}
