package offline

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/diagram"
	"github.com/plumbline/plumbline/internal/plot"
	"github.com/plumbline/plumbline/internal/texttable"
)

// Reports are those of all files, the whole of each before its slices. by is the column of the slices.
func Reports(results []EvalResult, by string) []diagram.Report {
	var out []diagram.Report
	shared := sharedFolder(results)
	for _, r := range results {
		title := strings.TrimPrefix(r.File, shared)
		if r.Calibrator != "" {
			title += " by " + r.Calibrator
		}
		out = append(out, diagram.Report{Title: title, Metrics: r.Metrics, Rows: r.Rows})
		for _, s := range r.Slices {
			title := by + "=" + s.Value
			if s.Value == "" {
				title = by + " null"
			}
			out = append(out, diagram.Report{Title: title, Metrics: s.Metrics, Rows: s.Rows})
		}
	}
	return out
}

// sharedFolder is the folder, with its separator, that all of several files are in; else empty.
func sharedFolder(results []EvalResult) string {
	if len(results) < 2 {
		return ""
	}
	folder, _ := filepath.Split(results[0].File)
	for _, r := range results {
		if f, _ := filepath.Split(r.File); f != folder {
			return ""
		}
	}
	return folder
}

// PrintReports prints one line a metric and one column a report; with intervals, three: the value, its interval, and
// what a calibrated model would show.
func PrintReports(w io.Writer, reports []diagram.Report) error {
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
			line = append(line, texttable.Metric(r.Metrics.Values()[i].Value))
			if r.Metrics.Intervals != nil {
				line = append(line, intervalCells(r.Metrics, v.Key)...)
			}
		}
		lines = append(lines, line)
	}
	return texttable.Print(w, lines, 1)
}

// intervalCells are the interval and the null expectation of a metric, empty where it has none.
func intervalCells(m metric.Report, key string) []string {
	for _, iv := range m.Intervals {
		if iv.Key == key {
			return []string{texttable.Interval(iv.Lo, iv.Hi), texttable.Short(iv.Null)}
		}
	}
	return []string{"", ""}
}

// MaxPlotReports keeps the page at a size that viewers open.
const MaxPlotReports = 24

// Plottable reports whether the file's extension is one that can be drawn.
func Plottable(file string) bool { return slices.Contains(plot.Formats, filepath.Ext(file)) }

// Plot draws one row of panels a report on one page.
func Plot(file string, reports []diagram.Report, opt metric.Options) error {
	if len(reports) > MaxPlotReports {
		return fmt.Errorf("--plot %s: %d reports, allowed are %d on a page", file, len(reports), MaxPlotReports)
	}
	var page [][]*plot.Panel
	for _, r := range reports {
		row, err := diagram.Evaluation(r, opt)
		if err != nil {
			return err
		}
		page = append(page, row)
	}
	f, err := os.Create(file)
	if err != nil {
		return err // names the file
	}
	err = plot.Write(f, filepath.Ext(file), page)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
