package main

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/metric"
)

// evalFlags are the flags of `plumbline eval`.
type evalFlags struct {
	inputFlags
	opt      metric.Options
	by, plot string
}

// evalResult is one file of `plumbline eval --json` with several files, or with --by.
type evalResult struct {
	File    string        `json:"file"`
	Metrics metric.Report `json:"metrics"`
	Slices  []sliceResult `json:"slices,omitempty"`

	rows metric.Rows
}

func newEvalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval FILE[:array]...",
		Short: "Calibration metrics of files: npz, Arrow, Parquet, CSV",
		Long: "Eval computes every metric of the labelled rows of each FILE, one column a file. With --json and one file it\n" +
			"prints one object with the metrics; with several, {\"files\": [{\"file\", \"metrics\"}]}. Fractions, not percent.\n" +
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
	flags.StringVar(&f.by, "by", "", "text `column` (Arrow, Parquet, CSV): also a report for each of its values")
	flags.StringVar(&f.plot, "plot", "", "draw the reports into this `file`, .png or .svg")
	flags.BoolVar(&f.opt.Detail, "detail", false, "with --json: also the reliability diagram, the soft-bin sums and the binned CDF")
	return cmd
}

func runEval(cmd *cobra.Command, files []string, f evalFlags) error {
	if err := checkEvalFlags(cmd, f); err != nil {
		return err
	}
	results := make([]evalResult, len(files))
	for i, file := range files {
		var err error
		if results[i], err = evalFile(cmd, file, f); err != nil {
			return err
		}
	}
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

func evalFile(cmd *cobra.Command, file string, f evalFlags) (evalResult, error) {
	t, err := f.open(file)
	if err != nil {
		return evalResult{}, err
	}
	r := evalResult{File: file}
	if r.rows, err = metricRows(file, t); err != nil {
		return r, err
	}
	if t.Weight != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: column weight is not used: every row counts once\n", file)
	}
	if r.Metrics, err = metric.Evaluate(r.rows, f.opt); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	if f.by != "" {
		if r.Slices, err = evalSlices(t, r.rows, f.by, f.opt); err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
	}
	return r, nil
}

// checkEvalFlags finds wrong settings before a file is read. A zero stands for the default in Options, but a user
// who writes it does not mean that.
func checkEvalFlags(cmd *cobra.Command, f evalFlags) error {
	opt := f.opt
	for flag, zero := range map[string]bool{
		"bins": opt.Bins == 0, "soft-bins": opt.SoftBins == 0, "soft-temperature": opt.SoftTemperature == 0, "norm": opt.Norm == 0,
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
	if cmd.Flags().Changed("plot") && !plottable(f.plot) {
		return usageErrorf("--plot %q: allowed are files that end in .png or .svg", f.plot)
	}
	if _, err := metric.Evaluate(metric.Rows{K: 2}, opt); err != nil {
		return usageError{err}
	}
	return nil
}

// printReports prints one line a metric and one column a report.
func printReports(cmd *cobra.Command, reports []report) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
	header, counts := []string{"metric"}, []string{"n"}
	for _, r := range reports {
		header = append(header, r.title)
		counts = append(counts, fmt.Sprint(r.metrics.N))
	}
	fmt.Fprintln(w, strings.Join(header, "\t")+"\t")
	fmt.Fprintln(w, strings.Join(counts, "\t")+"\t")
	for i, v := range reports[0].metrics.Values() {
		line := []string{v.Key}
		for _, r := range reports {
			line = append(line, formatMetric(r.metrics.Values()[i].Value))
		}
		fmt.Fprintln(w, strings.Join(line, "\t")+"\t")
	}
	return w.Flush()
}

func formatMetric(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.6f", v)
}
