package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/diagram"
)

// printReports prints one line a metric and one column a report; with intervals, three: the value, its interval, and
// what a calibrated model would show.
func printReports(cmd *cobra.Command, reports []diagram.Report) error {
	header, counts := []string{"metric"}, []string{"n"}
	for _, r := range reports {
		header, counts = append(header, r.Title), append(counts, fmt.Sprint(r.Metrics.N))
		if r.Metrics.Intervals != nil {
			header, counts = append(header, "95 % interval", "if calibrated"), append(counts, "", "")
		}
	}
	lines := [][]string{header, counts}
	for i, v := range reports[0].Metrics.Values() {
		line := []string{v.Key}
		for _, r := range reports {
			line = append(line, formatMetric(r.Metrics.Values()[i].Value))
			if r.Metrics.Intervals != nil {
				line = append(line, intervalCells(r.Metrics, v.Key)...)
			}
		}
		lines = append(lines, line)
	}
	return newTable(cmd.OutOrStdout()).print(lines, 1)
}

// intervalCells are the interval and the null expectation of a metric, empty where it has none.
func intervalCells(m metric.Report, key string) []string {
	for _, iv := range m.Intervals {
		if iv.Key == key {
			return []string{formatInterval(iv.Lo, iv.Hi), formatShort(iv.Null)}
		}
	}
	return []string{"", ""}
}

func formatMetric(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return decimals(v, 6)
}

// decimals writes v with so many decimals, and what has no use for them, such as the NLL of logits of 1e30, in powers of 10.
func decimals(v float64, n int) string {
	if math.Abs(v) >= 1e7 {
		return fmt.Sprintf("%.*e", n, v)
	}
	return fmt.Sprintf("%.*f", n, v)
}
