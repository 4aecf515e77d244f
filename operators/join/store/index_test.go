package store

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIndexAgainstMap adds and removes rows of few and of many ids, and looks up every id as a map would.
func TestIndexAgainstMap(t *testing.T) {
	for _, ids := range []int{3, 5000} {
		r := rand.New(rand.NewPCG(uint64(ids), 1))
		x, want := NewIndex(), map[ID][]uint32{}
		// Of 10,000 ids two have one hash with 1 of 100 seeds: those of the test are always the same.
		x.seed = [2]uint64{r.Uint64() | 1, r.Uint64() | 1}
		for step := range 60_000 {
			id := ID{byte(r.IntN(ids)), byte(r.IntN(ids) >> 8), 15: byte(r.IntN(2))}
			if have := want[id]; len(have) > 0 && (r.IntN(2) == 0 || step > 50_000) {
				i := r.IntN(len(have))
				if !x.Remove(x.Hash(&id), have[i]) {
					t.Fatalf("step %d: row %d is not in the index", step, have[i])
				}
				want[id] = slices.Delete(have, i, i+1)
			} else {
				x.Add(x.Hash(&id), uint32(step))
				want[id] = append(have, uint32(step))
			}
			probe := ID{byte(r.IntN(ids)), byte(r.IntN(ids) >> 8), 15: byte(r.IntN(2))}
			got := slices.Clone(x.Lookup(x.Hash(&probe)))
			for _, row := range want[probe] {
				if !slices.Contains(got, row) {
					t.Fatalf("step %d: row %d of its id is not found", step, row)
				}
			}
			if len(got) > len(want[probe])+1 {
				t.Fatalf("step %d: %d rows found for an id of %d", step, len(got), len(want[probe]))
			}
		}
		x.Shrink()
		rows, slots := 0, 0
		for i := range x.tables {
			tab := &x.tables[i]
			rows += tab.n
			slots += 8 * len(tab.lines)
			if tab.n > tab.most {
				t.Errorf("table %d has %d rows in %d slots", i, tab.n, 8*len(tab.lines))
			}
		}
		n := 0
		for _, rs := range want {
			n += len(rs)
		}
		if rows != n || slots > 8*n+256*2*8*minLines {
			t.Errorf("%d rows in %d slots, want %d rows", rows, slots, n)
		}
	}
}

func TestNewestFirst(t *testing.T) {
	const oldest = 1<<32 - 2
	got := newestFirst([]uint32{1, 1<<32 - 1, 0, 1<<32 - 2}, oldest, nil)
	if want := []uint64{oldest + 3, oldest + 2, oldest + 1, oldest}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: row numbers go on beyond 2³²", got, want)
	}
}

func BenchmarkLookupMiss(b *testing.B) {
	const rows = 1 << 20
	x := NewIndex()
	r := rand.New(rand.NewPCG(1, 1))
	var id ID
	fill := func() {
		for i := range id {
			id[i] = byte(r.Uint32())
		}
	}
	for i := range rows {
		fill()
		x.Add(x.Hash(&id), uint32(i))
	}
	fill()
	for b.Loop() {
		id[0]++
		id[1] += 3
		x.Lookup(x.Hash(&id))
	}
}
