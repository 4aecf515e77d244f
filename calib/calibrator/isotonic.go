package calibrator

import (
	"errors"
	"slices"
	"sort"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Isotonic is the non-decreasing map of the top confidence with the least squared error: thresholds x_1 < … < x_m
// with values v_1 ≤ … ≤ v_m, linear between, constant outside, with the K-class vector of Scalar. Make it with
// FitIsotonic.
// Reference: Zadrozny and Elkan, Transforming classifier scores into accurate multiclass probability estimates,
// KDD 2002.
type Isotonic struct{ p isotonicParams }

type isotonicParams struct {
	X []float64 `json:"x"`
	V []float64 `json:"v"`
}

// Map implements Scalar.
func (c *Isotonic) Map(conf float64) float64 {
	x, v := c.p.X, c.p.V
	if conf != conf {
		return conf
	}
	j := sort.SearchFloat64s(x, conf) // x_j ≥ conf
	switch {
	case j == 0:
		return v[0]
	case j == len(x):
		return v[j-1]
	}
	share := (conf - x[j-1]) / (x[j] - x[j-1])
	return min(v[j], v[j-1]+share*(v[j]-v[j-1]))
}

// Apply implements Calibrator.
func (c *Isotonic) Apply(p, z []float64) { applyTop(c, p, z) }

// Method implements Calibrator; it is "isotonic".
func (*Isotonic) Method() string { return "isotonic" }

func (c *Isotonic) params() any { return &c.p }

func (c *Isotonic) check() error {
	x, v := c.p.X, c.p.V
	if len(x) == 0 || len(x) != len(v) {
		return errors.New("x and v: allowed are lists of one length from 1")
	}
	for i := 1; i < len(x); i++ {
		if !(x[i] > x[i-1]) || !(v[i] >= v[i-1]) {
			return errors.New("x and v: allowed are a rising x and a v that does not fall")
		}
	}
	if err := within("x", x, 0, 1); err != nil {
		return err
	}
	return within("v", v, 0, 1)
}

// FitIsotonic fits by pool adjacent violators, after pooling rows of equal confidence; every block keeps its
// first and last confidence as thresholds. O(n log n). Arguments and errors are those of FitTemperature.
func FitIsotonic[T kernel.Float](z []T, k int, y []int32, w []float64, opts Options) (*Isotonic, Report, error) {
	s, err := newSample("isotonic", z, k, y, w, opts)
	if err != nil {
		return nil, Report{}, err
	}
	conf, right := s.top()
	c := &Isotonic{}
	for _, b := range pav(conf, right, s.w) {
		v := b.hits / b.w
		c.p.X, c.p.V = append(c.p.X, b.lo), append(c.p.V, v)
		if b.hi > b.lo {
			c.p.X, c.p.V = append(c.p.X, b.hi), append(c.p.V, v)
		}
	}
	r, err := s.finish(c, 2)
	if err != nil {
		return nil, Report{}, err
	}
	return c, r, nil
}

// block is a run of confidences lo..hi with one fitted value hits/w.
type block struct{ lo, hi, hits, w float64 }

// pav returns the blocks of the weighted isotonic regression of right on conf.
func pav(conf []float64, right []bool, w []float64) []block {
	order := make([]int, len(conf))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case conf[i] < conf[j]:
			return -1
		case conf[i] > conf[j]:
			return 1
		}
		return 0
	})
	var out []block
	for at := 0; at < len(order); {
		b := block{lo: conf[order[at]], hi: conf[order[at]]}
		for ; at < len(order) && conf[order[at]] == b.lo; at++ {
			b.w += w[order[at]]
			if right[order[at]] {
				b.hits += w[order[at]]
			}
		}
		for len(out) > 0 && out[len(out)-1].hits/out[len(out)-1].w >= b.hits/b.w {
			last := out[len(out)-1]
			b = block{lo: last.lo, hi: b.hi, hits: last.hits + b.hits, w: last.w + b.w}
			out = out[:len(out)-1]
		}
		out = append(out, b)
	}
	return out
}
