package acc

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestDecoderReset: what a decoder decodes after Reset has nothing of the sets that were in its memory.
func TestDecoderReset(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	d := NewDecoder()
	for i := range 200 {
		set := randSet(t, rng, 2+rng.IntN(40), rng.IntN(60), i%2 == 0)
		want := encode(t, set)
		d.Reset()
		got, err := d.DecodeSet(want)
		if err != nil {
			t.Fatalf("set %d: %v", i, err)
		}
		if !bytes.Equal(encode(t, got), want) {
			t.Fatalf("set %d: other bytes after Reset", i)
		}
		twice := encode(t, mustMerge(t, set, set.Clone()))
		if !bytes.Equal(encode(t, mustMerge(t, got, got.Clone())), twice) {
			t.Fatalf("set %d: other sums after Reset", i)
		}
	}
}
