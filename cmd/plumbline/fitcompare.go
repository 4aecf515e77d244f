package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
)

// comparison is the object of `plumbline fit --method all --json`.
type comparison struct {
	File     string          `json:"file"`
	K        int             `json:"k"`
	Split    *splitResult    `json:"split"`
	Identity metric.Report   `json:"identity"` // the held-out rows as they are
	Ranking  []ranked        `json:"ranking"`  // by NLL; those that failed last
	Best     string          `json:"best"`
	Refit    bool            `json:"refit"` // the calibrator is of all rows, not the one that was scored
	Encoded  json.RawMessage `json:"calibrator,omitempty"`
	Output   string          `json:"output,omitempty"`

	chosen calibrator.Calibrator
}

// ranked is one method of a comparison.
type ranked struct {
	Rank         int                 `json:"rank,omitempty"` // 0 where it failed
	Method       string              `json:"method"`
	Description  string              `json:"description,omitempty"`
	KeepsArgmax  bool                `json:"keeps_argmax"`
	Metrics      *metric.Report      `json:"metrics,omitempty"`
	ToBest       *compare.Difference `json:"nll_minus_best,omitempty"`
	ToIdentity   *compare.Difference `json:"nll_minus_identity,omitempty"`
	Seconds      float64             `json:"fit_seconds"`
	Fits         []calibrator.Report `json:"fits,omitempty"` // one a fold
	ErrorMessage string              `json:"error,omitempty"`

	result compare.Result
}

// errInterrupted comes with the ranking of the methods that were ready by then.
var errInterrupted = errors.New("interrupted: nothing is written")

// interruptedMessage is the error of a method that was not ready by then.
const interruptedMessage = "interrupted"

// compare scores all candidates on held-out rows.
func (f fitFlags) compare(cmd *cobra.Command, d *fitData, candidates []compare.Candidate) (*comparison, error) {
	opt := f.metricOptions()
	baseline, err := compare.Baseline(d.parts, opt)
	if err != nil {
		return nil, err
	}
	bar := newSteps(cmd.ErrOrStderr(), len(candidates), "fit")
	defer bar.finish()
	results := make([]compare.Result, len(candidates))
	for i, c := range candidates {
		bar.say("fit " + c.Name)
		results[i] = compare.Run(cmd.Context(), d.parts, c, opt, &baseline)
		bar.add(1)
	}
	interrupted := cmd.Context().Err() != nil // those that were not reached have it as their error
	if err := compare.Rank(results); err != nil {
		return nil, fmt.Errorf("every method failed: %w", err)
	}
	best := results[0]
	out := &comparison{File: d.file, K: d.rows.K, Split: d.split, Identity: baseline.Metrics, Best: best.Name, Output: f.out,
		Refit: f.refit || len(d.parts) > 1}
	for i, r := range results {
		out.Ranking = append(out.Ranking, newRanked(i+1, r))
	}
	if interrupted {
		return out, errInterrupted
	}
	bar.say("fit " + best.Name)
	final, err := f.final(cmd, d, compare.Candidate{Name: best.Name, Options: f.opt}, best)
	if err != nil {
		return nil, err
	}
	out.chosen = final.Calibrators[0]
	out.Encoded, err = calibrator.Encode(out.chosen)
	return out, err
}

func newRanked(rank int, r compare.Result) ranked {
	out := ranked{Method: r.Name, Seconds: r.Seconds, Fits: r.Fits, result: r}
	if m, err := calibrator.Lookup(r.Name); err == nil {
		out.KeepsArgmax = m.KeepsArgmax
	}
	if r.Err != nil {
		out.ErrorMessage = r.Err.Error()
		if errors.Is(r.Err, context.Canceled) {
			out.ErrorMessage = interruptedMessage
		}
		return out
	}
	out.Rank, out.Metrics, out.ToBest, out.ToIdentity = rank, &r.Metrics, &r.ToBest, &r.ToIdentity
	if len(r.Calibrators) == 1 {
		out.Description = r.Calibrators[0].Describe()
	}
	return out
}
