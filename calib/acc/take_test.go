package acc

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestTakeSample: without its sample a set is, in bytes, one that never had any.
func TestTakeSample(t *testing.T) {
	cfg := testConfig
	cfg.SampleRows = 0
	with, without := newSet(), must(New(cfg))
	rng := rand.New(rand.NewPCG(1, 6))
	for range 100 {
		f := setRow(rng)
		for _, s := range []*Set{with, without} {
			if err := f(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(with.TakeSample()); n != testConfig.SampleRows {
		t.Fatalf("got %d rows, want %d", n, testConfig.SampleRows)
	}
	if !bytes.Equal(encode(t, with), encode(t, without)) {
		t.Error("the set differs from one made without a sample")
	}
	back := newSet()
	if err := back.UnmarshalBinary(encode(t, with)); err != nil {
		t.Fatal(err)
	}
	if err := back.Merge(without); err != nil {
		t.Fatal(err)
	}
}
