package offline

import (
	"fmt"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/feed"
)

// EvalResult is one file of `plumbline eval --json` with several files, or with --by.
type EvalResult struct {
	File       string        `json:"file"`
	Calibrator string        `json:"calibrator,omitempty"` // the file of --calibrator
	Metrics    metric.Report `json:"metrics"`
	Slices     []Slice       `json:"slices,omitempty"`

	Rows metric.Rows `json:"-"`
}

// EvalOptions say how files are evaluated.
type EvalOptions struct {
	Table          table.Options
	Metrics        metric.Options
	By             string                // also a report for each value of this column; "": none
	Calibrator     calibrator.Calibrator // evaluate what it makes of the scores; nil: the scores
	CalibratorFile string                // its file, for messages
	NoWeights      bool
}

// File evaluates a file.
func (f EvalOptions) File(file string) (EvalResult, error) {
	r := EvalResult{File: file, Calibrator: f.CalibratorFile}
	t, err := feed.OpenTable(file, f.Table)
	if err != nil {
		return r, err
	}
	if f.NoWeights {
		t.Weight = nil
	}
	if r.Rows, err = Rows(file, t); err != nil {
		return r, err
	}
	if f.Calibrator != nil {
		if err := CheckClasses(f.CalibratorFile, f.Calibrator, file, t.K); err != nil {
			return r, err
		}
		if r.Rows, err = compare.Calibrate(f.Calibrator, r.Rows); err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
	}
	if r.Metrics, err = metric.Evaluate(r.Rows, f.Metrics); err != nil {
		if bad := BadRow(t, true); bad != nil { // names the column too
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
