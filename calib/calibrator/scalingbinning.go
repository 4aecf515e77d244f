package calibrator

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/kernel"
)

// ScalingBinning is the scaling-binning calibrator of the top confidence: Platt's g, then bins of g(c) whose value
// is the mean of g in them, with the K-class vector of Scalar. Its few values make its calibration error
// measurable, and they need fewer rows than a histogram's. Make it with FitScalingBinning.
// Reference: Kumar, Liang, Ma, Verified Uncertainty Calibration, NeurIPS 2019, Section 4.
type ScalingBinning struct{ p scalingBinningParams }

type scalingBinningParams struct {
	Slope     float64   `json:"slope"`
	Intercept float64   `json:"intercept"`
	Edges     []float64 `json:"edges"` // of g(c), not of c
	Values    []float64 `json:"values"`
}

func (p scalingBinningParams) platt() Platt {
	return Platt{p: plattParams{Slope: p.Slope, Intercept: p.Intercept}}
}

func (p scalingBinningParams) bins() binParams { return binParams{Edges: p.Edges, Values: p.Values} }

// Map implements Scalar.
func (c *ScalingBinning) Map(conf float64) float64 {
	g := c.p.platt()
	return c.p.bins().at(g.Map(conf))
}

// Apply implements Calibrator.
func (c *ScalingBinning) Apply(p, z []float64) { applyTop(c, p, z) }

// Method implements Calibrator; it is "scaling_binning".
func (*ScalingBinning) Method() string { return "scaling_binning" }

func (c *ScalingBinning) params() any { return &c.p }

func (c *ScalingBinning) check() error {
	g := c.p.platt()
	if err := g.check(); err != nil {
		return err
	}
	return c.p.bins().check()
}

// FitScalingBinning fits g, lays at most m bins of equal mass in g, and takes the means, each on another third of
// the rows as the paper does: rows 0, 3, …, rows 1, 4, … and rows 2, 5, … of those of positive weight. An empty bin
// has its midpoint. It needs 3 rows. The other arguments and errors are those of FitTemperature.
func FitScalingBinning[T kernel.Float](z []T, k int, y []int32, w []float64, m int, opts Options) (*ScalingBinning, Report, error) {
	s, err := newSample("scaling_binning", z, k, y, w, opts)
	if err != nil {
		return nil, Report{}, err
	}
	if err := checkBins(s.method, m, EqualMass); err != nil {
		return nil, Report{}, err
	}
	const parts = 3
	if s.n < parts {
		return nil, Report{}, fmt.Errorf("fit %s: %d rows of positive weight, need at least %d", s.method, s.n, parts)
	}
	conf, right := s.top()
	var cs, ws [parts][]float64
	var as []bool
	for i := range conf {
		cs[i%parts], ws[i%parts] = append(cs[i%parts], conf[i]), append(ws[i%parts], s.w[i])
		if i%parts == 0 {
			as = append(as, right[i])
		}
	}
	g := Platt{}
	g.p, s.report.Iterations, s.report.Converged = platt(cs[0], as, ws[0])
	for _, part := range cs[1:] {
		for i, v := range part {
			part[i] = g.Map(v)
		}
	}
	bins := binMeans(massEdges(cs[1], ws[1], m), cs[2], cs[2], ws[2])
	c := &ScalingBinning{p: scalingBinningParams{Slope: g.p.Slope, Intercept: g.p.Intercept, Edges: bins.Edges, Values: bins.Values}}
	r, err := s.finish(c, len(bins.Values))
	if err != nil {
		return nil, Report{}, err
	}
	return c, r, nil
}
