package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/offline"
)

// fitFlags are the flags of `plumbline fit`.
type fitFlags struct {
	inputFlags
	method, skip, lossScaling string
	holdout, holdoutLabels    string
	folds, metricBins         int
	out                       string
	force, refit, noWeights   bool
	opt                       calibrator.Options
}

func newFitCommand() *cobra.Command {
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit FILE[:array] --method NAME [-o CALIBRATOR]",
		Short: "Fit a calibrator on labelled rows, or compare all methods",
		Long: "Fit fits a method of calibration on the labelled rows of FILE and writes it with -o, for plumbline apply, eval\n" +
			"--calibrator and the Go package. With --holdout or --folds it is also scored on rows that it was not fitted on.\n" +
			"--method all, or a list, compares methods on held-out rows (half of FILE by default), ranks them by\n" +
			"NLL, and -o writes the first. What is written is what was scored; --refit fits it again on all rows of FILE.\n" +
			"A split depends on --seed and the numbers of the rows alone.\n\nMethods:\n" + methodHelp(),
		Example: "  plumbline fit validation.npz --method temperature -o cal.json\n" +
			"  plumbline fit validation.npz --method all --holdout test.npz -o best.json\n" +
			"  plumbline fit validation.npz --method all --loss-scaling both --folds 5 --json",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return runFit(cmd, args[0], f) },
	}
	flags := cmd.Flags()
	f.add(cmd)
	flags.StringVarP(&f.method, "method", "m", "temperature", "`name` of a method, several with commas between, or all")
	flags.StringVar(&f.skip, "skip", "", "with --method all: `names` of methods to leave out, with commas between")
	flags.StringVar(&f.lossScaling, "loss-scaling", "off", "class-wise loss scaling of the methods that it can wrap: off, on or both")
	flags.StringVar(&f.holdout, "holdout", "", "score on the rows of this `file`, or on this share of FILE, such as 0.3, kept out of the fit")
	flags.StringVar(&f.holdoutLabels, "holdout-labels", "", "labels `array` of the npz file of --holdout")
	flags.IntVar(&f.folds, "folds", 0, "score by cross-validation with so many folds; the calibrator is then fitted on all rows")
	flags.BoolVar(&f.refit, "refit", false, "write the calibrator fitted on all rows of FILE, those held out too")
	flags.IntVar(&f.metricBins, "metric-bins", 15, "bins of the ECE of held-out rows")
	flags.BoolVar(&f.noWeights, "no-weights", false, "every row counts once, whatever the column weight says")
	flags.Uint64Var(&f.opt.Seed, "seed", 0, "seed of the split, of methods that draw, and of ECE intervals")
	flags.StringVarP(&f.out, "output", "o", "", "write the calibrator to this `file` (JSON); - is stdout, and the report goes to stderr")
	flags.BoolVar(&f.force, "force", false, "replace the file of -o if it is there")
	addSettings(cmd, &f.opt)
	return cmd
}

// methodHelp is a line for each method.
func methodHelp() string {
	var b strings.Builder
	for _, m := range calibrator.Methods() {
		keeps := ""
		if m.KeepsArgmax {
			keeps = "; keeps every predicted class"
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
	data, err := f.options(share).Read(file, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) })
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

// options say which rows are held out; share is that of --holdout, 0 where it names a file or is not set.
func (f fitFlags) options(share float64) offline.FitOptions {
	return offline.FitOptions{Array: f.array, Labels: f.labels, Holdout: f.holdout, HoldoutLabels: f.holdoutLabels, Share: share,
		Folds: f.folds, Seed: f.opt.Seed, NoWeights: f.noWeights}
}

// fit fits one candidate or compares several, and prints the report.
func (f fitFlags) fit(cmd *cobra.Command, d *offline.FitData, candidates []compare.Candidate, out io.Writer) (calibrator.Calibrator, error) {
	if len(candidates) > 1 {
		bar := newSteps(cmd.ErrOrStderr(), len(candidates), "fit")
		r, err := f.fitting().Compare(cmd.Context(), d, candidates, func(what string) {
			if what == "" {
				bar.add(1)
				return
			}
			bar.say(what)
		})
		bar.finish()
		if err != nil && !errors.Is(err, offline.ErrInterrupted) {
			return nil, err
		}
		return r.Chosen, errors.Join(err, printComparison(out, r, jsonOutput(cmd)))
	}
	bar := newSteps(cmd.ErrOrStderr(), 2, "fit "+candidates[0].Name)
	r, err := f.fitting().One(cmd.Context(), d, candidates[0], func() { bar.add(1) })
	bar.finish()
	if err != nil {
		return nil, err
	}
	return r.Chosen, printFit(out, r, jsonOutput(cmd))
}

// write puts the calibrator where -o says.
func (f fitFlags) write(cmd *cobra.Command, c calibrator.Calibrator) error {
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

// metricOptions are those of held-out rows.
func (f fitFlags) metricOptions() metric.Options {
	return metric.Options{Bins: f.metricBins, Seed: f.opt.Seed}
}

func (f fitFlags) fitting() offline.Fitting {
	return offline.Fitting{Metrics: f.metricOptions(), Refit: f.refit, Output: f.out}
}
