package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
)

// Part is one split: the rows to fit on, and the rows to score.
type Part struct{ Fit, Held func() metric.Rows }

// Candidate is a method with its settings. Its name may end in calibrator.Suffix.
type Candidate struct {
	Name    string
	Options calibrator.Options
}

// Result is the score of one candidate on all held-out rows.
type Result struct {
	Name string
	// Calibrators and Fits have one element for each part. Seconds is the time of all fits together.
	Calibrators []calibrator.Calibrator
	Fits        []calibrator.Report
	Seconds     float64
	// Metrics covers the held-out rows of all parts. Each row is calibrated by a fit that has not seen it.
	Metrics metric.Report
	// ToIdentity is the NLL minus that of the uncalibrated model. ToBest is the NLL minus that of the best result.
	ToIdentity, ToBest Difference
	// Err is the reason if there is no score.
	Err error

	losses, weights []float64
}

// Baseline returns the result of the uncalibrated model, which the others are compared with.
func Baseline(parts []Part, opt metric.Options) (Result, error) {
	r := Run(context.Background(), parts, Candidate{Name: calibrator.Identity{}.Method()}, opt, nil)
	return r, r.Err
}

// Run fits the candidate on every part and scores it on the held-out rows. baseline, if not nil, is the result of the
// uncalibrated model on the same parts. When ctx ends, Run returns its error at once; the fit ends in the background.
func Run(ctx context.Context, parts []Part, c Candidate, opt metric.Options, baseline *Result) Result {
	r := within(ctx, c, func(r *Result) error { return r.run(ctx, parts, c, opt) })
	if r.Err == nil && baseline != nil {
		r.ToIdentity = Paired(r.losses, baseline.losses, r.weights)
	}
	return r
}

// Fitted fits the candidate on rows and scores nothing. When ctx ends, it returns at once, like Run.
func Fitted(ctx context.Context, rows metric.Rows, c Candidate) Result {
	return within(ctx, c, func(r *Result) error { return r.fit(rows, c) })
}

// within runs work, and stops waiting for it when ctx ends.
func within(ctx context.Context, c Candidate, work func(*Result) error) Result {
	nan := Difference{math.NaN(), math.NaN(), math.NaN()}
	if ctx.Err() != nil {
		return Result{Name: c.Name, ToIdentity: nan, ToBest: nan, Err: ctx.Err()}
	}
	done := make(chan Result, 1)
	go func() {
		r := Result{Name: c.Name, ToIdentity: nan, ToBest: nan}
		r.Err = work(&r)
		done <- r
	}()
	select {
	case <-ctx.Done():
		return Result{Name: c.Name, ToIdentity: nan, ToBest: nan, Err: ctx.Err()}
	case r := <-done:
		return r
	}
}

func (r *Result) fit(rows metric.Rows, c Candidate) error {
	start := time.Now()
	cal, report, err := Fit(c.Name, rows, c.Options)
	r.Seconds += time.Since(start).Seconds()
	if err != nil {
		return err
	}
	r.Calibrators, r.Fits = append(r.Calibrators, cal), append(r.Fits, report)
	return nil
}

func (r *Result) run(ctx context.Context, parts []Part, c Candidate, opt metric.Options) error {
	var all metric.Rows
	for i, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.fit(p.Fit(), c); err != nil {
			return partError(err, i, parts)
		}
		held, err := Calibrate(r.Calibrators[i], p.Held())
		if err != nil {
			return partError(err, i, parts)
		}
		all = join(all, held)
	}
	var err error
	if r.Metrics, err = metric.Evaluate(all, opt); err != nil {
		return fmt.Errorf("held-out rows: %w", err)
	}
	r.losses, r.weights = losses(all), all.W
	return nil
}

func partError(err error, i int, parts []Part) error {
	if len(parts) == 1 {
		return err
	}
	return fmt.Errorf("fold %d: %w", i, err)
}

func join(a, b metric.Rows) metric.Rows {
	if a.K == 0 {
		return b
	}
	a.F64, a.Labels = append(a.F64, b.F64...), slices.Concat(a.Labels, b.Labels)
	if a.W != nil {
		a.W = slices.Concat(a.W, b.W)
	}
	return a
}

// Rank orders the results by NLL and sets ToBest. Results of equal NLL keep their order, and those with an error come
// last. If no result has a score, it returns an error that joins all of theirs.
func Rank(results []Result) error {
	slices.SortStableFunc(results, func(a, b Result) int {
		if (a.Err == nil) != (b.Err == nil) {
			if a.Err == nil {
				return -1
			}
			return 1
		}
		if a.Err != nil {
			return 0
		}
		return cmp.Compare(a.Metrics.NLL, b.Metrics.NLL)
	})
	if len(results) == 0 || results[0].Err != nil {
		var errs []error
		for _, r := range results {
			errs = append(errs, r.Err)
		}
		return errors.Join(errs...)
	}
	for i := range results {
		if results[i].Err == nil {
			results[i].ToBest = Paired(results[i].losses, results[0].losses, results[0].weights)
		}
	}
	return nil
}

// Warnings returns the warnings of all fits without duplicates.
func (r Result) Warnings() []string {
	var out []string
	for _, f := range r.Fits {
		for _, w := range f.Warnings {
			if !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}
