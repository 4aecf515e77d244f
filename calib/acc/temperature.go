package acc

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/binenc"
)

// CurvePoints is the number of inverse temperatures of a TemperatureCurve.
const CurvePoints = 24

// plastic is the plastic ratio ρ, the real root of ρ³ = ρ + 1. β_j = β_0·ρ^j then obeys β_j = β_{j-2} + β_{j-3}, so
// exp(β_j·d) = exp(β_{j-2}·d)·exp(β_{j-3}·d): three exponentials a class serve all the points.
const plastic = 1.3247179572447460260

// curveFirst is β_0. A fit needs β from 1/20 to 20, a ratio of 400; the 23 steps make 642. One point lies below that
// range and two above it, since interpolation is less exact in the first and the last piece.
const curveFirst = 1 / 22.0

var curveBetas = func() (b [CurvePoints]float64) {
	b[0], b[1], b[2] = curveFirst, curveFirst*plastic, curveFirst*plastic*plastic
	for j := 3; j < CurvePoints; j++ {
		b[j] = b[j-2] + b[j-3]
	}
	return b
}()

// A class is left out where d < curveLeast and, from the fourth point on, where exp(β·d) < curveSmall, about
// exp(-44.4). Of K = 65,536 classes, all at this value, the error of ln S (S ≥ 1) is 4e-15 and that of the slope
// K·2^-64·44.4/β_0 = 3.5e-12 nats, small against the rounding to 2^-32.
const (
	curveSmall = 0x1p-64
	curveLeast = -44.4 / curveFirst
)

// TemperatureCurve holds the NLL of labelled rows, and its slope, as functions of the temperature T = 1/β at fixed
// points, so that a temperature is fitted to any merged set of rows without the rows (Fit):
//
//	N, Σw,  Σ w·L(β_j),  Σ w·L'(β_j),  β_j = ρ^j/22,  j = 0..23
//	L(β) = ln Σ_k exp(β z_k) - β z_y,  L'(β) = E_p[z] - z_y,  p = softmax(β z)
//
// in nats. ρ = 1.3247 is the plastic ratio; T_j = 1/β_j falls from 22 to 0.0343. The zero value is empty and ready for use. A row's w·L and w·L' saturate at ±2^62: scores so wide apart leave a visible mark, and
// the sums stay mergeable.
// Reference for the fitted family: Guo et al., On Calibration of Modern Neural Networks, ICML 2017.
type TemperatureCurve struct {
	n, w int64
	sums [CurvePoints]curveSum
}

type curveSum struct{ nll, slope i128 } // Invariant: nll ≥ 0.

// AddLogits adds a row of logits z with label y and weight w to c, in one pass over z. It allocates nothing.
// A score that is NaN or infinite, a label outside [0, len(z)) or a weight outside (0, 2^31) is ErrValue, and fewer than two
// scores are ErrShape; nothing is changed then. Probabilities q go in as ln q (kernel.LogProb).
func AddLogits[T kernel.Float](c *TemperatureCurve, z []T, y int, w float64) error {
	if len(z) < 2 {
		return fmt.Errorf("%d scores in a row, allowed are 2 and more: %w", len(z), ErrShape)
	}
	if y < 0 || y >= len(z) {
		return fmt.Errorf("label is %d, allowed 0 to %d: %w", y, len(z)-1, ErrValue)
	}
	if err := checkWeight(w); err != nil {
		return err
	}
	arg, ok := largest(z)
	if !ok {
		return fmt.Errorf("a score is NaN or infinite: %w", ErrValue)
	}
	var m curveMoments
	top := float64(z[arg])
	for k, v := range z {
		if k != arg {
			m.add(float64(v) - top)
		}
	}
	d := m.row(float64(z[y])-top, w)
	return c.Merge(&d)
}

// largest returns the index of the largest score, and false where a score is NaN or infinite.
func largest[T kernel.Float](z []T) (arg int, ok bool) {
	bad := T(0) // stays 0 for finite scores; NaN and infinities make it NaN
	for k, v := range z {
		bad += v * 0
		if v > z[arg] {
			arg = k
		}
	}
	return arg, bad == 0
}

