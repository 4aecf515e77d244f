package calibrator

import (
	"fmt"
	"math"
)

// IntraOrderPreserving is a diagonal intra-order-preserving function: one strictly increasing m for every class,
//
//	p = softmax(u),  u_k = m(z_k - max z),  m(-g) = -∫_0^g s(t) dt
//
// with a slope s > 0 that is linear between knots 0 = g_1 < … < g_J, and constant beyond g_J, so that m goes on as a
// straight line. It is a quadratic monotone spline (an I-spline, Ramsay 1988) with a continuous slope. One
// temperature is the case of equal slopes 1/T. It keeps the order of all classes of a row, ties included: gaps
// that rounding cannot tell apart, and probabilities that underflow, become ties, and no two classes change
// places. A constant added to a row has no effect. It takes any K. Make it with FitIntraOrderPreserving.
//
// It differs from the paper in two ways, on purpose. The paper's m is an integral of a positive neural network,
// found by numerical quadrature and fitted from random weights; here the NLL is convex in the slopes, so the fit is
// the optimum and needs no seed. The paper's m sees z_k itself, so that two rows with the same softmax can come out
// different; here it sees the gap to the row's maximum.
// Reference: Rahimi, Shaban, Cheng, Hartley, Boots, Intra Order-preserving Functions for Calibration of Multi-Class
// Neural Networks, NeurIPS 2020 (the diagonal sub-family).
type IntraOrderPreserving struct{ p intraOrderParams }

type intraOrderParams struct {
	Knots  []float64 `json:"knots"`  // gaps below the maximum, J, the first is 0
	Slopes []float64 `json:"slopes"` // J
}

// maxOrderKnots bounds J; the drops at the knots fit the stack.
const maxOrderKnots = 64

// Knots returns a copy of the J gaps below the row's maximum at which the slopes are given.
func (c *IntraOrderPreserving) Knots() []float64 { return append([]float64(nil), c.p.Knots...) }

// Slopes returns a copy of the J slopes of m at the knots, each an inverse temperature in
// [1/MaxTemperature, 1/MinTemperature].
func (c *IntraOrderPreserving) Slopes() []float64 { return append([]float64(nil), c.p.Slopes...) }

// Apply implements Calibrator.
func (c *IntraOrderPreserving) Apply(p, z []float64) {
	p = p[:len(z)]
	top := math.Inf(-1)
	for _, v := range z {
		top = max(top, v) // keeps a NaN
	}
	if math.IsNaN(top) || math.IsInf(top, 0) {
		fill(p, math.NaN())
		return
	}
	var room [maxOrderKnots]float64
	at := room[:len(c.p.Knots)]
	c.p.dropsAtKnots(at)
	var sum float64
	for k, v := range z {
		p[k] = math.Exp(-c.p.drop(top-v, at))
		sum += p[k]
	}
	inv := 1 / sum
	for k := range p {
		p[k] *= inv
	}
}

// dropsAtKnots writes -m(-g_j).
func (q intraOrderParams) dropsAtKnots(at []float64) {
	at[0] = 0
	for j := 1; j < len(at); j++ {
		at[j] = at[j-1] + (q.Slopes[j-1]+q.Slopes[j])/2*(q.Knots[j]-q.Knots[j-1])
	}
}

// drop is -m(-g) for a gap g ≥ 0. It never falls with g, in float64 as well: every piece is measured from its flatter
// end, where each operation is monotone in g, and is held between the values at its ends.
func (q intraOrderParams) drop(g float64, at []float64) float64 {
	j := q.piece(g)
	if j == len(at)-1 {
		return at[j] + q.Slopes[j]*(g-q.Knots[j])
	}
	a, b, width := q.Slopes[j], q.Slopes[j+1], q.Knots[j+1]-q.Knots[j]
	if b >= a {
		h := g - q.Knots[j]
		return min(at[j+1], at[j]+h*(a+(b-a)/(2*width)*h))
	}
	h := q.Knots[j+1] - g
	return max(at[j], at[j+1]-h*(b+(a-b)/(2*width)*h))
}

// piece is the last knot at or below g. Most classes are far below the maximum, so it looks from the end.
func (q intraOrderParams) piece(g float64) int {
	j := len(q.Knots) - 1
	for j > 0 && q.Knots[j] > g {
		j--
	}
	return j
}

// Method implements Calibrator; it is "intra_order_preserving".
func (*IntraOrderPreserving) Method() string { return "intra_order_preserving" }

// Describe implements Calibrator.
func (c *IntraOrderPreserving) Describe() string {
	return fmt.Sprintf("diagonal intra-order-preserving, %d knots, slopes %s", len(c.p.Knots), span(c.p.Slopes))
}

func (c *IntraOrderPreserving) params() any { return &c.p }

func (c *IntraOrderPreserving) check() error {
	g := c.p.Knots
	if len(g) < 1 || len(g) > maxOrderKnots || len(g) != len(c.p.Slopes) {
		return fmt.Errorf("knots, slopes: %d and %d, allowed are lists of one length in 1..%d", len(g), len(c.p.Slopes),
			maxOrderKnots)
	}
	if g[0] != 0 {
		return fmt.Errorf("knots 0: %g, allowed is 0", g[0])
	}
	if err := rising("knots", g); err != nil {
		return err
	}
	if err := within("knots", g, 0, maxParam); err != nil {
		return err
	}
	return within("slopes", c.p.Slopes, 1/MaxTemperature, 1/MinTemperature)
}
