package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/compare"
	"github.com/plumbline/plumbline/internal/diagram"
)

// maxSliceValues bounds the reports of one file: a column of more values is an identifier, not a cohort.
const maxSliceValues = 1000

// sliceResult is the report of the rows with one value of the column of --by; "" where the column is null.
type sliceResult struct {
	Value   string        `json:"value"`
	Metrics metric.Report `json:"metrics"`

	rows metric.Rows
}

// reports are those of all files, the whole of each before its slices.
func reports(results []evalResult, by string) []diagram.Report {
	var out []diagram.Report
	shared := sharedFolder(results)
	for _, r := range results {
		title := strings.TrimPrefix(r.File, shared)
		if r.Calibrator != "" {
			title += " by " + r.Calibrator
		}
		out = append(out, diagram.Report{Title: title, Metrics: r.Metrics, Rows: r.rows})
		for _, s := range r.Slices {
			title := by + "=" + s.Value
			if s.Value == "" {
				title = by + " null"
			}
			out = append(out, diagram.Report{Title: title, Metrics: s.Metrics, Rows: s.rows})
		}
	}
	return out
}

// sharedFolder is the folder, with its separator, that all of several files are in; else empty.
func sharedFolder(results []evalResult) string {
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

// evalSlices evaluates the rows of each value of a text column, in the order of the values.
func evalSlices(t *table.Table, rows metric.Rows, column string, opt metric.Options) ([]sliceResult, error) {
	values, err := sliceColumn(t, column)
	if err != nil {
		return nil, err
	}
	at := make(map[string][]int)
	for i, v := range values {
		if at[v] = append(at[v], i); len(at) > maxSliceValues {
			return nil, fmt.Errorf("column %s has more than %d values: --by makes a report for each", column, maxSliceValues)
		}
	}
	var out []sliceResult
	for _, v := range slices.Sorted(maps.Keys(at)) {
		s := sliceResult{Value: v, rows: compare.Select(rows, at[v])}
		if s.Metrics, err = metric.Evaluate(s.rows, opt); err != nil {
			return nil, fmt.Errorf("%s=%s: %w", column, v, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// sliceColumn returns the values of a text column by row. Columns model and version of one value are kept by the table
// as that value.
func sliceColumn(t *table.Table, column string) ([]string, error) {
	if v := t.Slices[column]; v != nil {
		return v, nil
	}
	there := slices.Collect(maps.Keys(t.Slices))
	for name, v := range map[string]string{"model": t.Model, "version": t.Version} {
		if v == "" {
			continue
		}
		if name == column {
			return slices.Repeat([]string{v}, t.N), nil
		}
		there = append(there, name)
	}
	if len(there) == 0 {
		return nil, fmt.Errorf("--by %s: no such text column; the file has none", column)
	}
	slices.Sort(there)
	return nil, fmt.Errorf("--by %s: no such text column; there are: %s", column, strings.Join(there, ", "))
}
