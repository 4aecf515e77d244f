package main

import (
	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/internal/progress"
)

// evalFlags are the flags of `plumbline eval`.
type evalFlags struct {
	inputFlags
	opt        metric.Options
	by, plot   string
	calibrator string
}

func newEvalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval FILE[:array]...",
		Short: "Calibration metrics of files",
		Long:  help("eval"),
		Example: "  plumbline eval test.npz:resnet20 --label test_labels\n" +
			"  plumbline eval monday.parquet tuesday.parquet --bins 10 --json\n" +
			"  plumbline eval churn.csv --by plan --plot churn.svg\n" +
			"  plumbline eval answers.parquet --prob score --label was_fraud --classes no,yes",
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error { return runEval(cmd, files, f) },
	}
	f.add(cmd)
	return cmd
}

func (f *evalFlags) add(cmd *cobra.Command) {
	f.inputFlags.add(cmd)
	flags, opt := cmd.Flags(), &f.opt
	flags.IntVar(&opt.Bins, "bins", 15, "bins of ece, mce, ace, cwece and debiased_l2")
	flags.IntVar(&opt.SoftBins, "soft-bins", 15, "soft bins of SB-ECE")
	flags.Float64Var(&opt.SoftTemperature, "soft-temperature", 0.01, "temperature T of the soft bins")
	flags.Float64Var(&opt.Norm, "norm", 2, "norm `p` of SB-ECE")
	flags.StringVar(&opt.CSF, "csf", metric.MSP,
		"score that aurc, eaurc, auroc and fpr95 rank by: msp, margin or negent")
	flags.BoolVar(&opt.Uncertainty, "uncertainty", false,
		"add interval and null expectation of every calibration error")
	flags.IntVar(&opt.Resamples, "resamples", 1000, "resamples of intervals and null expectations")
	flags.Uint64Var(&opt.Seed, "seed", 0, "seed of the resampling")
	flags.BoolVar(&f.of.NoWeights, "no-weights", false, "ignore the column weight")
	flags.StringVar(&f.calibrator, "calibrator", "", "apply this calibrator `file` first")
	flags.StringVar(&f.by, "by", "",
		"text `column` (Arrow, Parquet, CSV): add a report for each of its values")
	flags.StringVar(&f.plot, "plot", "", "draw the reports into this .png or .svg `file`")
	flags.BoolVar(&opt.Detail, "detail", false,
		"with --json: add reliability diagram, soft-bin sums, binned CDF")
}

func runEval(cmd *cobra.Command, files []string, f evalFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	results, err := f.evaluate(cmd, files)
	if err != nil {
		return err
	}
	offline.NoteOddities(cmd.ErrOrStderr(), results)
	if f.plot != "" {
		if err := offline.Plot(f.plot, offline.Reports(results, f.by), f.opt); err != nil {
			return err
		}
	}
	switch {
	case !jsonOutput(cmd):
		return offline.PrintReports(cmd.OutOrStdout(), offline.Reports(results, f.by))
	case f.by != "":
		return printJSON(cmd, map[string]any{"by": f.by, "files": results})
	case len(results) == 1:
		return printJSON(cmd, results[0].Metrics)
	}
	return printJSON(cmd, map[string]any{"files": results})
}

// evaluate evaluates every file, by the calibrator of --calibrator if there is one.
func (f *evalFlags) evaluate(cmd *cobra.Command, files []string) ([]offline.EvalResult, error) {
	o := offline.EvalOptions{
		Table:          f.table(),
		Metrics:        f.opt,
		By:             f.by,
		CalibratorFile: f.calibrator,
	}
	if f.calibrator != "" {
		var err error
		if o.Calibrator, err = offline.ReadCalibrator(f.calibrator); err != nil {
			return nil, err
		}
	}
	bar := progress.Steps(cmd.ErrOrStderr(), len(files), "eval")
	defer bar.Finish()
	results := make([]offline.EvalResult, len(files))
	for i, file := range files {
		if err := cmd.Context().Err(); err != nil {
			return nil, err
		}
		bar.Say("eval " + file)
		var err error
		if results[i], err = o.File(file); err != nil {
			return nil, err
		}
		bar.Add(1)
	}
	return results, nil
}

// check finds wrong settings before a file is read.
func (f *evalFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case f.opt.Detail && !jsonOutput(cmd):
		return cli.Usagef("--detail: needs --json")
	case changed("by") && f.by == "":
		return cli.Usagef("--by \"\": must name a column")
	case changed("calibrator") && f.calibrator == "":
		return cli.Usagef("--calibrator \"\": must name a file")
	case changed("plot") && !offline.Plottable(f.plot):
		return cli.Usagef("--plot %q: allowed are files that end in .png or .svg", f.plot)
	}
	if flag, allowed := offline.WrongMetric(f.opt); flag != "" {
		return cli.Usagef("--%s %s: %s", flag, cmd.Flags().Lookup(flag).Value, allowed)
	}
	return nil
}
