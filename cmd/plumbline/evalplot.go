package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/diagram"
	"github.com/plumbline/plumbline/internal/plot"
)

// maxPlotReports keeps the page at a size that viewers open.
const maxPlotReports = 24

// plottable reports whether the file's extension is one that can be drawn.
func plottable(file string) bool { return slices.Contains(plot.Formats, filepath.Ext(file)) }

// writePlot draws one row of panels a report on one page.
func writePlot(file string, reports []diagram.Report, opt metric.Options) error {
	if len(reports) > maxPlotReports {
		return fmt.Errorf("--plot %s: %d reports, allowed are %d on a page", file, len(reports), maxPlotReports)
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

func formatShort(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.4f", v)
}
