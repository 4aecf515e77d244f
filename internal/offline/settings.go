package offline

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
)

// Setting is a flag of plumbline fit for a setting of some methods.
type Setting struct {
	Flag    string
	Methods []string                      // none: class-wise loss scaling
	Lo, Hi  float64                       // allowed values; Hi is anyFinite where any finite one is
	Open    bool                          // Lo and Hi themselves are not allowed
	Value   func(*calibrator.Options) any // *int, *float64 or *bool
	Usage   string
}

const anyFinite = math.MaxFloat64

// Methods that share settings.
var (
	sbece         = []string{"temperature_sbece"}
	odir          = []string{"matrix", "dirichlet"}
	parameterised = []string{"parameterised_temperature"}
	metacal       = []string{"metacal_miscoverage", "metacal_accuracy"}
)

// Settings are all of them. Zero stands for the default in calibrator.Options, and is refused here.
var Settings = []Setting{
	{
		Flag: "bins", Methods: []string{"histogram", "histogram_width", "scaling_binning"}, Lo: 1, Hi: 100_000,
		Value: func(o *calibrator.Options) any { return &o.Bins },
		Usage: "bins (default 15)",
	},
	{
		Flag: "soft-bins", Methods: sbece, Lo: 1, Hi: calibrator.MaxSoftBins,
		Value: func(o *calibrator.Options) any { return &o.SoftBins.Bins },
		Usage: "soft bins (default 15)",
	},
	{
		Flag: "soft-temperature", Methods: sbece, Hi: anyFinite, Open: true,
		Value: func(o *calibrator.Options) any { return &o.SoftBins.Temperature },
		Usage: "temperature of the soft bins (default 0.01)",
	},
	{
		Flag: "norm", Methods: sbece, Lo: 1, Hi: anyFinite,
		Value: func(o *calibrator.Options) any { return &o.SoftBins.Norm },
		Usage: "p of SB-ECE (default 2)",
	},
	{
		Flag: "lambda", Methods: odir, Hi: anyFinite, Open: true,
		Value: func(o *calibrator.Options) any { return &o.ODIR.OffDiagonal },
		Usage: "penalty of the off-diagonal weights (default K(K-1)/2n·1600)",
	},
	{
		Flag: "mu", Methods: odir, Hi: anyFinite, Open: true,
		Value: func(o *calibrator.Options) any { return &o.ODIR.Intercept },
		Usage: "penalty of the intercepts (default K/2n·11.1)",
	},
	{
		Flag: "kappa", Methods: odir, Hi: anyFinite, Open: true,
		Value: func(o *calibrator.Options) any { return &o.ODIR.Diagonal },
		Usage: "penalty of the diagonal's spread (default K/2n·100; none with --lambda and --mu)",
	},
	{
		Flag: "knots", Methods: []string{"spline"}, Lo: 2, Hi: calibrator.MaxSplineKnots,
		Value: func(o *calibrator.Options) any { return &o.Knots },
		Usage: "knots (default 6)",
	},
	{
		Flag: "residual", Methods: []string{"spline"},
		Value: func(o *calibrator.Options) any { return &o.Residual },
		Usage: "fit accuracy less confidence",
	},
	{
		Flag: "top", Methods: parameterised, Lo: 1, Hi: calibrator.MaxTop,
		Value: func(o *calibrator.Options) any { return &o.Parameterised.Top },
		Usage: "number of largest logits in the input (default 10)",
	},
	{
		Flag: "hidden", Methods: parameterised, Lo: 1, Hi: calibrator.MaxHidden,
		Value: func(o *calibrator.Options) any { return &o.Parameterised.Hidden },
		Usage: "width of the two hidden layers (default 5)",
	},
	{
		Flag: "steps", Methods: parameterised, Lo: 1, Hi: 100_000,
		Value: func(o *calibrator.Options) any { return &o.Parameterised.Steps },
		Usage: "most iterations (default 500)",
	},
	{
		Flag: "ridge", Methods: parameterised, Hi: anyFinite, Open: true,
		Value: func(o *calibrator.Options) any { return &o.Parameterised.Ridge },
		Usage: "penalty, in rows, of the distance from one temperature (default 10)",
	},
	{
		Flag: "mse", Methods: parameterised,
		Value: func(o *calibrator.Options) any { return &o.Parameterised.MSE },
		Usage: "fit the squared error instead of the NLL",
	},
	{
		Flag: "accuracy", Methods: []string{"metacal_accuracy"}, Hi: 1, Open: true,
		Value: func(o *calibrator.Options) any { return &o.Accuracy },
		Usage: "accuracy of the kept rows (default: half the error)",
	},
	{
		Flag: "miscoverage", Methods: []string{"metacal_miscoverage"}, Hi: 1, Open: true,
		Value: func(o *calibrator.Options) any { return &o.Miscoverage },
		Usage: "share of right rows that may be given up (default 0.05)",
	},
	{
		Flag: "delta", Methods: metacal, Hi: 1, Open: true,
		Value: func(o *calibrator.Options) any { return &o.MetaCal.Delta },
		Usage: "meet the target with this error probability (default: on average)",
	},
	{
		Flag: "rank-every", Methods: metacal, Lo: 1, Hi: 1_000_000,
		Value: func(o *calibrator.Options) any { return &o.MetaCal.RankEvery },
		Usage: "one row in this many sets the threshold; 1: all rows do both (default 10, fewer for few rows)",
	},
	{
		Flag: "alpha", Lo: 0.1, Hi: 100,
		Value: func(o *calibrator.Options) any { return &o.LossScaling.Alpha },
		Usage: "α, up to ln(K)/2 (default: chosen by the fit)",
	},
	{
		Flag: "beta", Lo: 1.5, Hi: 2,
		Value: func(o *calibrator.Options) any { return &o.LossScaling.Beta },
		Usage: "β (default: chosen by the fit)",
	},
	{
		Flag:  "printed",
		Value: func(o *calibrator.Options) any { return &o.LossScaling.Printed },
		Usage: "sums and population deviation, as the paper prints it",
	},
}

