package slice

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/slicing"
)

// TestHeavyCountsWithinBounds compares the counts with exact ones. Kept values are exact. Pooled values are never above
// the exact count, and at most N/(counters+1) below it.
func TestHeavyCountsWithinBounds(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	const counters = 40
	h, exact := NewCounts(), map[string]int64{}
	h.Kept["v0"] = 0
	var pooled int64
	for range 300 {
		rows := map[string]int64{}
		for range 60 {
			rows[fmt.Sprintf("v%d", int(200*rng.Float64()*rng.Float64()*rng.Float64()))]++
		}
		for v, n := range rows {
			if exact[v] += n; v != "v0" {
				pooled += n
			}
		}
		h.Observe(7, rows, counters)
	}
	if h.Kept["v0"] != exact["v0"] || len(h.Pooled) > counters || !h.Full() {
		t.Errorf("v0 has %d rows, want %d; %d counters, allowed %d", h.Kept["v0"], exact["v0"], len(h.Pooled), counters)
	}
	for v, n := range exact {
		if got := h.Pooled[v]; v != "v0" && (got > n || got < n-pooled/(counters+1)) {
			t.Errorf("%s: counted %d of %d, allowed are %d fewer", v, got, n, pooled/(counters+1))
		}
	}
	v1 := h.Pooled["v1"]
	h.decay(9)
	if h.Kept["v0"] != exact["v0"]/4 || h.Pooled["v1"] != v1/4 {
		t.Errorf("after two half-lives %d and %d, want a quarter of %d and %d", h.Kept["v0"], h.Pooled["v1"],
			exact["v0"], v1)
	}
	h.decay(1 << 40)
	if len(h.Pooled) != 0 || h.Kept["v0"] != 0 || h.Full() {
		t.Errorf("after an age %v and %v are left", h.Kept, h.Pooled)
	}
}

// TestHeavySettles: which values are kept, pane by pane, with a limit of two.
func TestHeavySettles(t *testing.T) {
	t.Parallel()
	h := NewCounts()
	for i, c := range []struct {
		rows    map[string]int64
		limit   int
		in, out string
	}{
		{map[string]int64{"a": 5}, 2, "a", ""},
		{map[string]int64{"b": 9, "c": 100}, 2, "c", ""},                  // the free place goes to the heavier value
		{map[string]int64{"b": 10}, 2, "", ""},                            // 19 against 5 may be noise
		{map[string]int64{"b": 60}, 2, "b", "a"},                          // 79 against 5
		{map[string]int64{"a": 60, "b": 0, "c": 0, "d": 70}, 2, "", ""},   // less than half again as heavy as b
		{map[string]int64{"d": 140, "a": 1}, 2, "d", "b"},                 // 210 against 79
		{map[string]int64{"b": 100, "c": 100, "d": 100}, 2, "", ""},       // 179 against 200
		{map[string]int64{"x": 1}, 1, "", "c"},                            // the limit is lower now
		{map[string]int64{"c": 1}, 3, "b c", ""},                          // and higher now, so the heaviest come in
		{map[string]int64{"p": 4000, "q": 3000, "r": 1}, 3, "p q", "b c"}, // two at once
	} {
		h.Observe(0, c.rows, 100)
		in, out := h.Settle(c.limit)
		if got := strings.Join(in, " "); got != c.in || strings.Join(out, " ") != c.out {
			t.Errorf("step %d: %q in, %q out; want %q, %q; kept %v, pooled %v", i, in, out, c.in, c.out, h.Kept,
				h.Pooled)
		}
		if len(h.Kept) > c.limit {
			t.Errorf("step %d: %d are kept, allowed %d", i, len(h.Kept), c.limit)
		}
	}
}

// TestAdmit: values without predictions take free places, those with the least hashes first, and give way as others do.
func TestAdmit(t *testing.T) {
	t.Parallel()
	h := NewCounts()
	h.Observe(0, map[string]int64{"a": 5}, 100)
	h.Settle(3)
	values := []string{"a", "b", "c", "d"}
	over := LeastHashes(values[1:], 2)
	want := slices.DeleteFunc(slices.Clone(values[1:]), func(x string) bool { return over[x] })
	if in := h.Admit(values, 3); !slices.Equal(in, want) || len(h.Kept) != 3 {
		t.Errorf("%v come in, want %v; kept %v", in, want, h.Kept)
	}
	if in := h.Admit(values, 3); in != nil {
		t.Errorf("%v come in where there is no place", in)
	}
	h.Observe(0, map[string]int64{"x": 20, "y": 30}, 100)
	if in, out := h.Settle(3); !slices.Equal(in, []string{"x", "y"}) || !slices.Equal(out, want) {
		t.Errorf("%v come in and %v go out, want x and y, %v", in, out, want)
	}
}

// TestEqualValuesDoNotTakeTurns: with a hundred values of equal weight and ten places, changes come from noise and are
// rare.
func TestEqualValuesDoNotTakeTurns(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rng := rand.New(rand.NewPCG(2, 2))
	for _, perPane := range []int{20, 2000} {
		h, changes := NewCounts(), 0
		const panes = 3000
		for pane := range panes {
			rows := map[string]int64{}
			for range perPane {
				rows[fmt.Sprintf("v%d", rng.IntN(100))]++
			}
			h.Observe(int64(pane/360), rows, 40*10)
			if _, out := h.Settle(10); len(out) > 0 {
				changes += len(out)
			}
		}
		t.Logf("%d rows a pane: %d changes in %d panes", perPane, changes, panes)
		if changes > 20 {
			t.Errorf("%d rows a pane: %d changes in %d panes, want 20 at most", perPane, changes, panes)
		}
	}
}

// TestLeastHashes: the result equals that of a plain sort by hash, for any order of the values.
func TestLeastHashes(t *testing.T) {
	t.Parallel()
	var values []string
	for i := range 50 {
		values = append(values, fmt.Sprint("v", i))
	}
	want := slices.Clone(values)
	slices.SortFunc(want, func(a, b string) int {
		if slicing.Hash(a) < slicing.Hash(b) {
			return -1
		}
		return 1
	})
	over := LeastHashes(values, 20)
	for i, v := range want {
		if over[v] != (i >= 20) {
			t.Errorf("%s is number %d by hash, over: %v", v, i, over[v])
		}
	}
	if len(LeastHashes(values, 50)) != 0 {
		t.Error("as many as there is room for, and some are over")
	}
}

// FuzzCounts: invalid bytes give an error, and what is read encodes to the same bytes.
func FuzzCounts(f *testing.F) {
	h := NewCounts()
	h.Observe(3, map[string]int64{"a": 4, "b": 2, "c": 9}, 2)
	h.Settle(1)
	good := h.Append(nil)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		h, r := NewCounts(), binenc.NewReader(data)
		if h.Restore(&r); r.Close() != nil {
			return
		}
		again := h.Append(nil)
		back, r2 := NewCounts(), binenc.NewReader(again)
		if back.Restore(&r2); r2.Close() != nil || string(back.Append(nil)) != string(again) {
			t.Fatalf("%x becomes %x", again, back.Append(nil))
		}
	})
}
