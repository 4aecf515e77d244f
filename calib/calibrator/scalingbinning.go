package calibrator

import (
	"fmt"
	"math/bits"

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
// the rows as the paper does: row i of those of positive weight belongs to the third in which the fraction of
// 0.618…·(i+1) is, an even choice that no period of the rows' order meets. An empty bin has its midpoint. It needs 3
// rows. Errors are those of FitTemperature.
func FitScalingBinning[T kernel.Float](d Data[T], m int, opts Options) (*ScalingBinning, Report, error) {
	s, err := newSample("scaling_binning", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	if err := checkBins(s.method, m, EqualMass); err != nil {
		return nil, Report{}, err
	}
	c := &ScalingBinning{}
	if c.p, err = scalingBinning(s.countOutcomes(), m, &s.report); err != nil {
		return nil, Report{}, err
	}
	return finish(s, c, len(c.p.Values))
}

func scalingBinning(o outcomes, m int, r *Report) (scalingBinningParams, error) {
	const parts = 3
	if len(o.c) < parts {
		return scalingBinningParams{}, fmt.Errorf("fit scaling_binning: %d rows of positive weight, need at least %d",
			len(o.c), parts)
	}
	var part [parts]outcomes
	for i, c := range o.c {
		p := &part[third(i)]
		p.c, p.right, p.w = append(p.c, c), append(p.right, o.right[i]), append(p.w, o.weight(i))
	}
	g := Platt{}
	g.p, r.Iterations, r.Converged = platt(part[0])
	for _, p := range part[1:] {
		for i, v := range p.c {
			p.c[i] = g.Map(v)
		}
	}
	means := part[2].groups()
	for i := range means {
		means[i].hits = means[i].w * means[i].c // the mean of g, not of the outcomes
	}
	bins := binMeans(massEdges(part[1].groups(), m), means)
	return scalingBinningParams{Slope: g.p.Slope, Intercept: g.p.Intercept, Edges: bins.Edges, Values: bins.Values}, nil
}

// third is the part, of three, of row i; any three neighbours are in all of them or in two.
func third(i int) int {
	hi, _ := bits.Mul64(uint64(i+1)*goldenRatio, 3)
	return int(hi)
}
