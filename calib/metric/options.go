package metric

import (
	"fmt"
	"math"
)

// Names of the confidence scoring functions (CSFs), all on [0,1].
const (
	MSP    = "msp"    // max p
	Margin = "margin" // p_(1) - p_(2)
	NegEnt = "negent" // 1 - H(p)/ln K
)

// Options are the settings of Evaluate; a zero value means the default.
type Options struct {
	Bins            int     // M of ece, mce, ace, cwece, debiased_l2; default 15
	SoftBins        int     // M of SB-ECE; default 15
	SoftTemperature float64 // T of SB-ECE; default 0.01
	Norm            float64 // p of SB-ECE, ≥ 1; default 2
	CSF             string  // what aurc, eaurc, auroc and fpr95 rank by: msp (default), margin or negent
	CDFNu           float64 // ν of the binned CDF in the detail; default 0.1
	Resamples       int     // of ece_null, ece_lo and ece_hi, and of Uncertainty; default 1000
	Seed            uint64  // of the resampling; default 0
	Uncertainty     bool    // also report the null expectation and the interval of every calibration error
	Detail          bool    // also report the bins, the soft-bin sums and the binned CDF
}

func (o *Options) soft() SoftNorm { return SoftNorm{o.SoftBins, o.SoftTemperature, o.Norm} }

func (o Options) withDefaults() (Options, error) {
	setInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	setFloat := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	setInt(&o.Bins, 15)
	setInt(&o.SoftBins, 15)
	setInt(&o.Resamples, 1000)
	setFloat(&o.SoftTemperature, 0.01)
	setFloat(&o.Norm, 2)
	setFloat(&o.CDFNu, 0.1)
	if o.CSF == "" {
		o.CSF = MSP
	}
	return o, o.validate()
}

// maxBins and maxClassBins bound what a typing error can allocate: class-wise bins are K times as many.
const (
	maxBins      = 1 << 16
	maxClassBins = 1 << 24
)

func (o Options) validate() error {
	for _, x := range []struct {
		name    string
		v, high int
	}{{"bins", o.Bins, maxBins}, {"soft bins", o.SoftBins, maxBins}, {"resamples", o.Resamples, 1 << 24}} {
		if x.v < 1 || x.v > x.high {
			return fmt.Errorf("%s: %d, allowed 1..%d", x.name, x.v, x.high)
		}
	}
	for _, x := range []struct {
		name string
		v    float64
	}{{"soft temperature", o.SoftTemperature}, {"cdf nu", o.CDFNu}} {
		if !(x.v > 0) || math.IsInf(x.v, 0) {
			return fmt.Errorf("%s: %g, allowed are finite values above 0", x.name, x.v)
		}
	}
	if !(o.Norm >= 1) || math.IsInf(o.Norm, 0) {
		return fmt.Errorf("norm: %g, allowed are finite values from 1", o.Norm)
	}
	if o.CSF != MSP && o.CSF != Margin && o.CSF != NegEnt {
		return fmt.Errorf("csf: %q, allowed are msp, margin and negent", o.CSF)
	}
	return nil
}