// Owner is what a setting belongs to, for help and errors.
func (s Setting) Owner() string {
	if s.Methods == nil {
		return "--loss-scaling"
	}
	return strings.Join(s.Methods, ", ")
}

// of reports whether a method has the setting.
func (s Setting) of(method string) bool {
	base, scaled := strings.CutSuffix(method, calibrator.Suffix)
	return s.Methods == nil && scaled || slices.Contains(s.Methods, base)
}

// CheckSettings refuses values out of range, and settings of methods that are not asked for. It looks at the flags that
// were given.
func CheckSettings(given func(flag string) bool, opt calibrator.Options, methods []string) error {
	for _, s := range Settings {
		if !given(s.Flag) {
			continue
		}
		if !slices.ContainsFunc(methods, s.of) {
			return fmt.Errorf("--%s: a setting of %s, which is not asked for", s.Flag, s.Owner())
		}
		var x float64
		switch v := s.Value(&opt).(type) {
		case *int:
			x = float64(*v)
		case *float64:
			x = *v
		default:
			continue
		}
		if !s.allows(x) {
			return fmt.Errorf("--%s %s: allowed are %s", s.Flag, plainNumber(x), s.allowed())
		}
	}
	return nil
}

func (s Setting) allows(x float64) bool {
	if !s.Open {
		return x >= s.Lo && x <= s.Hi
	}
	return x > s.Lo && (x < s.Hi || s.Hi == anyFinite && x <= s.Hi)
}

func (s Setting) allowed() string {
	switch {
	case s.Hi == anyFinite && s.Open:
		return fmt.Sprintf("finite values above %g", s.Lo)
	case s.Hi == anyFinite:
		return fmt.Sprintf("finite values from %g", s.Lo)
	case s.Open:
		return fmt.Sprintf("values between %g and %g", s.Lo, s.Hi)
	}
	return plainNumber(s.Lo) + ".." + plainNumber(s.Hi)
}

// WrongMetric returns the flag of a setting of the metrics that is not allowed, and which values are; "" = all are. A
// zero stands for the default in Options, but a user who writes it does not mean that.
func WrongMetric(opt metric.Options) (flag, allowed string) {
	for _, v := range []*int{&opt.Bins, &opt.SoftBins, &opt.Resamples} {
		if *v == 0 {
			*v = -1
		}
	}
	for _, v := range []*float64{&opt.SoftTemperature, &opt.Norm} {
		if *v == 0 {
			*v = -1
		}
	}
	_, err := metric.Evaluate(metric.Rows{K: 2}, opt)
	if err == nil {
		return "", ""
	}
	setting, rest, _ := strings.Cut(err.Error(), ": ") // "soft bins: -1, allowed 1..65536"
	_, allowed, _ = strings.Cut(rest, ", ")
	return strings.ReplaceAll(setting, " ", "-"), allowed
}

// WrongBins returns which numbers of bins of the ECE are allowed, where this one is not.
func WrongBins(bins int) (allowed string) {
	_, allowed = WrongMetric(metric.Options{Bins: bins, SoftBins: 1, SoftTemperature: 1, Norm: 1, Resamples: 1})
	return allowed
}

// plainNumber writes whole numbers as a user does, without an exponent.
func plainNumber(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
