package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/internal/progress"
)

// fitFlags are the flags of `plumbline fit`.
type fitFlags struct {
	inputFlags
	choice                 offline.Choice
	holdout, holdoutLabels string
	model, version         string
	folds, metricBins      int
	out                    string
	force, refit           bool
	opt                    calibrator.Options
}

func newFitCommand() *cobra.Command {
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit FILE[:array] --method NAME [-o CALIBRATOR]",
		Short: "Fit a calibrator on labelled rows, or compare all methods",
		Long:  help("fit", methodHelp()),
		Example: "  plumbline fit validation.npz --method temperature -o cal.json\n" +
			"  plumbline fit validation.npz --method all --holdout test.npz -o best.json\n" +
			"  plumbline fit validation.npz --method all --loss-scaling both --folds 5 --json",
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return runFit(cmd, args[0], f) },
	}
	f.add(cmd)
	return cmd
}

func (f *fitFlags) add(cmd *cobra.Command) {
	f.inputFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.choice.Method, "method", "m", "temperature",
		"`name` of a method, several separated by commas, or all")
	flags.StringVar(&f.choice.Skip, "skip", "",
		"with --method all: `names` to leave out, separated by commas")
	flags.StringVar(&f.choice.LossScaling, "loss-scaling", "off",
		"class-wise loss scaling, of methods that it can wrap: off, on or both")
	flags.StringVar(&f.model, "model", "", "fit on, and score, rows of this model `name` only; default: all")
	flags.StringVar(&f.version, "version", "", "fit on, and score, rows of this model `version` only; default: all")
	flags.StringVar(&f.holdout, "holdout", "",
		"score on this `file`, or on this share of FILE, such as 0.3, kept out of the fit")
	flags.StringVar(&f.holdoutLabels, "holdout-labels", "",
		"`column` or array of labels of the file of --holdout; else as --label")
	flags.IntVar(&f.folds, "folds", 0,
		"score by cross-validation with this many folds; then fit on all rows")
	flags.BoolVar(&f.refit, "refit", false, "fit the written calibrator on held-out rows too")
	flags.IntVar(&f.metricBins, "metric-bins", 15, "bins of the ECE of held-out rows")
	flags.BoolVar(&f.of.NoWeights, "no-weights", false, "ignore the column weight")
	flags.Uint64Var(&f.opt.Seed, "seed", 0, "seed of the split, of methods that draw, and of ECE intervals")
	flags.StringVarP(&f.out, "output", "o", "",
		"write the calibrator to this `file`; -: to stdout, and the report to stderr")
	flags.BoolVar(&f.force, "force", false, "replace existing files")
	for _, s := range offline.Settings {
		usage := s.Owner() + ": " + s.Usage
		switch v := s.Value(&f.opt).(type) {
		case *int:
			flags.IntVar(v, s.Flag, 0, usage)
		case *float64:
			flags.Float64Var(v, s.Flag, 0, usage)
		case *bool:
			flags.BoolVar(v, s.Flag, false, usage)
		}
	}
}

// methodHelp is a line for each method.
func methodHelp() string {
	var b strings.Builder
	for _, m := range calibrator.Methods() {
		keeps := ""
		if m.KeepsArgmax {
			keeps = "; keeps every predicted class"
		}
		if m.TopLabel {
			keeps = "; of the confidence of the predicted class"
		}
		scaled := ""
		if m.Scalable {
			scaled = "; also with class-wise loss scaling, " + m.Name + calibrator.Suffix
		}
		fmt.Fprintf(&b, "  %-26s %s%s%s\n", m.Name, m.Title, keeps, scaled)
	}
	return strings.TrimRight(b.String(), "\n")
}

func runFit(cmd *cobra.Command, file string, f fitFlags) error {
	candidates, err := f.candidates(cmd)
	if err != nil {
		return err
	}
	share, err := f.check(len(candidates))
	if err != nil {
		return err
	}
	if f.out != "" && f.out != "-" {
		if err := offline.CheckFree("-o", f.out, f.force); err != nil {
			return err
		}
	}
	data, err := f.options(cmd, share).Read(file, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) })
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.out == "-" {
		out = cmd.ErrOrStderr()
	}
	cal, err := f.fit(cmd, data, candidates, out)
	if errors.Is(err, context.Canceled) {
		err = offline.ErrInterrupted
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return f.write(cmd, cal)
}

