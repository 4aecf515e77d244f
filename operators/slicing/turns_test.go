package slicing

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline"
)

// TestTurns: a slice has one turn in n panes, rows wait for the next one, and spans are whole.
func TestTurns(t *testing.T) {
	if TurnOf("region=eu") != TurnOfValue("region", "eu") {
		t.Error("a slice has another turn by its column and value")
	}
	for _, n := range []Turns{0, 1, 2, 6, 7} {
		every := max(int64(n), 1)
		for _, turn := range []uint32{0, 1, 5, 1<<32 - 1} {
			turns := int64(0)
			for p := int64(-20); p < -20+7*every; p++ {
				next := n.Next(p, turn)
				if next < p || next >= p+every || n.Next(next, turn) != next {
					t.Fatalf("turns of %d: from pane %d the next of %d is %d", n, p, turn, next)
				}
				if next == p {
					turns++
				}
				if span := n.Span(p); span < p || span >= p+every || pipeline.PaneIndex(span+1, every)*every != span+1 {
					t.Fatalf("spans of %d: pane %d is in one that ends at %d", n, p, span)
				}
			}
			if turns != 7 {
				t.Errorf("turns of %d: %d in seven times as many panes", n, turns)
			}
		}
	}
	const second = 1_000_000_000
	for _, c := range []struct {
		so, pane int64
		of       []int64
		want     Turns
	}{
		{60 * second, 10 * second, []int64{60 * second, 3600 * second}, 6},
		{60 * second, 10 * second, []int64{600 * second, 30 * second}, 3},
		{60 * second, 10 * second, []int64{50 * second}, 5},
		{60 * second, 7 * second, []int64{70 * second}, 5},
		{60 * second, 90 * second, nil, 1},
		{5 * second, 10 * second, nil, 1},
		{60 * second, 10 * second, []int64{10 * second}, 1},
		{60 * second, 0, []int64{10 * second}, 1},
		{60 * second, -second, nil, 1},
		{60 * second, 10 * second, []int64{0, 0}, 6},
		{60 * second, 10 * second, []int64{-10 * second}, 1},
		{1 << 62, 1_000_000, []int64{1_000_000 * (1_000_003 * 1_000_033)}, 1_000_003 * 1_000_033},
	} {
		if got := TurnsWithin(c.so, c.pane, c.of); got != c.want {
			t.Errorf("%d ns in panes of %d, slides %v: %d, want %d", c.so, c.pane, c.of, got, c.want)
		}
	}
}
