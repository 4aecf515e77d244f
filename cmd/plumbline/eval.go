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
	opt metric.Options
}

// evalResult is one file of `plumbline eval --json` with several files.
type evalResult struct {
	File    string        `json:"file"`
	Metrics metric.Report `json:"metrics"`
}

func newEvalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval FILE[:array]...",
		Short: "Calibration metrics of files: npz, Arrow, Parquet, CSV",
		Long: "Eval computes every metric of the labelled rows of each FILE, one column a file. With --json and one file it\n" +
			"prints one object with the metrics; with several, {\"files\": [{\"file\", \"metrics\"}]}. Fractions, not percent.",
		Example: "  plumbline eval test.npz:resnet20 --labels test_labels\n  plumbline eval monday.parquet tuesday.parquet --bins 10 --json",
		Args:    usageArgs(cobra.MinimumNArgs(1)),
		RunE:    func(cmd *cobra.Command, files []string) error { return runEval(cmd, files, f) },
	}
	flags := cmd.Flags()
	f.add(cmd)
	flags.IntVar(&f.opt.Bins, "bins", 15, "bins of ece, mce, ace, cwece and debiased_l2")
	flags.IntVar(&f.opt.SoftBins, "soft-bins", 15, "soft bins of SB-ECE")
	flags.Float64Var(&f.opt.SoftTemperature, "soft-temperature", 0.01, "temperature T of the soft bins")
	flags.Float64Var(&f.opt.Norm, "norm", 2, "norm `p` of SB-ECE")
	flags.StringVar(&f.opt.CSF, "csf", metric.MSP, "confidence that aurc, eaurc, auroc and fpr95 rank by: msp, margin or negent")
	flags.BoolVar(&f.opt.Detail, "detail", false, "with --json: also the reliability diagram, the soft-bin sums and the binned CDF")
	return cmd
}

func runEval(cmd *cobra.Command, files []string, f evalFlags) error {
	if err := checkEvalFlags(cmd, f.opt); err != nil {
		return err
	}
	results := make([]evalResult, len(files))
	for i, file := range files {
		rows, weighted, err := f.metricRows(file)
		if err != nil {
			return err
		}
		if weighted {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: column weight is not used: every row counts once\n", file)
		}
		report, err := metric.Evaluate(rows, f.opt)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		results[i] = evalResult{file, report}
	}
	switch {
	case !jsonOutput(cmd):
		return printReports(cmd, results)
	case len(results) == 1:
		return printJSON(cmd, results[0].Metrics)
	}
	return printJSON(cmd, map[string]any{"files": results})
}

// checkEvalFlags finds wrong settings before a file is read. A zero stands for the default in Options, but a user
// who writes it does not mean that.
func checkEvalFlags(cmd *cobra.Command, opt metric.Options) error {
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
	if _, err := metric.Evaluate(metric.Rows{K: 2}, opt); err != nil {
		return usageError{err}
	}
	return nil
}

// printReports prints one line a metric and one column a file.
func printReports(cmd *cobra.Command, results []evalResult) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
	header, counts := []string{"metric"}, []string{"n"}
	for _, r := range results {
		header = append(header, r.File)
		counts = append(counts, fmt.Sprint(r.Metrics.N))
	}
	fmt.Fprintln(w, strings.Join(header, "\t")+"\t")
	fmt.Fprintln(w, strings.Join(counts, "\t")+"\t")
	for i, v := range results[0].Metrics.Values() {
		line := []string{v.Key}
		for _, r := range results {
			line = append(line, formatMetric(r.Metrics.Values()[i].Value))
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
