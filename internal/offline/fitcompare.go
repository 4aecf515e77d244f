package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
)

// Comparison is the output of `plumbline fit --method all --json`.
type Comparison struct {
	File     string          `json:"file"`
	K        int             `json:"k"`
	Split    *Split          `json:"split"`
	Identity metric.Report   `json:"identity"` // held-out rows, uncalibrated
	Ranking  []Ranked        `json:"ranking"`  // ordered by NLL; failed methods last
	Best     string          `json:"best"`
	Refit    bool            `json:"refit"` // the calibrator was fitted again on all rows after scoring
	Encoded  json.RawMessage `json:"calibrator,omitempty"`
	Output   string          `json:"output,omitempty"`

	Chosen calibrator.Calibrator `json:"-"`
}

// Ranked is one method of a comparison.
type Ranked struct {
	Rank         int                 `json:"rank,omitempty"` // 0 if it failed
	Method       string              `json:"method"`
	Description  string              `json:"description,omitempty"`
	KeepsArgmax  bool                `json:"keeps_argmax"`
	Metrics      *metric.Report      `json:"metrics,omitempty"`
	ToBest       *compare.Difference `json:"nll_minus_best,omitempty"`
	ToIdentity   *compare.Difference `json:"nll_minus_identity,omitempty"`
	Seconds      float64             `json:"fit_seconds"`
	Fits         []calibrator.Report `json:"fits,omitempty"` // one for each fold
	ErrorMessage string              `json:"error,omitempty"`

	Result compare.Result `json:"-"`
}

// ErrInterrupted is returned with the ranking of the methods that had finished by then.
var ErrInterrupted = errors.New("interrupted: nothing is written")

// InterruptedMessage is the error of a method that had not finished.
const InterruptedMessage = "interrupted"

// Fitting says how to fit and score candidates.
type Fitting struct {
	Metrics metric.Options
	Refit   bool   // fit the calibrator again on all rows after scoring
	Output  string // output file, for the report
}

// Compare scores all candidates on held-out rows. It calls step with a description before each piece of work, and with
// "" after it.
func (f Fitting) Compare(ctx context.Context, d *FitData, candidates []compare.Candidate,
	step func(what string)) (*Comparison, error) {
	baseline, err := compare.Baseline(d.parts, f.Metrics)
	if err != nil {
		return nil, err
	}
	results := make([]compare.Result, len(candidates))
	for i, c := range candidates {
		step("fit " + c.Name)
		results[i] = compare.Run(ctx, d.parts, c, f.Metrics, &baseline)
		step("")
	}
	interrupted := ctx.Err() != nil // candidates that were not reached have the interruption as their error
	if err := compare.Rank(results); err != nil {
		return nil, fmt.Errorf("every method failed: %w", err)
	}
	best := results[0]
	out := &Comparison{
		File:     d.file,
		K:        d.rows.K,
		Split:    d.split,
		Identity: baseline.Metrics,
		Ranking:  ranking(results),
		Best:     best.Name,
		Output:   f.Output,
		Refit:    f.Refit || len(d.parts) > 1,
	}
	if interrupted {
		return out, ErrInterrupted
	}
	step("fit " + best.Name)
	final, err := f.final(ctx, d, compare.Candidate{Name: best.Name, Options: candidates[0].Options}, best)
	if err != nil {
		return nil, err
	}
	out.Chosen = final.Calibrators[0]
	out.Encoded, err = calibrator.Encode(out.Chosen)
	return out, err
}

func ranking(results []compare.Result) []Ranked {
	out := make([]Ranked, len(results))
	for i, r := range results {
		out[i] = newRanked(i+1, r)
	}
	return out
}

func newRanked(rank int, r compare.Result) Ranked {
	out := Ranked{Method: r.Name, Seconds: r.Seconds, Fits: r.Fits, Result: r}
	if m, err := calibrator.Lookup(r.Name); err == nil {
		out.KeepsArgmax = m.KeepsArgmax
	}
	if r.Err != nil {
		out.ErrorMessage = r.Err.Error()
		if errors.Is(r.Err, context.Canceled) {
			out.ErrorMessage = InterruptedMessage
		}
		return out
	}
	out.Rank, out.Metrics, out.ToBest, out.ToIdentity = rank, &r.Metrics, &r.ToBest, &r.ToIdentity
	if len(r.Calibrators) == 1 {
		out.Description = r.Calibrators[0].Describe()
	}
	return out
}

// One fits one method and, if rows are held out, scores it. It calls scored between scoring and the final fit.
func (f Fitting) One(ctx context.Context, d *FitData, c compare.Candidate, scored func()) (*FitResult, error) {
	r := &FitResult{File: d.file, Method: c.Name, K: d.rows.K, Output: f.Output, Split: d.split}
	var held compare.Result
	if len(d.parts) > 0 {
		baseline, err := compare.Baseline(d.parts, f.Metrics)
		if err != nil {
			return nil, err
		}
		held = compare.Run(ctx, d.parts, c, f.Metrics, &baseline)
		if held.Err != nil {
			return nil, held.Err
		}
		r.Holdout = &heldOut{baseline.Metrics, held.Metrics, held.ToIdentity}
	}
	scored()
	final, err := f.final(ctx, d, c, held)
	if err != nil {
		return nil, err
	}
	return r, r.set(final)
}

// final returns the calibrator to write: the scored one, or one fitted on all rows.
func (f Fitting) final(ctx context.Context, d *FitData, c compare.Candidate, scored compare.Result) (compare.Result,
	error) {
	if len(scored.Calibrators) == 1 && !f.Refit {
		return scored, nil
	}
	r := compare.Fitted(ctx, d.rows, c)
	return r, r.Err
}
