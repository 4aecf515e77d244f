package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
)

// setting is a flag for a setting of some methods.
type setting struct {
	flag    string
	methods []string                      // none: class-wise loss scaling
	lo, hi  float64                       // allowed values; hi is MaxFloat64 where any finite one is
	open    bool                          // lo and hi themselves are not allowed
	value   func(*calibrator.Options) any // *int, *float64 or *bool
	usage   string
}

// settings are the flags of methods' own settings. Zero stands for the default in calibrator.Options, and is refused here.
var settings = []setting{
	{"bins", []string{"histogram", "histogram_width", "scaling_binning"}, 1, 100_000, false,
		func(o *calibrator.Options) any { return &o.Bins }, "bins (default 15)"},
	{"soft-bins", []string{"temperature_sbece"}, 1, calibrator.MaxSoftBins, false,
		func(o *calibrator.Options) any { return &o.SoftBins.Bins }, "soft bins (default 15)"},
	{"soft-temperature", []string{"temperature_sbece"}, 0, math.MaxFloat64, true,
		func(o *calibrator.Options) any { return &o.SoftBins.Temperature }, "temperature of the soft bins (default 0.01)"},
	{"norm", []string{"temperature_sbece"}, 1, math.MaxFloat64, false,
		func(o *calibrator.Options) any { return &o.SoftBins.Norm }, "p of SB-ECE (default 2)"},
	{"lambda", []string{"matrix", "dirichlet"}, 0, math.MaxFloat64, true, func(o *calibrator.Options) any { return &o.ODIR.OffDiagonal },
		"penalty of the off-diagonal weights (default K(K-1)/2n·1600)"},
	{"mu", []string{"matrix", "dirichlet"}, 0, math.MaxFloat64, true,
		func(o *calibrator.Options) any { return &o.ODIR.Intercept }, "penalty of the intercepts (default K/2n·11.1)"},
	{"kappa", []string{"matrix", "dirichlet"}, 0, math.MaxFloat64, true, func(o *calibrator.Options) any { return &o.ODIR.Diagonal },
		"penalty of the diagonal's spread (default K/2n·100, or none where --lambda and --mu are set)"},
	{"knots", []string{"spline"}, 2, calibrator.MaxSplineKnots, false, func(o *calibrator.Options) any { return &o.Knots }, "knots (default 6)"},
	{"residual", []string{"spline"}, 0, 0, false,
		func(o *calibrator.Options) any { return &o.Residual }, "fit what is left of the accuracy after the confidence"},
	{"top", []string{"parameterised_temperature"}, 1, calibrator.MaxTop, false,
		func(o *calibrator.Options) any { return &o.Parameterised.Top }, "how many of the largest logits the network sees (default 10)"},
	{"hidden", []string{"parameterised_temperature"}, 1, calibrator.MaxHidden, false,
		func(o *calibrator.Options) any { return &o.Parameterised.Hidden }, "width of the two hidden layers (default 5)"},
	{"steps", []string{"parameterised_temperature"}, 1, 100_000, false,
		func(o *calibrator.Options) any { return &o.Parameterised.Steps }, "iterations at most (default 500)"},
	{"ridge", []string{"parameterised_temperature"}, 0, math.MaxFloat64, true,
		func(o *calibrator.Options) any { return &o.Parameterised.Ridge }, "weight, in rows, of the distance from one temperature (default 10)"},
	{"mse", []string{"parameterised_temperature"}, 0, 0, false,
		func(o *calibrator.Options) any { return &o.Parameterised.MSE }, "fit the squared error instead of the NLL"},
	{"accuracy", []string{"metacal_accuracy"}, 0, 1, true,
		func(o *calibrator.Options) any { return &o.Accuracy }, "accuracy wanted of the rows that are kept (default: half the error)"},
	{"miscoverage", []string{"metacal_miscoverage"}, 0, 1, true,
		func(o *calibrator.Options) any { return &o.Miscoverage }, "share of right rows that may be given up (default 0.05)"},
	{"delta", []string{"metacal_miscoverage", "metacal_accuracy"}, 0, 1, true, func(o *calibrator.Options) any { return &o.MetaCal.Delta },
		"keep to the target with probability 1 - delta (default: on average)"},
	{"rank-every", []string{"metacal_miscoverage", "metacal_accuracy"}, 1, 1_000_000, false, func(o *calibrator.Options) any { return &o.MetaCal.RankEvery },
		"one row in so many sets the threshold; 1: all, and they fit too (default 10, or fewer of few rows)"},
	{"alpha", nil, 0.1, 100, false, func(o *calibrator.Options) any { return &o.LossScaling.Alpha }, "α, up to ln(K)/2 (default: chosen by the fit)"},
	{"beta", nil, 1.5, 2, false, func(o *calibrator.Options) any { return &o.LossScaling.Beta }, "β (default: chosen by the fit)"},
	{"printed", nil, 0, 0, false, func(o *calibrator.Options) any { return &o.LossScaling.Printed }, "sums and population deviation, as the paper prints it"},
}

