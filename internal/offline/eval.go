package offline

import (
	"fmt"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/feed"
)

// EvalResult is the part of one file in `plumbline eval --json` with several files, or with --by.
type EvalResult struct {
	File       string        `json:"file"`
	Calibrator string        `json:"calibrator,omitempty"` // the file named by --calibrator
	Metrics    metric.Report `json:"metrics"`
	Slices     []Slice       `json:"slices,omitempty"`

	Rows metric.Rows `json:"-"`
}

// EvalOptions say how to evaluate files.
type EvalOptions struct {
	Table          table.Options
	Metrics        metric.Options
	By             string                // column to report by value; "" = none
	Calibrator     calibrator.Calibrator // applied to the scores before evaluation; nil = none
	CalibratorFile string                // file name of Calibrator, for messages
}

// File computes the metrics of one file.
func (f EvalOptions) File(file string) (EvalResult, error) {
	r := EvalResult{File: file, Calibrator: f.CalibratorFile}
	t, err := feed.OpenTable(file, f.Table)
	if err != nil {
		return r, err
	}
	if r.Rows, err = Rows(file, t); err != nil {
		return r, err
	}
	if f.By != "model" && f.By != "version" {
		noteMixed(f.Table, file, t, "evaluated together; --by COLUMN evaluates each")
	}
	if f.Calibrator != nil {
		if err := CheckClasses(f.CalibratorFile, f.Calibrator, file, t.K); err != nil {
			return r, err
		}
		NoteCalibrated(f.Table, f.CalibratorFile, f.Calibrator, file, t)
		if r.Rows, err = compare.Calibrate(f.Calibrator, r.Rows); err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
	}
	if r.Metrics, err = metric.Evaluate(r.Rows, f.Metrics); err != nil {
		if bad := BadRow(t, true); bad != nil { // the error names the column too
			err = bad
		}
		return r, fmt.Errorf("%s: %w", file, err)
	}
	if f.By != "" {
		if r.Slices, err = EvaluateSlices(t, r.Rows, f.By, f.Metrics); err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
	}
	return r, nil
}
