package calibrator

import (
	"fmt"
	"math"
	"slices"
)

// Describe implements Calibrator.
func (Identity) Describe() string { return "identity, p = softmax(z)" }

// Describe implements Calibrator.
func (t Temperature) Describe() string { return fmt.Sprintf("temperature scaling, T = %.4g", t.t) }

// Describe implements Calibrator.
func (c *Ensemble) Describe() string {
	w := c.p.Weights
	if len(w) != 3 {
		return "ensemble temperature scaling, not made"
	}
	return fmt.Sprintf("ensemble temperature scaling, T = %.4g, weights %.3f scaled, %.3f as it is, %.3f uniform",
		c.p.T, w[0], w[1], w[2])
}

// Describe implements Calibrator.
func (c *ClassTemperature) Describe() string {
	return fmt.Sprintf("class-based temperature scaling, %d classes, T = %s", len(c.p.T), span(c.p.T))
}

// Describe implements Calibrator.
func (c *Vector) Describe() string {
	return fmt.Sprintf("vector scaling, %d classes, w = %s, b = %s", len(c.p.W), span(c.p.W), span(c.p.B))
}

// Describe implements Calibrator.
func (c *Matrix) Describe() string { return "matrix scaling, " + c.p.describe() }

// Describe implements Calibrator.
func (c *Dirichlet) Describe() string { return "Dirichlet calibration, " + c.p.describe() }

func (m matrixParams) describe() string {
	k := len(m.B)
	diagonal := make([]float64, 0, k)
	var off float64
	for i, v := range m.W {
		if i%(k+1) == 0 {
			diagonal = append(diagonal, v)
		} else {
			off = max(off, math.Abs(v))
		}
	}
	return fmt.Sprintf("%d×%d weights, diagonal %s, others up to ±%.3g, b = %s", k, k, span(diagonal), off, span(m.B))
}

// Describe implements Calibrator.
func (c *Platt) Describe() string {
	return fmt.Sprintf("Platt scaling of the top class, slope %.4g, intercept %.4g", c.p.Slope, c.p.Intercept)
}

// Describe implements Calibrator.
func (c *Beta) Describe() string {
	return fmt.Sprintf("beta calibration of the top class, a = %.4g, b = %.4g, m = %.4g", c.p.A, c.p.B, c.p.M)
}

// Describe implements Calibrator.
func (c *Isotonic) Describe() string {
	return fmt.Sprintf("isotonic regression of the top class, %d thresholds, values %s", len(c.p.X), span(c.p.V))
}

// Describe implements Calibrator.
func (c *Histogram) Describe() string {
	return fmt.Sprintf("histogram binning of the top class, %d bins, values %s", len(c.p.Values), span(c.p.Values))
}

// Describe implements Calibrator.
func (c *ScalingBinning) Describe() string {
	return fmt.Sprintf("scaling-binning of the top class, slope %.4g, intercept %.4g, %d bins", c.p.Slope,
		c.p.Intercept, len(c.p.Values))
}

// span is "least to greatest" of a list.
func span(v []float64) string {
	if len(v) == 0 {
		return "none"
	}
	return fmt.Sprintf("%.3g to %.3g", slices.Min(v), slices.Max(v))
}