// curveMoments are one row's sums over the classes but the predicted one, whose exp(β·0) is 1 everywhere:
// rest_j = Σ exp(β_j d_k) and ed_j = Σ exp(β_j d_k)·d_k, d_k = z_k - max z ≤ 0.
type curveMoments struct{ rest, ed [CurvePoints]float64 }

// add adds a class. Products are converted so that no platform fuses them into a sum.
func (m *curveMoments) add(d float64) {
	if d < curveLeast {
		return
	}
	// x, x1 and x2 are the powers at j, j-1 and j-2; those before β_2 are exponentials.
	x2, x1, x := math.Exp(d*curveBetas[0]), math.Exp(d*curveBetas[1]), math.Exp(d*curveBetas[2])
	m.rest[0] += x2
	m.ed[0] += float64(x2 * d)
	m.rest[1] += x1
	m.ed[1] += float64(x1 * d)
	m.rest[2] += x
	m.ed[2] += float64(x * d)
	for j := 3; j < CurvePoints; j++ {
		x, x1, x2 = float64(x1*x2), x, x1
		if x < curveSmall {
			return
		}
		m.rest[j] += x
		m.ed[j] += float64(x * d)
	}
}

// row returns the sums of the row, dy being the d of its label.
func (m *curveMoments) row(dy, w float64) TemperatureCurve {
	r := TemperatureCurve{n: 1, w: fix(w)}
	for j := range r.sums {
		nll := math.Log1p(m.rest[j]) - float64(curveBetas[j]*dy)
		slope := m.ed[j]/(1+m.rest[j]) - dy
		r.sums[j] = curveSum{fixSum(w * nll), fixSum(w * slope)}
	}
	return r
}

// fixSum is fix128, faster where |x| is small.
func fixSum(x float64) i128 {
	if math.Abs(x) < fixFast {
		return int128(fix(x))
	}
	return fix128(x)
}

// Total returns the number of rows and Σw.
func (c *TemperatureCurve) Total() (n int64, w float64) { return c.n, unfix(c.w) }

// Merge adds the rows of o, which stays as it is. After ErrOverflow nothing has changed.
func (c *TemperatureCurve) Merge(o *TemperatureCurve) error {
	if err := checkRoom(c.n, c.w, o.n, o.w); err != nil {
		return err
	}
	d := TemperatureCurve{n: c.n + o.n, w: c.w + o.w}
	for j := range d.sums {
		var ok1, ok2 bool
		d.sums[j].nll, ok1 = c.sums[j].nll.add(o.sums[j].nll)
		d.sums[j].slope, ok2 = c.sums[j].slope.add(o.sums[j].slope)
		if !ok1 || !ok2 {
			return fmt.Errorf("add a temperature curve of %d rows to one of %d: %w", o.n, c.n, ErrOverflow)
		}
	}
	*c = d
	return nil
}

// Reset sets all sums to 0.
func (c *TemperatureCurve) Reset() { *c = TemperatureCurve{} }

// Clone returns a copy.
func (c *TemperatureCurve) Clone() *TemperatureCurve {
	d := *c
	return &d
}

const curveVersion = 1

// AppendBinary appends the encoding (docs/format.md, TemperatureCurve).
func (c *TemperatureCurve) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, curveVersion)
	b = appendTotal(b, c.n, c.w)
	if c.n == 0 {
		return b, nil
	}
	for _, s := range c.sums {
		b = s.slope.append(s.nll.append(b))
	}
	return b, nil
}

// UnmarshalBinary replaces the contents by the encoded ones; after an error they are as they were.
func (c *TemperatureCurve) UnmarshalBinary(data []byte) error {
	r := binenc.NewReader(data)
	r.Version(curveVersion)
	var d TemperatureCurve
	d.n, d.w = readTotal(&r)
	if d.n > 0 {
		for j := range d.sums {
			s := curveSum{nll: readI128(&r), slope: readI128(&r)}
			if s.nll.hi < 0 {
				r.Failf("negative NLL at point %d", j)
			}
			d.sums[j] = s
		}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode temperature curve: %w", err)
	}
	*c = d
	return nil
}
