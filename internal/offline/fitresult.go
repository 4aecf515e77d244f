package offline

import (
	"encoding/json"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
)

// FitResult is the output of `plumbline fit --json` with one method.
type FitResult struct {
	File        string            `json:"file"`
	Method      string            `json:"method"`
	Description string            `json:"description"`
	K           int               `json:"k"`
	Fit         calibrator.Report `json:"fit"` // of the calibrator that is written
	Seconds     float64           `json:"fit_seconds"`
	Split       *Split            `json:"split,omitempty"`
	Holdout     *heldOut          `json:"holdout,omitempty"`
	Encoded     json.RawMessage   `json:"calibrator"`
	Output      string            `json:"output,omitempty"`

	Chosen calibrator.Calibrator `json:"-"`
}

// heldOut is the score on rows that were not used for the fit.
type heldOut struct {
	Before     metric.Report      `json:"before"`
	After      metric.Report      `json:"after"`
	Difference compare.Difference `json:"nll_difference"` // after minus before
}

// set stores the calibrator to write.
func (r *FitResult) set(final compare.Result) (err error) {
	r.Chosen = final.Calibrators[0]
	r.Description, r.Fit, r.Seconds = r.Chosen.Describe(), final.Fits[0], final.Seconds
	r.Encoded, err = calibrator.Encode(r.Chosen)
	return err
}
