package calibrator

import (
	"fmt"
	"math"
	"sort"

	"github.com/plumbline/plumbline/calib/kernel"
)

// maxBins bounds the bins of Histogram and ScalingBinning.
const maxBins = 100_000

// Binning is how the edges of bins are laid.
type Binning int

// The binnings. Equal mass puts as many rows in each bin as ties allow: equal confidences share a bin, so there
// may be fewer bins than asked for.
const (
	EqualMass Binning = iota
	EqualWidth
)

// Histogram is histogram binning of the top confidence: bins (e_j, e_j+1] of [0, 1], each with one value, with the
// K-class vector of Scalar. Make it with FitHistogram.
// Reference: Zadrozny and Elkan, Obtaining calibrated probability estimates from decision trees and naive Bayesian
// classifiers, ICML 2001.
type Histogram struct{ p binParams }

type binParams struct {
	Edges  []float64 `json:"edges"`  // M+1, from 0 to 1
	Values []float64 `json:"values"` // M
}

func (b binParams) at(conf float64) float64 {
	if conf != conf {
		return conf
	}
	return b.Values[binOf(b.Edges, conf)]
}

func (b binParams) check() error {
	m := len(b.Values)
	if m < 1 || m > maxBins || len(b.Edges) != m+1 || b.Edges[0] != 0 || b.Edges[m] != 1 {
		return fmt.Errorf("edges, values: %d, %d, allowed are M+1 edges from 0 to 1 for M values, M 1..%d",
			len(b.Edges), m, maxBins)
	}
	if err := rising("edges", b.Edges); err != nil {
		return err
	}
	return within("value", b.Values, 0, 1)
}

// binOf is the j with conf in (e_j, e_j+1]; the outer bins take what lies outside.
func binOf(edges []float64, conf float64) int {
	j := sort.SearchFloat64s(edges, conf) - 1
	return min(max(j, 0), len(edges)-2)
}

// Map implements Scalar.
func (c *Histogram) Map(conf float64) float64 { return c.p.at(conf) }

// Apply implements Calibrator.
func (c *Histogram) Apply(p, z []float64) { applyTop(c, p, z) }

// Method implements Calibrator; it is "histogram".
func (*Histogram) Method() string { return "histogram" }

func (c *Histogram) params() any { return &c.p }

func (c *Histogram) check() error { return c.p.check() }

// FitHistogram fits at most m bins, 1 ≤ m ≤ 100,000, with the weighted accuracy of their rows as values; an empty
// bin has its midpoint. Errors are those of FitTemperature.
func FitHistogram[T kernel.Float](d Data[T], m int, by Binning, opts Options) (*Histogram, Report, error) {
	s, err := newSample("histogram", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	if err := checkBins(s.method, m, by); err != nil {
		return nil, Report{}, err
	}
	c := &Histogram{p: histogram(s.countOutcomes().groups(), m, by)}
	return finish(s, c, len(c.p.Values))
}

func histogram(groups []group, m int, by Binning) binParams {
	edges := widthEdges(m)
	if by == EqualMass {
		edges = massEdges(groups, m)
	}
	return binMeans(edges, groups)
}

func checkBins(method string, m int, by Binning) error {
	if m < 1 || m > maxBins {
		return fmt.Errorf("fit %s: %d bins, allowed 1..%d", method, m, maxBins)
	}
	if by != EqualMass && by != EqualWidth {
		return fmt.Errorf("fit %s: binning %d, allowed are EqualMass and EqualWidth", method, by)
	}
	return nil
}

// binMeans returns bins with the share of the right rows as values; an empty bin has its midpoint.
func binMeans(edges []float64, groups []group) binParams {
	m := len(edges) - 1
	sum, mass := make([]float64, m), make([]float64, m)
	for _, g := range groups {
		j := binOf(edges, g.c)
		sum[j] += g.hits
		mass[j] += g.w
	}
	for j := range sum {
		if mass[j] > 0 {
			sum[j] = min(1, sum[j]/mass[j])
		} else {
			sum[j] = (edges[j] + edges[j+1]) / 2
		}
	}
	return binParams{Edges: edges, Values: sum}
}

func widthEdges(m int) []float64 {
	e := make([]float64, m+1)
	for j := range e {
		e[j] = float64(j) / float64(m)
	}
	return e
}

// massEdges ends a bin at the first confidence where the cumulative weight reaches the share of the bins so far. Where
// all weights are whole, shares are, too: without ties bins differ by at most one row, the larger ones first. Edges lie
// midway between confidences, so that the fitted rows are not on them.
func massEdges(groups []group, m int) []float64 {
	var total, mass, larger float64
	whole := true
	for _, g := range groups {
		total += g.w
		whole = whole && g.w == math.Trunc(g.w)
	}
	size := total / float64(m)
	if whole {
		size = math.Floor(size)
		larger = total - size*float64(m)
	}
	edges := []float64{0}
	for i, g := range groups[:len(groups)-1] {
		mass += g.w
		x, next := g.c, groups[i+1].c
		bin := float64(len(edges))
		target := bin*size + min(bin, larger)
		if len(edges) == m || mass < target*(1-1e-12) {
			continue
		}
		mid := x + (next-x)/2
		if mid >= next { // neighbours in float64: (…, x] is the bin
			mid = x
		}
		if mid > edges[len(edges)-1] && mid < 1 {
			edges = append(edges, mid)
		}
	}
	return append(edges, 1)
}