// owner is what a setting belongs to, for help and errors.
func (s setting) owner() string {
	if s.methods == nil {
		return "--loss-scaling"
	}
	return strings.Join(s.methods, ", ")
}

// addSettings adds the flags whose methods there are.
func addSettings(cmd *cobra.Command, opt *calibrator.Options) {
	for _, s := range settings {
		if s.methods != nil && !slices.ContainsFunc(s.methods, known) {
			continue
		}
		usage := s.owner() + ": " + s.usage
		switch v := s.value(opt).(type) {
		case *int:
			cmd.Flags().IntVar(v, s.flag, 0, usage)
		case *float64:
			cmd.Flags().Float64Var(v, s.flag, 0, usage)
		case *bool:
			cmd.Flags().BoolVar(v, s.flag, false, usage)
		}
	}
}

func known(method string) bool {
	_, err := calibrator.Lookup(method)
	return err == nil
}

// checkSettings refuses values out of range, and settings of methods that are not asked for.
func checkSettings(cmd *cobra.Command, opt calibrator.Options, methods []string) error {
	for _, s := range settings {
		if f := cmd.Flags().Lookup(s.flag); f == nil || !f.Changed {
			continue
		}
		used := func(name string) bool {
			base, scaled := strings.CutSuffix(name, calibrator.Suffix)
			return s.methods == nil && scaled || slices.Contains(s.methods, base)
		}
		if !slices.ContainsFunc(methods, used) {
			return usageErrorf("--%s: a setting of %s, which is not asked for", s.flag, s.owner())
		}
		var x float64
		switch v := s.value(&opt).(type) {
		case *int:
			x = float64(*v)
		case *float64:
			x = *v
		default:
			continue
		}
		if s.open && !(x > s.lo && (x < s.hi || s.hi == math.MaxFloat64 && x <= s.hi)) || !s.open && !(x >= s.lo && x <= s.hi) {
			return usageErrorf("--%s %s: allowed are %s", s.flag, plainNumber(x), s.allowed())
		}
	}
	return nil
}

func (s setting) allowed() string {
	switch {
	case s.hi == math.MaxFloat64 && s.open:
		return fmt.Sprintf("finite values above %g", s.lo)
	case s.hi == math.MaxFloat64:
		return fmt.Sprintf("finite values from %g", s.lo)
	case s.open:
		return fmt.Sprintf("values between %g and %g", s.lo, s.hi)
	}
	return plainNumber(s.lo) + ".." + plainNumber(s.hi)
}

