package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/offline"
)

// evalFiles evaluates every file, by the calibrator of --calibrator if there is one.
func evalFiles(cmd *cobra.Command, files []string, f evalFlags) ([]evalResult, error) {
	var cal calibrator.Calibrator
	if f.calibrator != "" {
		var err error
		if cal, err = offline.ReadCalibrator(f.calibrator); err != nil {
			return nil, err
		}
	}
	bar := newSteps(cmd.ErrOrStderr(), len(files), "eval")
	defer bar.finish()
	results := make([]evalResult, len(files))
	for i, file := range files {
		if err := cmd.Context().Err(); err != nil {
			return nil, err
		}
		bar.say("eval " + file)
		var err error
		if results[i], err = evalFile(file, cal, f); err != nil {
			return nil, err
		}
		bar.add(1)
	}
	return results, nil
}

func evalFile(file string, cal calibrator.Calibrator, f evalFlags) (evalResult, error) {
	r := evalResult{File: file, Calibrator: f.calibrator}
	t, err := f.open(file)
	if err != nil {
		return r, err
	}
	if f.noWeights {
		t.Weight = nil
	}
	if r.rows, err = offline.Rows(file, t); err != nil {
		return r, err
	}
	if cal != nil {
		if err := offline.CheckClasses(f.calibrator, cal, file, t.K); err != nil {
			return r, err
		}
		if r.rows, err = compare.Calibrate(cal, r.rows); err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
	}
	if r.Metrics, err = metric.Evaluate(r.rows, f.opt); err != nil {
		if bad := offline.BadRow(t, true); bad != nil { // names the column too
			err = bad
		}
		return r, fmt.Errorf("%s: %w", file, err)
	}
	if f.by != "" {
		if r.Slices, err = offline.EvaluateSlices(t, r.rows, f.by, f.opt); err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
	}
	return r, nil
}
