package main

import (
	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/offline"
)

// evalFiles evaluates every file, by the calibrator of --calibrator if there is one.
func evalFiles(cmd *cobra.Command, files []string, f evalFlags) ([]offline.EvalResult, error) {
	o := offline.EvalOptions{Table: table.Options{Array: f.array, Labels: f.labels}, Metrics: f.opt, By: f.by, CalibratorFile: f.calibrator, NoWeights: f.noWeights}
	if f.calibrator != "" {
		var err error
		if o.Calibrator, err = offline.ReadCalibrator(f.calibrator); err != nil {
			return nil, err
		}
	}
	bar := newSteps(cmd.ErrOrStderr(), len(files), "eval")
	defer bar.finish()
	results := make([]offline.EvalResult, len(files))
	for i, file := range files {
		if err := cmd.Context().Err(); err != nil {
			return nil, err
		}
		bar.say("eval " + file)
		var err error
		if results[i], err = o.File(file); err != nil {
			return nil, err
		}
		bar.add(1)
	}
	return results, nil
}
