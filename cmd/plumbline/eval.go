package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/offline"
)

// evalFlags are the flags of `plumbline eval`.
type evalFlags struct {
	inputFlags
	opt        metric.Options
	by, plot   string
	calibrator string
	noWeights  bool
}

func newEvalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval FILE[:array]...",
		Short: "Calibration metrics of files: npz, Arrow, Parquet, CSV",
		Long: "Eval computes every metric of the labelled rows of each FILE, one column a file. With --json and one file it\n" +
			"prints one object with the metrics; with several, {\"files\": [{\"file\", \"metrics\"}]}. Fractions, not percent.\n" +
			"A column weight weighs the rows. --uncertainty adds to every calibration error its 95 % interval and what a\n" +
			"perfectly calibrated model would show (in JSON \"intervals\": {key: {null, null_hi, lo, hi}}).\n" +
			"--by adds a report for each value of a text column, after that of the whole file: one column more in the table,\n" +
			"in JSON {\"by\", \"files\": [{\"file\", \"metrics\", \"slices\": [{\"value\", \"metrics\"}]}]}. --plot draws, for each report,\n" +
			"reliability with 95 % Wilson intervals and counts, risk against coverage, and the confidences.",
		Example: "  plumbline eval test.npz:resnet20 --labels test_labels\n  plumbline eval monday.parquet tuesday.parquet --bins 10 --json\n" +
			"  plumbline eval monday.csv --by region --plot monday.svg",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error { return runEval(cmd, files, f) },
	}
	flags := cmd.Flags()
	f.add(cmd)
	flags.IntVar(&f.opt.Bins, "bins", 15, "bins of ece, mce, ace, cwece and debiased_l2")
	flags.IntVar(&f.opt.SoftBins, "soft-bins", 15, "soft bins of SB-ECE")
	flags.Float64Var(&f.opt.SoftTemperature, "soft-temperature", 0.01, "temperature T of the soft bins")
	flags.Float64Var(&f.opt.Norm, "norm", 2, "norm `p` of SB-ECE")
	flags.StringVar(&f.opt.CSF, "csf", metric.MSP, "confidence that aurc, eaurc, auroc and fpr95 rank by: msp, margin or negent")
	flags.BoolVar(&f.opt.Uncertainty, "uncertainty", false, "also the interval and the null expectation of every calibration error")
	flags.IntVar(&f.opt.Resamples, "resamples", 1000, "resamples of intervals and null expectations")
	flags.Uint64Var(&f.opt.Seed, "seed", 0, "seed of the resampling")
	flags.BoolVar(&f.noWeights, "no-weights", false, "every row counts once, whatever the column weight says")
	flags.StringVar(&f.calibrator, "calibrator", "", "evaluate what this `file` of plumbline fit makes of the scores")
	flags.StringVar(&f.by, "by", "", "text `column` (Arrow, Parquet, CSV): also a report for each of its values")
	flags.StringVar(&f.plot, "plot", "", "draw the reports into this `file`, .png or .svg")
	flags.BoolVar(&f.opt.Detail, "detail", false, "with --json: also the reliability diagram, the soft-bin sums and the binned CDF")
	return cmd
}

func runEval(cmd *cobra.Command, files []string, f evalFlags) error {
	if err := checkEvalFlags(cmd, f); err != nil {
		return err
	}
	results, err := evalFiles(cmd, files, f)
	if err != nil {
		return err
	}
	noteOddities(cmd.ErrOrStderr(), results)
	if f.plot != "" {
		if err := writePlot(f.plot, reports(results, f.by), f.opt); err != nil {
			return err
		}
	}
	switch {
	case !jsonOutput(cmd):
		return printReports(cmd, reports(results, f.by))
	case f.by != "":
		return printJSON(cmd, map[string]any{"by": f.by, "files": results})
	case len(results) == 1:
		return printJSON(cmd, results[0].Metrics)
	}
	return printJSON(cmd, map[string]any{"files": results})
}

// noteOddities says what makes the numbers side by side mean less than they seem to.
func noteOddities(w io.Writer, results []offline.EvalResult) {
	for _, r := range results {
		if r.Metrics.N == 0 {
			fmt.Fprintf(w, "%s: none of the %d rows has a label and a weight above 0: every metric is undefined\n", r.File, len(r.Rows.Labels))
		}
		if first := results[0]; r.Rows.K != first.Rows.K {
			fmt.Fprintf(w, "%s has %d classes, %s has %d: cwece and cwece_l2 compare at equal numbers only\n", r.File, r.Rows.K, first.File, first.Rows.K)
		}
	}
}

// checkEvalFlags finds wrong settings before a file is read. A zero stands for the default in Options, but a user
// who writes it does not mean that.
func checkEvalFlags(cmd *cobra.Command, f evalFlags) error {
	opt := f.opt
	for flag, zero := range map[string]bool{
		"bins": opt.Bins == 0, "soft-bins": opt.SoftBins == 0, "soft-temperature": opt.SoftTemperature == 0,
		"norm": opt.Norm == 0, "resamples": opt.Resamples == 0,
	} {
		if zero {
			return usageErrorf("--%s 0: must be positive", flag)
		}
	}
	if opt.Detail && !jsonOutput(cmd) {
		return usageErrorf("--detail: needs --json")
	}
	if cmd.Flags().Changed("by") && f.by == "" {
		return usageErrorf("--by \"\": must name a column")
	}
	if cmd.Flags().Changed("calibrator") && f.calibrator == "" {
		return usageErrorf("--calibrator \"\": must name a file")
	}
	if cmd.Flags().Changed("plot") && !plottable(f.plot) {
		return usageErrorf("--plot %q: allowed are files that end in .png or .svg", f.plot)
	}
	if _, err := metric.Evaluate(metric.Rows{K: 2}, opt); err != nil {
		setting, rest, _ := strings.Cut(err.Error(), ": ")
		return usageErrorf("--%s: %s", strings.ReplaceAll(setting, " ", "-"), rest)
	}
	return nil
}