// plainNumber writes whole numbers as a user does, without an exponent.
func plainNumber(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// candidates are the methods that --method, --skip and --loss-scaling ask for, in their order.
func (f fitFlags) candidates(cmd *cobra.Command) ([]compare.Candidate, error) {
	if f.lossScaling != "off" && f.lossScaling != "on" && f.lossScaling != "both" {
		return nil, usageErrorf("--loss-scaling %q: allowed are off, on and both", f.lossScaling)
	}
	asked := strings.Split(f.method, ",")
	all := f.method == "all"
	if all {
		asked = methodNames()
	}
	if f.skip != "" {
		if !all {
			return nil, usageErrorf("--skip: needs --method all")
		}
		for _, name := range strings.Split(f.skip, ",") {
			if !slices.Contains(asked, name) {
				return nil, unknownMethod("skip", name)
			}
			asked = slices.DeleteFunc(asked, func(s string) bool { return s == name })
		}
	}
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range asked {
		m, err := calibrator.Lookup(name)
		switch {
		case err != nil:
			return nil, unknownMethod("method", name)
		case strings.HasSuffix(name, calibrator.Suffix) || f.lossScaling == "off" || !m.Scalable && len(asked) > 1:
			add(name)
		case !m.Scalable:
			return nil, usageErrorf("--loss-scaling %s: not for %s, allowed are %s", f.lossScaling, name, strings.Join(scalableNames(), ", "))
		default:
			if f.lossScaling == "both" {
				add(name)
			}
			add(name + calibrator.Suffix)
		}
	}
	if len(names) == 0 {
		return nil, usageErrorf("--skip %s: no method is left", f.skip)
	}
	if err := checkSettings(cmd, f.opt, names); err != nil {
		return nil, err
	}
	out := make([]compare.Candidate, len(names))
	for i, name := range names {
		out[i] = compare.Candidate{Name: name, Options: f.opt}
	}
	return out, nil
}

func methodNames() (names []string) {
	for _, m := range calibrator.Methods() {
		names = append(names, m.Name)
	}
	return names
}

func scalableNames() (names []string) {
	for _, m := range calibrator.Methods() {
		if m.Scalable {
			names = append(names, m.Name)
		}
	}
	return names
}

// unknownMethod lists the names that are near or contain what was asked for, and else all.
func unknownMethod(flag, name string) error {
	names := methodNames()
	base, scaled := strings.CutSuffix(name, calibrator.Suffix)
	if scaled && slices.Contains(names, base) {
		return usageErrorf("--%s %s: class-wise loss scaling is for %s", flag, name, strings.Join(scalableNames(), ", "))
	}
	near := &cobra.Command{SuggestionsMinimumDistance: max(1, len(base)/3)}
	for _, s := range names {
		near.AddCommand(&cobra.Command{Use: s, Run: func(*cobra.Command, []string) {}})
	}
	suggestions := near.SuggestionsFor(base)
	for _, s := range names {
		if len(base) > 2 && strings.Contains(s, base) && !slices.Contains(suggestions, s) {
			suggestions = append(suggestions, s)
		}
	}
	if len(suggestions) > 0 {
		return usageErrorf("--%s %q: unknown method; did you mean %s?", flag, name, strings.Join(suggestions, ", "))
	}
	return usageErrorf("--%s %q: unknown method, allowed are all, %s", flag, name, strings.Join(names, ", "))
}

// check validates how rows are held out; share is that of --holdout, 0 where it names a file or is not set.
func (f fitFlags) check(candidates int) (share float64, err error) {
	if x, err := strconv.ParseFloat(f.holdout, 64); err == nil {
		if !(x > 0 && x < 1) {
			return 0, usageErrorf("--holdout %s: a share must be between 0 and 1; a file of that name is ./%s", f.holdout, f.holdout)
		}
		share = x
	}
	switch {
	case f.folds != 0 && f.folds < 2:
		return 0, usageErrorf("--folds %d: must be 2 or more", f.folds)
	case f.folds != 0 && f.holdout != "":
		return 0, usageErrorf("--folds: not with --holdout")
	case f.metricBins == 0:
		return 0, usageErrorf("--metric-bins 0: must be positive")
	case f.holdoutLabels != "" && (f.holdout == "" || share != 0):
		return 0, usageErrorf("--holdout-labels: needs a file in --holdout")
	}
	if _, err := metric.Basic(metric.Rows{K: 2}, f.metricOptions()); err != nil {
		return 0, usageErrorf("--metric-%w", err) // "bins: …, allowed …"
	}
	if candidates > 1 && f.holdout == "" && f.folds == 0 {
		const half = 0.5
		share = half
	}
	return share, nil
}
