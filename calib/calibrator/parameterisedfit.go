package calibrator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"github.com/plumbline/plumbline/calib/kernel"
)

// FitParameterised fits the network by mean NLL in nats (or, with opts.Parameterised.MSE, by the mean of
// Σ_k (p_k - 1[y = k])², with which the paper trains),
//
//	∂L/∂β_i = w_i/W (E_p[z_i] - z_iy),  β_i = 1/T(z_i), and from there by the chain rule
//
// with L-BFGS over all rows at once, for at most opts.Parameterised.Steps iterations. It starts where T(z) is the T
// of FitTemperature for every row, from first layers θ₀ drawn by opts.Seed, and a ridge of Ridge/n |θ - θ₀|² holds it
// to that start. So the fitted rows' NLL is never above that of plain temperature scaling, and the same input gives the
// same bits. The objective is not convex: another seed ends elsewhere. s is min(opts.Parameterised.Top, K). Arguments
// and errors are those of FitTemperature, and so is an option that is out of range.
func FitParameterised[T kernel.Float](d Data[T], opts Options) (*ParameterisedTemperature, Report, error) {
	s, err := newSample("parameterised_temperature", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	set, err := opts.Parameterised.withDefaults()
	if err != nil {
		return nil, Report{}, fmt.Errorf("fit %s: %w", s.method, err)
	}
	ts, tr, err := FitTemperature(s.data(), Options{})
	if err != nil {
		return nil, Report{}, err
	}
	s.report.Flat = tr.Flat
	if tr.OnBound {
		s.report.OnBound = true
		s.warn("temperature %g, a bound", ts.T())
	}
	n := s.newNetwork(ts, set, opts.Seed)
	theta := n.minimise(set)
	c := &ParameterisedTemperature{p: n.unscaled(theta)}
	if c.check() != nil || !set.MSE && !(s.nll(c) <= s.nll(ts)) {
		c.p = n.unscaled(n.constant())
	}
	return finish(s, c, n.size())
}

// fewRows is how many rows, evenly spaced, find the neighbourhood of the optimum where there are more than twice as
// many; it costs less than the last few steps over all rows.
const fewRows = 10_000

// minimise returns the best θ found from the start, from where fewer rows lead, and from the last fit's end.
func (n *network) minimise(set Parameterised) []float64 {
	// Half a nat in the sum over all rows is far less than what one more parameter gains from noise.
	gain := min(1e-5, 0.5/n.rows)
	loss, from := n.loss(set), n.start()
	skip := make([]float64, len(from))
	least := loss(skip, from)
	consider := func(theta []float64) {
		if v := loss(skip, theta); v < least {
			from, least = theta, v
		}
	}
	if set.warm != nil && len(*set.warm) == len(from) {
		consider(*set.warm)
	} else if n.n > 2*fewRows {
		theta, _, _ := descend(n.thinned(fewRows).loss(set), from, set.Steps, gain)
		consider(theta)
	}
	theta, evaluations, converged := descend(loss, from, set.Steps, gain)
	n.report.Iterations, n.report.Converged = evaluations, converged
	if set.warm != nil {
		*set.warm = theta
	}
	return theta
}

// thinned is the problem on so many rows, with the inputs and the ridge of all.
func (n *network) thinned(rows int) *network {
	out, s := *n, sample{k: n.k}
	out.sample, out.x = &s, nil
	for j := range rows {
		i := j * n.n / rows
		s.z, s.y, s.w = append(s.z, n.row(i)...), append(s.y, n.y[i]), append(s.w, n.w[i])
		out.x = append(out.x, n.x[i*n.m:(i+1)*n.m]...)
		s.total += n.w[i]
	}
	s.n = rows
	return &out
}

// network is the problem of a fit: rows with standardised inputs.
type network struct {
	*sample
	rows     float64   // n of the ridge
	m, h     int       // inputs, width
	x        []float64 // n×m inputs, of mean 0 and deviation 1
	mean, sd []float64 // m
	bias     float64   // of the output, for the plain temperature
	seed     uint64
}

func (s *sample) newNetwork(ts Temperature, set Parameterised, seed uint64) *network {
	top := make([]float64, min(set.Top, s.k))
	n := &network{sample: s, rows: float64(s.n), m: len(top) - 1, h: set.Hidden, seed: seed}
	n.x = make([]float64, 0, s.n*n.m)
	for i := range s.n {
		largest(top, s.row(i))
		differences(top)
		n.x = append(n.x, top[1:]...)
	}
	n.standardise()
	// Where T is a bound the bias would be infinite; at ±36 the sigmoid is 1 or next to 0 in float64.
	share := (math.Log(ts.T()) - temperatureLo) / (temperatureHi - temperatureLo)
	n.bias = max(-36, min(36, math.Log(share/(1-share))))
	return n
}

// standardise scales the inputs; one that does not vary becomes 0.
func (n *network) standardise() {
	n.mean, n.sd = make([]float64, n.m), make([]float64, n.m)
	for j := range n.m {
		var sum, square float64
		for i := range n.n {
			sum += n.w[i] * n.x[i*n.m+j]
		}
		n.mean[j] = sum / n.total
		for i := range n.n {
			d := n.x[i*n.m+j] - n.mean[j]
			square += n.w[i] * d * d
		}
		n.sd[j] = math.Sqrt(square / n.total)
		if !(n.sd[j] > 1e-12*math.Abs(n.mean[j])) {
			n.sd[j] = math.Inf(1)
		}
		for i := range n.n {
			n.x[i*n.m+j] = (n.x[i*n.m+j] - n.mean[j]) / n.sd[j]
		}
	}
}

func (n *network) size() int { return n.h*n.m + n.h + n.h*n.h + n.h + n.h + 1 }

// view lays θ out as the layers.
func (n *network) view(theta []float64) parameterisedParams {
	take := func(count int) []float64 {
		v := theta[:count:count]
		theta = theta[count:]
		return v
	}
	p := parameterisedParams{K: n.k, S: n.m + 1, H: n.h}
	p.W1, p.B1, p.W2, p.B2, p.W3 = take(n.h*n.m), take(n.h), take(n.h*n.h), take(n.h), take(n.h)
	p.B3 = theta[0]
	return p
}

// start draws the two layers (variance 1/inputs) and leaves the output's weights at 0, so that T is constant.
func (n *network) start() []float64 {
	theta := n.constant()
	p := n.view(theta)
	rng := rand.New(rand.NewPCG(n.seed, 0x505453))
	for j := range p.W1 {
		p.W1[j] = rng.NormFloat64() / math.Sqrt(float64(n.m))
	}
	for j := range p.W2 {
		p.W2[j] = rng.NormFloat64() / math.Sqrt(float64(n.h))
	}
	return theta
}

// constant is the network of the plain temperature.
func (n *network) constant() []float64 {
	theta := make([]float64, n.size())
	theta[len(theta)-1] = n.bias
	return theta
}

// unscaled is the network for inputs that are not standardised.
func (n *network) unscaled(theta []float64) parameterisedParams {
	p := n.view(slices.Clone(theta))
	for i := range p.W1 {
		p.W1[i] /= n.sd[i%n.m]
		p.B1[i/n.m] -= p.W1[i] * n.mean[i%n.m]
	}
	return p
}

// descend runs L-BFGS for at most so many iterations, or until eight of them lower f by less than gain. The best point
// found is never above the start.
func descend(f objective, x0 []float64, steps int, gain float64) (x []float64, evaluations int, converged bool) {
	grad, at := make([]float64, len(x0)), slices.Clone(x0)
	value := f(grad, at)
	first := value
	eval := func(x []float64) float64 { // the optimiser asks for value and gradient one after the other
		if !slices.Equal(x, at) {
			runtime.Gosched() // as in minimiseTo
			value = f(grad, x)
			copy(at, x)
		}
		return value
	}
	problem := optimize.Problem{Func: eval, Grad: func(g, x []float64) { eval(x); copy(g, grad) }}
	settings := &optimize.Settings{
		GradientThreshold: 1e-6,
		MajorIterations:   steps,
		FuncEvaluations:   4 * steps,
		Converger:         &optimize.FunctionConverge{Absolute: gain, Iterations: 8},
	}
	r, err := optimize.Minimize(problem, x0, settings, &optimize.LBFGS{})
	if r == nil || r.Location.X == nil || !(r.Location.F <= first) {
		return x0, 1, false
	}
	// A line search that finds no lower value ends with an error; that is the end of what floats can tell.
	ok := err != nil || r.Status == optimize.FunctionConvergence || r.Status == optimize.GradientThreshold
	return r.Location.X, r.Stats.FuncEvaluations, ok
}
