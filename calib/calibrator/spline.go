package calibrator

import (
	"errors"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Spline is spline calibration of the top confidence c. With t the share of fitted rows at or below c and h(t) the
// share of all fitted rows that are at or below c and right, the accuracy at c is the slope of h,
//
//	c' = h'(t(c)),  h a natural cubic spline fitted to the cumulative accuracy by least squares
//
// kept as a table of (c, c') with straight lines between and constants outside, with the K-class vector of Scalar.
// Nothing makes c' rise with c: where the accuracy of the rows falls with the confidence, the map falls, and rows may
// change places (the classes below the top one do not). Make it with FitSpline.
// Reference: Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu, Hartley, Calibration of Neural Networks using Splines,
// ICLR 2021.
type Spline struct{ p splineParams }

type splineParams struct {
	C []float64 `json:"confidences"`
	V []float64 `json:"values"`
}

// Map implements Scalar.
func (c *Spline) Map(conf float64) float64 {
	return interpolate(c.p.C, c.p.V, conf)
}

// Apply implements Calibrator.
func (c *Spline) Apply(p, z []float64) { applyTop(c, p, z) }

// Method implements Calibrator; it is "spline".
func (*Spline) Method() string { return "spline" }

// Describe implements Calibrator.
func (c *Spline) Describe() string {
	return fmt.Sprintf("spline calibration of the top class, table of %d confidences, values %s", len(c.p.C),
		span(c.p.V))
}

func (c *Spline) params() any { return &c.p }

func (c *Spline) check() error {
	x := c.p.C
	if len(x) == 0 || len(x) != len(c.p.V) {
		return fmt.Errorf("confidences, values: %d and %d, allowed are as many of both, from 1", len(x), len(c.p.V))
	}
	if err := rising("confidences", x); err != nil {
		return err
	}
	if err := within("confidences", x, 0, 1); err != nil {
		return err
	}
	return within("values", c.p.V, 0, 1)
}

// SplineSettings are the settings of FitSpline. The zero value is the default.
type SplineSettings struct {
	// Knots is the number of equally spaced knots on [0, 1], 2..MaxSplineKnots; 0 is 6, the authors'.
	Knots int
	// Residual fits the spline to the cumulative accuracy less the cumulative confidence and adds c to its slope, as
	// the authors' released code does: few knots then bend the confidences as they are, and not a flat line.
	Residual bool
}

// MaxSplineKnots bounds SplineSettings.Knots.
const MaxSplineKnots = 200

const (
	splineKnots = 6
	// rowsPerPiece is the least number of rows for each piece of the spline; with fewer rows it has fewer knots.
	rowsPerPiece = 10
	// splineTable bounds the table. Between neighbours of 1/1024 of the rows a slope of the spline hardly changes.
	splineTable = 1024
	// splineFall is a fall of the map that the report mentions.
	splineFall = 0.02
)

// FitSpline fits the spline to the points (t_i, h_i) of the n rows and (0, 0), t_i = Σ_{j≤i} w_j/W and
// h_i = Σ_{j≤i} w_j a_j/W in ascending order of confidence, a = 1 where the top class is right. Rows of equal
// confidence share their mean accuracy, so their order is void, and their value is the mean slope over their share of t
// (the slope at t_i is the limit for one row of many; released code takes that, with t_i = (i-1)/(n-1)). With fewer
// than 10 rows a piece it takes fewer knots; the report says so, and where the map falls by more than 0.02. The table
// keeps every distinct confidence up to 1,024, and beyond that runs of equal mass. Values are clipped to
// [1/(n+2), 1 - 1/(n+2)]: the authors clip to [0, 1], and one wrong row of c' = 1 then makes the NLL infinite. O(n log
// n). Errors are those of FitTemperature.
func FitSpline[T kernel.Float](d Data[T], set SplineSettings, opts Options) (*Spline, Report, error) {
	s, err := newSample("spline", d, opts)
	if err != nil {
		return nil, Report{}, err
	}
	knots := set.Knots
	if knots == 0 {
		knots = splineKnots
	}
	if knots < 2 || knots > MaxSplineKnots {
		return nil, Report{}, fmt.Errorf("fit spline: knots: %d, allowed 2..%d", set.Knots, MaxSplineKnots)
	}
	if most := max(2, 1+s.n/rowsPerPiece); knots > most {
		s.warn("%d rows for %d knots, %d taken", s.n, knots, most)
		knots = most
	}
	table, ok := s.cumulative(set.Residual).fit(knots)
	if !ok {
		return nil, Report{}, errors.New("fit spline: no usable optimum")
	}
	c := &Spline{p: table}
	if fall, at := c.p.fall(); fall > splineFall {
		s.warn("the map falls by %.3f up to confidence %.4g", fall, at)
	}
	return finish(s, c, knots)
}

// fitSpline is FitSpline for the registry.
func fitSpline[T kernel.Float](d Data[T], opts Options) (Calibrator, Report, error) {
	return general(func(d Data[T], opts Options) (*Spline, Report, error) {
		return FitSpline(d, SplineSettings{Knots: opts.Knots, Residual: opts.Residual}, opts)
	})(d, opts)
}

// fall is the largest amount by which a value lies below an earlier one, and where.
func (p splineParams) fall() (fall, at float64) {
	var top float64
	for i, v := range p.V {
		top = max(top, v)
		if top-v > fall {
			fall, at = top-v, p.C[i]
		}
	}
	return fall, at
}

// cumulated is what the spline is fitted to: n points, and the groups of rows of equal confidence.
type cumulated struct {
	t, h, w  []float64
	groups   []tie
	residual bool
}

// tie is a group of rows of confidence c that ends at t.
type tie struct{ c, t float64 }

// cumulative sorts the rows by confidence and sums them up.
func (s *sample) cumulative(residual bool) cumulated {
	conf, right := s.top()
	order := make([]int, s.n)
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
	out := cumulated{residual: residual}
	out.add(0, 0, s.total/float64(s.n))
	var sum, hits float64
	for at := 0; at < s.n; {
		c, from := conf[order[at]], at
		var gw, ga float64
		for ; at < s.n && conf[order[at]] == c; at++ {
			gw += s.w[order[at]]
			if right[order[at]] {
				ga += s.w[order[at]]
			}
		}
		a := ga / gw
		if residual {
			a -= c
		}
		for _, i := range order[from:at] {
			sum += s.w[i]
			hits += s.w[i] * a
			out.add(min(1, sum/s.total), hits/s.total, s.w[i])
		}
		out.groups = append(out.groups, tie{c: c, t: min(1, sum/s.total)})
	}
	return out
}

func (p *cumulated) add(t, h, w float64) {
	p.t, p.h, p.w = append(p.t, t), append(p.h, h), append(p.w, w)
}

// fit returns the table of the spline's mean slopes over the groups.
func (p cumulated) fit(knots int) (splineParams, bool) {
	// The straight line from (0, 0) to the end is fitted exactly and taken off, so that the ridge pulls to it.
	line := p.h[len(p.h)-1]
	off := make([]float64, len(p.h))
	for i, h := range p.h {
		off[i] = h - line*p.t[i]
	}
	s, ok := fitNaturalSpline(p.t, off, p.w, knots)
	if !ok {
		return splineParams{}, false
	}
	var q splineParams
	var from, before, mean float64
	least := 1 / float64(len(p.h)+1) // n + 2: (0, 0) is a point
	first := p.groups[0].c
	for i, g := range p.groups {
		mean += g.c * (g.t - before)
		before = g.t
		if i < len(p.groups)-1 && len(p.groups) > splineTable && g.t < from+1.0/splineTable {
			continue // its rows belong to the next entry, at their mean confidence
		}
		c, v := g.c, line
		if g.t > from {
			c = max(first, min(g.c, mean/(g.t-from)))
			v += (s.at(g.t) - s.at(from)) / (g.t - from)
		}
		if p.residual {
			v += c
		}
		q.C, q.V = append(q.C, c), append(q.V, max(least, min(1-least, v)))
		from, mean = g.t, 0
		if i < len(p.groups)-1 {
			first = p.groups[i+1].c
		}
	}
	return q, true
}
