package validate_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
)

// TestRowsAlike: what most rows share is looked at once, and no row fares otherwise, or teaches otherwise, than it does
// in a batch of its own.
func TestRowsAlike(t *testing.T) {
	config := validate.Config{NeedID: true, MaxAhead: 100, Classes: map[string]int{"declared": 3},
		Limits: validate.Limits{Max: 3, PerMinute: 5}}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		operator := func() (*validate.Operator, func(b *arrowio.Batch) []string) {
			counts := pipeline.NewCounts()
			v := validate.New(config, pipeline.Host{Out: pipeline.NewOut(counts), Counts: counts})
			return v, func(b *arrowio.Batch) (reasons []string) {
				if _, err := v.Process(t.Context(), b, func(out *arrowio.Batch) (pipeline.Rejects, error) {
					reasons = slices.Clone(out.Reject)
					return out.Reject, nil
				}); err != nil {
					t.Fatal(err)
				}
				if reasons == nil {
					reasons = make([]string, b.N)
				}
				return reasons
			}
		}
		whole, together := operator()
		single, alone := operator()
		for offset := range int64(4) {
			n, k := 1+rng.IntN(12), 2+rng.IntN(2)
			b := arrowio.Batch{N: n, K: k, Kind: arrowio.Predictions, Scores: make([]float32, n*k),
				Models: []arrowio.ModelKey{{Model: "a", Version: "1"}, {Model: "a", Version: "2"}, {Model: "declared"},
					{Model: "b"}},
				Origin: arrowio.Origin{Offset: offset, Time: 1000}}
			for i := range n {
				b.Model = append(b.Model, int32(rng.IntN(4)*rng.IntN(2)-rng.IntN(2)))
				b.TS = append(b.TS, 1000+rng.Int64N(110))
				b.Label = append(b.Label, int32(rng.IntN(5)-1))
				b.Sources = append(b.Sources, 10*offset+int64(i/2))
			}
			var want []string
			for i := range n {
				one := b
				one.N, one.Model, one.TS, one.Label = 1, b.Model[i:i+1], b.TS[i:i+1], b.Label[i:i+1]
				one.Scores, one.Sources = b.Scores[:k], b.Sources[i:i+1]
				want = append(want, alone(&one)...)
			}
			if got := together(&b); !slices.Equal(got, want) {
				t.Fatalf("seed %d, message %d: %q together, %q alone", seed, offset, got, want)
			}
		}
		a, err := whole.AppendState(nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := single.AppendState(nil); err != nil || !bytes.Equal(a, b) {
			t.Fatalf("seed %d: rows teach otherwise together: %q, %q (%v)", seed, a, b, err)
		}
	}
}
