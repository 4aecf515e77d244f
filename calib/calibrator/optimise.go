package calibrator

import (
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/optimize"
)

const (
	// ridge is the weight of |θ - θ₀|² in nats, for objectives whose optimum may lie at infinity (separable
	// rows): far below any difference of NLL that matters, and enough for a finite optimum.
	ridge = 1e-9
	// gradientEnds ends a minimisation, per component.
	gradientEnds = 1e-8
	// maxEvaluations bounds it.
	maxEvaluations = 2000
)

// objective returns the value at x and writes its gradient.
type objective func(grad, x []float64) float64

// ending says where a minimisation has converged: no component of the gradient is larger, or the value fell by less
// than that in so many iterations. It gives up after the evaluations.
type ending struct {
	gradient, value   float64
	idle, evaluations int
}

// minimise runs L-BFGS from x0 and returns the best point found, the evaluations, and whether it converged.
func minimise(f objective, x0 []float64) (x []float64, evaluations int, converged bool) {
	return minimiseTo(f, x0, ending{gradient: gradientEnds, value: 1e-12, idle: 20, evaluations: maxEvaluations})
}

// minimiseTo is minimise with another ending.
func minimiseTo(f objective, x0 []float64, ends ending) (x []float64, evaluations int, converged bool) {
	grad, at := make([]float64, len(x0)), make([]float64, len(x0))
	value, known := 0.0, false
	eval := func(x []float64) float64 { // the optimiser asks for value and gradient one after the other
		if !known || !slices.Equal(x, at) {
			runtime.Gosched() // a fit takes long, and others may be waiting for the processor
			value, known = f(grad, x), true
			copy(at, x)
		}
		return value
	}
	problem := optimize.Problem{
		Func: eval,
		Grad: func(g, x []float64) {
			eval(x)
			copy(g, grad)
		},
	}
	settings := &optimize.Settings{
		GradientThreshold: ends.gradient,
		FuncEvaluations:   ends.evaluations,
		Converger:         &optimize.FunctionConverge{Absolute: ends.value, Iterations: ends.idle},
	}
	r, err := optimize.Minimize(problem, x0, settings, &optimize.LBFGS{})
	if r == nil || r.Location.X == nil {
		return x0, 1, false
	}
	// A line search that finds no lower value ends with an error; near the optimum that is convergence.
	eval(r.Location.X)
	var steepest float64
	for _, g := range grad {
		steepest = max(steepest, math.Abs(g))
	}
	const flat = 1e-5
	ok := steepest < max(flat, ends.gradient) && r.Status != optimize.FunctionEvaluationLimit || err == nil &&
		r.Status == optimize.FunctionConvergence
	return r.Location.X, r.Stats.FuncEvaluations, ok
}
