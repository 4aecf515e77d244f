package rule

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// excess evaluates ECE - E[ECE of a perfectly calibrated model with the same confidences] over the latest label panes.
// It keeps no rows of its own; it reads stage.Key.Recent.
type excess struct{ *context }

func newExcess(c *context) Rule { return excess{c} }

func (r excess) Observe(in *stage.Pane) (rows int64, err error) {
	if r.key.Labelled < r.cfg.WarmupRows {
		return 0, nil
	}
	return in.Counted, nil
}

func (r excess) Evaluate(pane int64) (j Evaluation, ok bool, err error) {
	bins, n := r.key.Recent.Last(r.cfg.Signal, r.cfg.Rows)
	if n < max(r.cfg.MinRows, 1) {
		return j, false, nil
	}
	ece := metric.ECE(bins)
	seed := r.key.Seed(r.cfg.Signal, pane)
	null, hi := metric.NullECE(bins, r.env.Resamples, seed)
	over := ece - null
	j = Evaluation{Rows: n, Value: over, Significant: ece > hi, Bins: bins,
		Interval: func() metric.Interval { return metric.Resample(bins, r.env.Resamples, seed) }}
	j.Detail = fmt.Sprintf("%s ECE %.4f over the last %d %s, "+
		"%.4f more than a calibrated model would show (%.4f)",
		r.cfg.Signal, ece, n, stage.RowsOf(r.cfg.Signal), over, null)
	return j, true, nil
}

func (excess) Append(dst []byte) []byte { return dst }
func (excess) Restore(*binenc.Reader)   {}
