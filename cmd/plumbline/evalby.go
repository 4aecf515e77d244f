package main

import (
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/internal/diagram"
	"github.com/plumbline/plumbline/internal/offline"
)

// reports are those of all files, the whole of each before its slices.
func reports(results []offline.EvalResult, by string) []diagram.Report {
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
func sharedFolder(results []offline.EvalResult) string {
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
