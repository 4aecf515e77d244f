package validate_test

import (
	"math"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
)

// farthest bounds the event times that are taken.
const farthest = 9_100_000_000_000_000_000

// TestEventTimesAtTheEnds: no time wraps around, whatever the record's timestamp and the bound.
func TestEventTimesAtTheEnds(t *testing.T) {
	record := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	for _, c := range []struct {
		ts     int64
		ahead  time.Duration
		reason string
	}{
		{math.MinInt64, time.Hour, arrowio.TimeRange},
		{math.MinInt64, 0, arrowio.TimeRange},
		{math.MaxInt64, time.Hour, arrowio.TimeRange},
		{math.MaxInt64, 0, arrowio.TimeRange},
		{-farthest, time.Hour, ""},
		{farthest, 0, ""},
		{farthest, time.Hour, validate.ReasonTooFar},
		{time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(), time.Hour, ""}, // only late
		{record + int64(time.Hour), time.Hour, ""},
		{record + int64(time.Hour) + 1, time.Hour, validate.ReasonTooFar},
	} {
		counts := pipeline.NewCounts()
		v := validate.New(validate.Config{MaxAhead: int64(c.ahead)}, pipeline.Host{Out: pipeline.NewOut(counts),
			Counts: counts})
		b := &arrowio.Batch{
			N:      1,
			Origin: arrowio.Origin{Time: record},
			Models: []arrowio.ModelKey{{Model: "m", Version: "1"}},
			TS:     []int64{c.ts},
			K:      2,
			Scores: []float32{0, 1},
			Label:  []int32{1},
		}
		rejects, err := v.Process(t.Context(), b, func(out *arrowio.Batch) (pipeline.Rejects,
			error) {
			return out.Reject, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if rejects != nil {
			got = rejects[0]
		}
		if got != c.reason || b.Reject != nil {
			t.Errorf("time %d, at most %s ahead: reason %q, want %q, and a batch as it was", c.ts, c.ahead, got,
				c.reason)
		}
	}
}
