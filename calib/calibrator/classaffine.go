package calibrator

import (
	"math"
	"runtime"
)

// classAffine fits u_k = w_k z_k + b_k by
//
//	mean NLL of softmax(u) in nats + ridge |(w, b) - (1, 0)|²,  low ≤ w_k ≤ high, and b = 0 or mean b = 0
//
// which is convex. Its vectors hold w and then b.
type classAffine struct {
	*sample
	ridge, low, high float64
	shift            bool // b is fitted too
	u                []float64
	// step is the last step, and change what it did to the gradient; with bent they hold.
	step, change []float64
	bent         bool
}

// affinePoint is an x with its value, its gradient and, by class, the block (ww, wb, bb) of the Hessian.
type affinePoint struct {
	x, grad []float64
	blocks  [][3]float64
	value   float64
}

const (
	// gainEnds ends the fit, in nats: the next step would gain less.
	gainEnds = 1e-14
	// gainFine is a gain at which the fit has converged, in nats, though no step lowers the objective, as rounding
	// hides what is left, or though all of the last idleSteps gained no more: on separable rows the way is long.
	gainFine  = 1e-10
	idleSteps = 10
	// shareEnds ends a search along a step.
	shareEnds = 1e-12
)

// fit minimises from w = beta and b = 0, and writes the report. It is BFGS of one pair, whose inverse Hessian starts
// each time from the blocks at the present point: the curvatures of the classes differ by orders of magnitude, and
// change by as much on the way, so that older pairs mislead. A parameter on a bound stays there while its slope points
// beyond, and steps are cut off at the bounds.
func (f *classAffine) fit(beta float64) (x []float64) {
	f.u, f.step, f.change = make([]float64, f.k), make([]float64, 2*f.k), make([]float64, 2*f.k)
	at, next, d := f.newPoint(beta), f.newPoint(beta), make([]float64, 2*f.k)
	f.eval(at)
	r, was, steps := &f.report, at.value, 0
	r.Iterations, r.Converged = 1, false
	for r.Iterations < maxEvaluations {
		gain := f.direction(d, at)
		if gain <= gainEnds || steps == idleSteps && max(gain, was-at.value) <= gainFine {
			r.Converged = true
			return at.x
		}
		if steps == idleSteps {
			was, steps = at.value, 0
		}
		switch {
		case f.search(next, at, d, gain):
			for j, v := range next.x {
				f.step[j], f.change[j] = v-at.x[j], next.grad[j]-at.grad[j]
			}
			f.bent = true
			at, next = next, at
			steps++
		case f.bent:
			f.bent = false // the blocks alone always point downhill, also where the bounds cut off a step
		default:
			r.Converged = gain < gainFine
			return at.x
		}
	}
	return at.x
}

// search sets next to a point along d that is lower, if there is one.
func (f *classAffine) search(next, at *affinePoint, d []float64, gain float64) bool {
	for share := 1.0; share > shareEnds && f.report.Iterations < maxEvaluations; {
		slope := f.move(next.x, at, d, share)
		f.eval(next)
		f.report.Iterations++
		if slope < 0 && next.value <= at.value+1e-4*slope {
			return true
		}
		if gain < gainFine && next.value >= at.value {
			return false
		}
		// To the least point of the parabola through both values.
		share *= min(0.5, max(0.1, -slope/(2*(next.value-at.value-slope))))
	}
	return false
}

func (f *classAffine) newPoint(beta float64) *affinePoint {
	p := &affinePoint{x: make([]float64, 2*f.k), grad: make([]float64, 2*f.k), blocks: make([][3]float64, f.k)}
	for j := range f.k {
		p.x[j] = beta
	}
	return p
}

// move writes the point at that share of d to x, and returns the slope times the way there.
func (f *classAffine) move(x []float64, at *affinePoint, d []float64, share float64) (slope float64) {
	for j, v := range at.x {
		x[j] = v + share*d[j]
		if j < f.k {
			x[j] = min(f.high, max(f.low, x[j]))
		}
		slope += at.grad[j] * (x[j] - v)
	}
	return slope
}

