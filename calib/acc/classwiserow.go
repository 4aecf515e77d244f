package acc

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
)

// Bounds of the factor that makes probabilities of a row's values: products stay normal numbers.
const minScale, maxScale = 0x1p-200, 0x1p+200

// checkScaled checks all but the values themselves.
func (c *ClassWise) checkScaled(r *kernel.Row, v, z []float32, y int) error {
	if len(v) != c.k || z != nil && len(z) != c.k {
		return fmt.Errorf("row of %d values and %d logits for %d classes: %w", len(v), len(z), c.k, ErrShape)
	}
	if y < 0 || y >= c.k {
		return fmt.Errorf("label is %d, allowed 0 to %d: %w", y, c.k-1, ErrValue)
	}
	if !(r.Scale >= minScale && r.Scale <= maxScale) {
		return fmt.Errorf("scale is %v, allowed %v to %v: %w", r.Scale, minScale, maxScale, ErrValue)
	}
	return nil
}

// addScaled adds the row p_k = min(1, float64(v_k)·Scale) of x, v as kernel.LogitRows or kernel.ProbRows leaves it.
// Where v came from logits, a v_k of 0 counts as a probability of 0, which is in no bin, only where float64 underflows
// too (kernel.Row.Underflows), and else as a tiny one in the first bin. A probability beside the edge of a bin is taken
// from float64 (kernel.Exact), and so is its bin. In the first bin and of weight 1 any other is rounded to fixed point
// from the exact product (fixedpoint.RoundProduct).
// A product above 1 + 2^-20, a negative one or NaN is ErrValue; after an error nothing has changed.
func (c *ClassWise) addScaled(x *kernel.Exact, v []float32, y int, w float64, wf int64) error {
	if err := checkEach(x.Row, v); err != nil {
		return err
	}
	c.addEach(x, v, w, wf)
	c.t.at(c.key(y, x.Beside(scaled(x, v, y), y, c.m)))[cWA] += wf
	c.n++
	c.w += wf
	return nil
}

func checkEach(r *kernel.Row, v []float32) error {
	limit := float32((1 + fixedpoint.Slack) / r.Scale)
	for k, x := range v {
		if !(x >= 0 && x <= limit) {
			return fmt.Errorf("probability of class %d is %v, allowed 0 to 1: %w", k, float64(x)*r.Scale, ErrValue)
		}
	}
	return nil
}

// addEach adds the probabilities one by one.
func (c *ClassWise) addEach(x *kernel.Exact, v []float32, w float64, wf int64) {
	for k := range v {
		p := scaled(x, v, k)
		beside := p > c.clear && kernel.BesideEdge(p, c.m)
		if beside {
			p = x.Prob(k)
		}
		if p <= c.edges[1] && p > 0 {
			if w == 1 && !beside {
				c.dense[k] += fixedpoint.RoundProduct(v[k], x.Row.Scale)
			} else {
				c.dense[k] += fix(p * w)
			}
			continue
		}
		e := c.t.at(c.key(k, p))
		e[cN]++
		e[cW] += wf
		e[cWP] += fix(p * w)
	}
}

func exactOf(r *kernel.Row, v, z []float32) kernel.Exact {
	if z == nil {
		return kernel.Exact{Row: r, Scores: v, Probs: true}
	}
	return kernel.Exact{Row: r, Scores: z}
}

// scaled returns v_k·Scale; in place of one that is 0 in float32 only, the smallest positive float64.
func scaled(x *kernel.Exact, v []float32, k int) float64 {
	if v[k] != 0 {
		return min(float64(v[k])*x.Row.Scale, 1)
	}
	if trueZero(x, k) {
		return 0
	}
	return math.SmallestNonzeroFloat64
}

func trueZero(x *kernel.Exact, k int) bool { return x.Probs || x.Row.Underflows(x.Scores[k]) }