// candidates are the methods that are asked for, with their settings.
func (f *fitFlags) candidates(cmd *cobra.Command) ([]compare.Candidate, error) {
	names, err := f.choice.Candidates()
	if err == nil {
		err = offline.CheckSettings(cmd.Flags().Changed, f.opt, names)
	}
	if err != nil {
		return nil, cli.UsageError{Err: err}
	}
	out := make([]compare.Candidate, len(names))
	for i, name := range names {
		out[i] = compare.Candidate{Name: name, Options: f.opt}
	}
	return out, nil
}

// check validates how rows are held out; share is that of --holdout, 0 where it names a file or is not set.
func (f *fitFlags) check(candidates int) (share float64, err error) {
	if x, err := strconv.ParseFloat(f.holdout, 64); err == nil {
		if !(x > 0 && x < 1) {
			return 0, cli.Usagef("--holdout %s: a share must be between 0 and 1; a file of that name is ./%s",
				f.holdout, f.holdout)
		}
		share = x
	}
	switch {
	case f.folds != 0 && f.folds < 2:
		return 0, cli.Usagef("--folds %d: must be 2 or more", f.folds)
	case f.folds != 0 && f.holdout != "":
		return 0, cli.Usagef("--folds: not with --holdout")
	case f.holdoutLabels != "" && (f.holdout == "" || share != 0):
		return 0, cli.Usagef("--holdout-labels: needs a file in --holdout")
	}
	if allowed := offline.WrongBins(f.metricBins); allowed != "" {
		return 0, cli.Usagef("--metric-bins %d: %s", f.metricBins, allowed)
	}
	if candidates > 1 && f.holdout == "" && f.folds == 0 {
		const half = 0.5
		share = half
	}
	return share, nil
}

// options say which rows are held out; share is that of --holdout, 0 where it names a file or is not set.
func (f *fitFlags) options(cmd *cobra.Command, share float64) offline.FitOptions {
	only := map[string]string{}
	for column, value := range map[string]string{"model": f.model, "version": f.version} {
		if cmd.Flags().Changed(column) { // "" is that of rows without one
			only[column] = value
		}
	}
	return offline.FitOptions{
		Table:         f.table(),
		Only:          only,
		Holdout:       f.holdout,
		HoldoutLabels: f.holdoutLabels,
		Share:         share,
		Folds:         f.folds,
		Seed:          f.opt.Seed,
	}
}

// metricOptions are those of held-out rows.
func (f *fitFlags) metricOptions() metric.Options {
	return metric.Options{Bins: f.metricBins, Seed: f.opt.Seed}
}

// fit fits one candidate or compares several, and prints the report.
func (f *fitFlags) fit(cmd *cobra.Command, d *offline.FitData, candidates []compare.Candidate,
	out io.Writer) (calibrator.Calibrator, error) {
	fitting := offline.Fitting{Metrics: f.metricOptions(), Refit: f.refit, Output: f.out}
	if len(candidates) > 1 {
		bar := progress.Steps(cmd.ErrOrStderr(), len(candidates), "fit")
		r, err := fitting.Compare(cmd.Context(), d, candidates, func(what string) {
			if what == "" {
				bar.Add(1)
				return
			}
			bar.Say(what)
		})
		bar.Finish()
		if err != nil && !errors.Is(err, offline.ErrInterrupted) {
			return nil, err
		}
		return r.Chosen, errors.Join(err, printReport(cmd, out, r))
	}
	bar := progress.Steps(cmd.ErrOrStderr(), 2, "fit "+candidates[0].Name)
	r, err := fitting.One(cmd.Context(), d, candidates[0], func() { bar.Add(1) })
	bar.Finish()
	if err != nil {
		return nil, err
	}
	return r.Chosen, printReport(cmd, out, r)
}

// write puts the calibrator where -o says.
func (f *fitFlags) write(cmd *cobra.Command, c calibrator.Calibrator) error {
	switch f.out {
	case "":
		return nil
	case "-":
		text, err := calibrator.Encode(c)
		if err != nil {
			return err
		}
		printf(cmd, "%s\n", text)
		return nil
	}
	return offline.WriteCalibrator(f.out, f.force, c)
}
