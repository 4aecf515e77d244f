package validate_test

import (
	"fmt"
	"math"
	"strings"
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

// TestRefusalsNameTheValue: the dead letter says what the first refused row had and what is allowed.
func TestRefusalsNameTheValue(t *testing.T) {
	record := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	for _, c := range []struct {
		ts     int64
		label  int32
		ahead  bool
		labels bool
		reason string
		detail string
	}{
		{ts: math.MaxInt64, reason: arrowio.TimeRange,
			detail: "ts = 9223372036854775807 ns, allowed are 1681-08-18 to 2258-05-15"},
		{ts: record + int64(2*time.Hour), reason: validate.ReasonTooFar,
			detail: "ts = 2026-01-01T02:00:00Z is more than event_time.max_ahead, 1h0m0s, " +
				"after the record's timestamp 2026-01-01T00:00:00Z"},
		{ts: record, ahead: true, reason: validate.ReasonAhead,
			detail: "the record's timestamp 2026-01-01T00:00:00Z is more than " +
				"event_time.max_ahead, 1h0m0s, ahead of the clock"},
		{ts: record, label: 2, reason: arrowio.LabelRange, detail: "label: 2; allowed are 0 to 1"},
		{ts: record, label: -3, labels: true, reason: arrowio.LabelRange, detail: "label: -3; allowed are 0 and more"},
		{ts: record, label: 1},
	} {
		counts := pipeline.NewCounts()
		out := pipeline.NewOut(counts)
		var reason, detail string
		out.Tell(func(_ *pipeline.Record, r, d string) { reason, detail = r, d })
		v := validate.New(validate.Config{MaxAhead: int64(time.Hour)}, pipeline.Host{Out: out, Counts: counts})
		b := &arrowio.Batch{
			N:      1,
			Origin: arrowio.Origin{Time: record, Ahead: c.ahead},
			Models: []arrowio.ModelKey{{Model: "m", Version: "1"}},
			TS:     []int64{c.ts},
			K:      2,
			Scores: []float32{0, 1},
			Label:  []int32{c.label},
		}
		if c.labels {
			b.Kind, b.K, b.Scores = arrowio.Labels, 0, nil
		}
		out.Begin(pipeline.Record{})
		out.NextBatch(1)
		keep := func(out *arrowio.Batch) (pipeline.Rejects, error) { return out.Reject, nil }
		if _, err := v.Process(t.Context(), b, keep); err != nil {
			t.Fatal(err)
		}
		out.End()
		want := ""
		if c.reason != "" {
			want = "1 rows: " + c.reason + " (" + c.detail + ")"
		}
		if reason != c.reason || detail != want {
			t.Errorf("%+v\nhas %q, %q", c, reason, detail)
		}
	}
}

// TestRefusedIsWhatAShardRefuses: whatever came before, and in the words of its dead letter.
func TestRefusedIsWhatAShardRefuses(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	one := func(mutate func(*arrowio.Batch)) *arrowio.Batch {
		b := &arrowio.Batch{N: 1, Origin: arrowio.Origin{Time: now}, Models: []arrowio.ModelKey{{Model: "m"}},
			TS: []int64{now}, K: 2, Probs: true, Scores: []float32{0.5, 0.5}, IDs: []arrowio.ID{{1}}}
		mutate(b)
		return b
	}
	decoder := func(reason string) func(*arrowio.Batch) {
		return func(b *arrowio.Batch) {
			b.Reject, b.Served, b.Weight = []string{reason}, []float32{1.25}, []float32{-2}
		}
	}
	config := validate.Config{MaxAhead: int64(time.Hour), NeedID: true, Classes: map[string]int{"declared": 3}}
	for _, c := range []struct {
		batch *arrowio.Batch
		want  string
	}{
		{one(func(*arrowio.Batch) {}), ""},
		{one(func(b *arrowio.Batch) { b.TS[0] += int64(time.Hour) + 1 }), "too_far_ahead: ts = 2026-01-01T01:00:00Z " +
			"is more than event_time.max_ahead, 1h0m0s, after the record's timestamp 2026-01-01T00:00:00Z"},
		{one(func(b *arrowio.Batch) { b.Models[0].Model = "declared" }),
			"classes: K = 2, expected K = 3 as the configuration declares (models)"},
		{one(func(b *arrowio.Batch) { b.IDs = nil }), "no_id: neither id nor label, one is needed"},
		{one(func(b *arrowio.Batch) { decoder("nonfinite_scores")(b); b.Scores = []float32{-0.25, 1.25} }),
			"nonfinite_scores: probability of class 1: 1.25; allowed are 0 to 1"},
		{one(func(b *arrowio.Batch) { decoder("nonfinite_scores")(b); b.Scores[0] = 0.625 }),
			"nonfinite_scores: sum of the probabilities: 1.125; allowed are 0.95 to 1.05"},
		{one(func(b *arrowio.Batch) {
			decoder("nonfinite_scores")(b)
			b.Probs, b.Scores[0] = false, float32(math.Inf(1))
		}), "nonfinite_scores: logit of class 0: +Inf; allowed are finite ones (mask by -1e9)"},
		{one(decoder("bad_served")), "bad_served: served confidence: 1.25; allowed are 0 to 1"},
		{one(decoder("bad_weight")), "bad_weight: weight: -2; allowed are those above 0, at most 2^20"},
		{one(func(b *arrowio.Batch) { decoder("label_range")(b); b.BadLabel = "-1" }),
			"label_range: label: -1; allowed are 0 to 1, and null where not known"},
		{one(func(b *arrowio.Batch) {
			decoder("label_range")(b)
			b.BadLabel, b.K, b.Scores, b.Kind = "1099511627776", 0, nil, arrowio.Labels
		}), "label_range: label: 1099511627776; allowed are 0 and more"},
		{one(func(b *arrowio.Batch) { decoder("null_row")(b); b.Missing = []string{"id", "label"} }),
			"null_row: id, label: null or empty; every row must have one"},
	} {
		got := ""
		validate.Refused(config, c.batch, func(_ int, reason, detail string) { got += reason + ": " + detail })
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestHiddenLabels: where ids are hashed, a dead letter does not tell what the label of somebody was.
func TestHiddenLabels(t *testing.T) {
	for _, b := range []*arrowio.Batch{
		{N: 1, TS: []int64{1}, K: 2, Scores: []float32{0, 1}, Label: []int32{777}},
		{N: 1, TS: []int64{1}, Kind: arrowio.Labels, Label: []int32{-777}},
		{N: 1, TS: []int64{1}, K: 2, Scores: []float32{0, 1}, Reject: []string{arrowio.LabelRange}, BadLabel: "777"},
	} {
		b.Models = []arrowio.ModelKey{{Model: "m"}}
		out := pipeline.NewOut(pipeline.NewCounts())
		out.Hide(func(key []byte) []byte { return key })
		v := validate.New(validate.Config{}, pipeline.Host{Out: out, Counts: pipeline.NewCounts()})
		out.Begin(pipeline.Record{})
		out.NextBatch(1)
		keep := func(out *arrowio.Batch) (pipeline.Rejects, error) { return out.Reject, nil }
		if _, err := v.Process(t.Context(), b, keep); err != nil {
			t.Fatal(err)
		}
		out.End()
		if said := fmt.Sprintf("%s", out.Drain()[0].Headers); !strings.Contains(said, "label: a number") ||
			strings.Contains(said, "777") {
			t.Errorf("dead letter %s", said)
		}
	}
}

// TestSuspectsProbabilities: logits that are probabilities in a hundred batches one after the other are told, those
// that are sometimes are not, and probabilities are none.
func TestSuspectsProbabilities(t *testing.T) {
	for _, c := range []struct {
		name   string
		scores func(i int) []float32
		probs  bool
		want   int
	}{
		{"a softmax", func(int) []float32 { return []float32{.25, .75, 3, 4} }, false, 2},
		{"now and then", func(i int) []float32 { return []float32{.25, .75 + float32(i/99%2), 3, 4} }, false, 0},
		{"probs", func(int) []float32 { return []float32{.25, .75, .5, .5} }, true, 0},
	} {
		counts, told := pipeline.NewCounts(), 0
		v := validate.New(validate.Config{Suspect: func(key arrowio.ModelKey) {
			if told++; key.Model != "m" {
				t.Errorf("%s: model %q", c.name, key.Model)
			}
		}}, pipeline.Host{Out: pipeline.NewOut(counts), Counts: counts})
		for i := range 250 {
			b := &arrowio.Batch{N: 2, Models: []arrowio.ModelKey{{Model: "m", Version: "1"}}, TS: []int64{1, 2}, K: 2,
				Scores: c.scores(i), Probs: c.probs}
			if _, err := v.Process(t.Context(), b, pass); err != nil {
				t.Fatal(err)
			}
		}
		if told != c.want {
			t.Errorf("%s: told %d times, want %d", c.name, told, c.want)
		}
	}
}

func pass(b *arrowio.Batch) (pipeline.Rejects, error) { return b.Reject, nil }
