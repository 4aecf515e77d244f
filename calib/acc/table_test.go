package acc

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTableMerge: tables of decoders are merged in order, with the sums of a map.
func TestTableMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	plain := func(n, space int) *table[uint16] {
		x := &table[uint16]{space: gridKeys}
		for k := range space {
			if rng.IntN(space) < n {
				x.keys = append(x.keys, uint16(k))
				x.ents = append(x.ents, entry{rng.Int64N(100), 1, int64(k), rng.Int64N(9)})
			}
		}
		return x
	}
	for range 300 {
		space := 1 + rng.IntN(60)
		a, b := plain(rng.IntN(space+1), space), plain(rng.IntN(space+1), space)
		if rng.IntN(9) == 0 {
			b = a
		}
		want := map[uint16]entry{}
		for _, x := range []*table[uint16]{a, b} {
			for i, k := range x.keys {
				e := want[k]
				for j := range e {
					e[j] += x.ents[i][j]
				}
				want[k] = e
			}
		}
		a.add(b)
		if keys := a.sorted().keys; !slices.IsSorted(keys) || len(keys) != len(want) {
			t.Fatalf("keys %v, want %d in order", keys, len(want))
		}
		for k, e := range want {
			if got := a.get(k); got != e {
				t.Fatalf("key %d: got %v, want %v", k, got, e)
			}
		}
	}
}
