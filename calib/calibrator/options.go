package calibrator

import (
	"fmt"
	"math"
)

// Options are the settings of a fit; the zero value is the default. A method reads the settings that are its own
// and leaves the others alone.
type Options struct {
	// Probs says that the scores are probabilities. They are fitted as log-probabilities, a zero as the
	// smallest positive value of the input type.
	Probs bool
	// Bins is the number of bins of histogram, histogram_width and scaling_binning, 1..100,000; 0 is DefaultBins.
	Bins int
	// SoftBins are those of temperature_sbece.
	SoftBins SoftBins
	// ODIR are the penalties of dirichlet and matrix.
	ODIR ODIR
	// LossScaling is class-wise loss scaling, for the methods that are Scalable.
	LossScaling LossScaling
	// Parameterised are the settings of parameterised_temperature.
	Parameterised Parameterised
	// Knots is the number of knots of spline, 2..MaxSplineKnots; 0 is 6.
	Knots int
	// Residual makes spline fit accuracy less confidence: see SplineSettings.
	Residual bool
	// Accuracy is the target of metacal_accuracy: the accuracy wanted of the rows that are kept, in (0, 1); 0 is half
	// the error of the fitted rows. See MetaCalSettings.
	Accuracy float64
	// Miscoverage is the target of metacal_miscoverage: the share of right rows that may be given up, in (0, 1);
	// 0 is 0.05.
	Miscoverage float64
	// MetaCal are the other settings of Meta-Cal: its Constraint and Target must be left at their zero values, for the
	// method and the two fields above say them.
	MetaCal MetaCalSettings
	// Seed is that of the methods that draw, those whose Method is Seeded. The same seed gives the same bits.
	Seed uint64
}

// DefaultBins is the number of bins where Options has none.
const DefaultBins = 15

func (o Options) bins() int {
	if o.Bins == 0 {
		return DefaultBins
	}
	return o.Bins
}

// SoftBins are the settings of temperature scaling by SB-ECE. The zero value is the default, that of the metric.
type SoftBins struct {
	// Bins is M, the number of soft bins on [0, 1], 1..MaxSoftBins; 0 is 15.
	Bins int
	// Temperature is T of the membership softmax_j(-(c - ξ_j)²/T), finite and above 0; 0 is 0.01.
	Temperature float64
	// Norm is p, finite and ≥ 1; 0 is 2.
	Norm float64
}

// MaxSoftBins bounds SoftBins.Bins.
const MaxSoftBins = 1000

func (b SoftBins) withDefaults() (SoftBins, error) {
	if b.Bins == 0 {
		b.Bins = 15
	}
	if b.Temperature == 0 {
		b.Temperature = 0.01
	}
	if b.Norm == 0 {
		b.Norm = 2
	}
	switch {
	case b.Bins < 1 || b.Bins > MaxSoftBins:
		return b, fmt.Errorf("soft bins: %d, allowed 1..%d", b.Bins, MaxSoftBins)
	case !(b.Temperature > 0) || math.IsInf(b.Temperature, 0):
		return b, fmt.Errorf("soft bins: temperature %g, allowed are finite values above 0", b.Temperature)
	case !(b.Norm >= 1) || math.IsInf(b.Norm, 0):
		return b, fmt.Errorf("soft bins: norm %g, allowed are finite values from 1", b.Norm)
	}
	return b, nil
}

// Parameterised are the settings of parameterised temperature scaling. The zero value is the default.
type Parameterised struct {
	// Top is s, how many of the largest logits the network sees, 1..MaxTop; 0 is 10, the paper's.
	Top int
	// Hidden is the width of the two hidden layers, 1..MaxHidden; 0 is 5, the paper's.
	Hidden int
	// Steps bounds the iterations of the optimiser, 1..100,000; 0 is 500.
	Steps int
	// Ridge is the weight, in rows, of the squared distance from plain temperature scaling, finite and ≥ 0; 0 is
	// DefaultRidge. The paper has none; without one the network bends to a few thousand rows as far as they let it.
	Ridge float64
	// MSE fits the squared error of the probabilities, as the paper does, in place of the NLL.
	MSE bool

	warm *[]float64 // θ to start from where that is better, and θ that was found
}

// DefaultRidge is the ridge of Parameterised where none is set: on real logits the held-out NLL was best near it,
// with 500 rows as with 5,000.
const DefaultRidge = 10

// Bounds of Parameterised.
const (
	MaxTop    = 1000
	MaxHidden = 100
)

func (p Parameterised) withDefaults() (Parameterised, error) {
	for _, f := range []struct {
		name     string
		v        *int
		def, top int
	}{{"top", &p.Top, 10, MaxTop}, {"hidden", &p.Hidden, 5, MaxHidden}, {"steps", &p.Steps, 500, 100_000}} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v < 1 || *f.v > f.top {
			return p, fmt.Errorf("%s: %d, allowed 1..%d", f.name, *f.v, f.top)
		}
	}
	if !(p.Ridge >= 0) || math.IsInf(p.Ridge, 0) {
		return p, fmt.Errorf("ridge: %g, allowed are finite values from 0", p.Ridge)
	}
	if p.Ridge == 0 {
		p.Ridge = DefaultRidge
	}
	return p, nil
}
