package stats

import (
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// TestEvictedValueIsPooled: the rows of the value that has no slot any more are those of ~other, in every cell of its
// label pane and in no other pane.
func TestEvictedValueIsPooled(t *testing.T) {
	s := New(Options{Pane: 10, MaxKeys: 100}, pipeline.Host{Outbox: pipeline.NewOutbox(0, 1, 10, 1),
		Counts: pipeline.NewCounts()})
	b := &arrowio.Batch{Kind: arrowio.Predictions, N: 5, K: 2, TS: []int64{1, 2, 3, 11, 12},
		Scores: make([]float32, 10), Models: []arrowio.ModelKey{{Model: "m"}},
		Slices: []arrowio.SliceColumn{{Name: "region", Values: []string{"a", "b"}, Index: []int32{0, 0, 1, 0, 1}}}}
	emit := func(*arrowio.Batch) (pipeline.Rejects, error) { return nil, nil }
	if _, err := s.Process(t.Context(), b, emit); err != nil {
		t.Fatal(err)
	}
	column := s.keys.byName[columnKey{b.Models[0], "region", 2}]
	p := s.valuesOf(column, 0)
	if p.Len() != 2 {
		t.Fatalf("%d values, want 2", p.Len())
	}
	gone := s.keys.keys[p.heap[0].key].value
	want := map[string]int64{"a": 2, "b": 1}[gone]
	rows, err := s.evict(column, p, 0)
	if err != nil || rows != want || p.Len() != 1 {
		t.Errorf("%s: %d rows, %v; want %d", gone, rows, err, want)
	}
	seen := map[string]int64{}
	for k, set := range s.cells {
		if n, _ := set.SeenRows(); k.labelPane == 0 {
			seen[s.keys.keys[k.key].value] += n
		} else if k.key == s.keys.other(column) {
			t.Errorf("%d rows of another pane are pooled", n)
		}
	}
	if _, has := seen[gone]; has || seen["~other"] != want || seen[""] != 3 {
		t.Errorf("rows by value: %v", seen)
	}
}

// TestGroupsOfABlock: each cell has one group, whichever cells come between, and the next block begins without any.
func TestGroupsOfABlock(t *testing.T) {
	g := groupTable{byCell: map[cellKey]int{}}
	key := func(i int) cellKey { return cellKey{int32(i % 7), int64(i % 3), 0} }
	for range 2 {
		for i := range 100 {
			if found, _ := g.find(key(i)); (found != nil) != (i >= 21) {
				t.Fatalf("row %d: group %v", i, found)
			} else if found == nil {
				g.add(key(i))
			}
			if found, at := g.find(key(i)); found.key != key(i) || &g.groups[at] != found {
				t.Fatalf("row %d is of the group of %v, want %v", i, found.key, key(i))
			}
		}
		if len(g.groups) != 21 {
			t.Fatalf("%d groups, want 21", len(g.groups))
		}
		if err := g.addTo(nil); err != nil { // no rows
			t.Fatal(err)
		}
	}
}
