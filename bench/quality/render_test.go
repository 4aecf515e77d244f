package main

import (
	"math"
	"testing"
)

// scores has two splits of one model, in which the method named better has ece less by .02 and .03.
func scores() map[key]score {
	out := map[key]score{}
	model := groups[1].file + "/" + groups[1].array
	for split, less := range []float64{.02, .03} {
		for method, ece := range map[string]float64{reference: .1, "platt": .1 - less, "beta": .1 + 100*less} {
			k := key{model, split, method, 0}
			out[k] = score{key: k, ECE: ece}
		}
	}
	return out
}

func TestBySplitPairs(t *testing.T) {
	tab := newTable(scores())
	models := tab.groups[groups[1].title]
	got := tab.bySplit(models, "platt", reference, 0, columns[0].of)
	if len(got) != 2 || math.Abs(got[0]+.02) > 1e-15 || math.Abs(got[1]+.03) > 1e-15 {
		t.Errorf("differences %v, want -.02 and -.03", got)
	}
	if got := tab.bySplit(models, "isotonic", reference, 0, columns[0].of); got != nil {
		t.Errorf("a method that was not measured: %v", got)
	}
	if text := tab.cell(models, "isotonic", columns[0]); text != "–" {
		t.Errorf("a method that was not measured: %q", text)
	}
}

// TestHalves: the halves of a split are disjoint and together all rows, and a cut keeps the first of them.
func TestHalves(t *testing.T) {
	m := model{k: 1}
	for i := range 11 {
		m.z, m.labels = append(m.z, float32(i)), append(m.labels, int32(i))
	}
	_, fit := m.half(3, false, 0)
	_, held := m.half(3, true, 0)
	seen := map[int32]bool{}
	for _, y := range append(append([]int32{}, fit...), held...) {
		if seen[y] {
			t.Errorf("row %d is in both halves", y)
		}
		seen[y] = true
	}
	if len(fit) != 5 || len(seen) != 11 {
		t.Errorf("halves %v and %v", fit, held)
	}
	z, few := m.half(3, false, 2)
	if len(few) != 2 || few[0] != fit[0] || few[1] != fit[1] || z[0] != float32(fit[0]) {
		t.Errorf("two rows of the half %v: %v", fit, few)
	}
	if _, other := m.half(4, false, 0); other[0] == fit[0] && other[1] == fit[1] && other[2] == fit[2] {
		t.Errorf("split 4 has the order of split 3: %v", other)
	}
}