// direction writes the step from the point to d and returns what it would gain.
func (f *classAffine) direction(d []float64, at *affinePoint) (gain float64) {
	for j, g := range at.grad {
		d[j] = -g
	}
	fixed := f.fixed(at)
	dot := func(a, b []float64) (sum float64) {
		for j, v := range a {
			if !fixed[j] {
				sum += v * b[j]
			}
		}
		return sum
	}
	add := func(by float64, v []float64) {
		for j := range d {
			d[j] += by * v[j]
		}
	}
	curve := dot(f.step, f.change)
	bent := f.bent && curve > 0
	var along float64
	if bent {
		along = dot(f.step, d) / curve
		add(-along, f.change)
	}
	f.solve(d, at)
	if bent {
		add(along-dot(f.change, d)/curve, f.step)
	}
	for j, is := range fixed {
		if is {
			d[j] = 0
		}
	}
	return -dot(d, at.grad) / 2
}

// fixed says which parameters may not move from the point.
func (f *classAffine) fixed(at *affinePoint) []bool {
	fixed := make([]bool, len(at.x))
	for j, v := range at.x {
		g := at.grad[j]
		fixed[j] = v <= f.low && g >= 0 || v >= f.high && g <= 0
		if j >= f.k {
			fixed[j] = !f.shift
		}
	}
	return fixed
}

// solve solves the equations of the blocks.
func (f *classAffine) solve(d []float64, at *affinePoint) {
	w, b := d[:f.k], d[f.k:]
	for j, h := range at.blocks {
		if !f.shift {
			w[j] /= h[0]
			continue
		}
		const least = 1e-12 // of h[2], below which rounding decides
		b[j] = (b[j] - h[1]/h[0]*w[j]) / max(h[2]-h[1]/h[0]*h[1], least*h[2], ridge)
		w[j] = (w[j] - h[1]*b[j]) / h[0]
	}
	if f.shift {
		centre(b) // softmax does not see the mean, so the blocks do not know how flat that way is
	}
}

// eval makes one pass over the rows.
func (f *classAffine) eval(at *affinePoint) {
	runtime.Gosched() // a fit takes long, and others may be waiting for the processor
	k, u := f.k, f.u
	w, b, gw, gb := at.x[:k], at.x[k:], at.grad[:k], at.grad[k:]
	clear(at.grad)
	for j := range at.blocks {
		at.blocks[j] = [3]float64{2 * ridge, 0, 2 * ridge}
	}
	var sum float64
	for i, y := range f.y {
		row, share := f.row(i), f.w[i]/f.total
		for j, v := range row {
			u[j] = w[j]*v + b[j]
		}
		nll := nllGrad(u, y)
		sum += f.w[i] * nll
		for j, v := range row {
			r := share * u[j]
			h := share * affineCurvature(math.Abs(u[j]), nll)
			gw[j] += r * v
			gb[j] += r
			to := &at.blocks[j]
			to[0] += h * v * v
			to[1] += h * v
			to[2] += h
		}
	}
	var size float64
	for j, v := range at.x {
		if j < k {
			v--
		}
		size += v * v
		at.grad[j] += 2 * f.ridge * v
	}
	at.value = sum/f.total + f.ridge*size
}

// affineCurvature is that of a row's NLL by one u, off = |p - 1[y]|: p (1-p) where p is about right. Where it is wrong
// p (1-p) vanishes long before the minimum, and steps by it go far too far; there it is that of the parabola which
// touches the logistic loss from above,
//
//	(σ(v) - 1/2)/v,  v = ln(off/(1 - off))
func affineCurvature(off, nll float64) float64 {
	const wrong = 0.6 // at 1/2 both are 1/4
	if off < wrong {
		return off * (1 - off)
	}
	// 1 - off loses its digits; the label's p is as small at least.
	return (off - 0.5) / (math.Log(off) + min(nll, -math.Log(1-off)))
}
