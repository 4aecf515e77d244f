package join

import (
	"slices"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// TestScoreRowsKeepFeatures: an entry has its scores and features back after others' rows of the same length came and
// went, and in a state of the other width.
func TestScoreRowsKeepFeatures(t *testing.T) {
	for _, width := range []int{2, 4} {
		rows := func(width int) *scoreRows {
			return &scoreRows{featureBytes: width, pools: pools{by: map[int]*pool{}}}
		}
		put := func(s *scoreRows, x ...float32) *entry {
			p := &entry{k: 2, d: int32(len(x))}
			p.slot = s.pools.of(s.words(p)).take()
			copy(s.row(p), []float32{1, 2})
			s.putFeatures(p, x)
			return p
		}
		s := rows(width)
		gone := put(s, -1, -2, -3, -4)
		s.pools.of(s.words(gone)).drop(gone.slot)
		p := put(s, .5, 3, -.25)
		put(s, 9, 9, 9)
		want := []float32{.5, 3, -.25}
		if got := s.addFeatures(nil, p); !slices.Equal(got, want) || !slices.Equal(s.row(p), []float32{1, 2}) {
			t.Errorf("width %d: %v behind %v", width, got, s.row(p))
		}
		other := rows(6 - width)
		in := binenc.NewReader(s.appendFeatures(nil, p))
		d, of, raw := readFeatures(&in, flagFeatures)
		q := put(other, make([]float32, d)...)
		other.restoreFeatures(q, of, raw)
		if got := other.addFeatures(nil, q); in.Err() != nil || !slices.Equal(got, want) {
			t.Errorf("width %d restored to the other: %v, %v", width, got, in.Err())
		}
	}
}

// TestSliceTableForgetsValues: values that no entry has any more lose their numbers, and entries keep their values,
// also under the names that rows on disk have.
func TestSliceTableForgetsValues(t *testing.T) {
	w := &sliceTable{names: []string{"region", "tier"}, columns: 2, slices: make([]int32, 4),
		valueIx: map[string]int32{}}
	b := &arrowio.Batch{N: 2, Slices: []arrowio.SliceColumn{{Name: "tier", Values: []string{"gold", "tin"},
		Index: []int32{1, -1}}, {Name: "region", Values: []string{"eu"}, Index: []int32{0, 0}}}}
	w.value("gone")
	for e := range int32(2) {
		w.takeSlices(e, b, int(e))
	}
	before := w.sliceNamesOf(nil, 0)
	old := w.forgetValues()
	for e := range int32(2) {
		w.renumber(e, old)
	}
	if !slices.Equal(w.values, []string{"eu", "tin"}) || !slices.Equal(w.slices, []int32{0, 1, 0, -1}) {
		t.Errorf("%v of %v", w.slices, w.values)
	}
	if now := w.sliceNamesOf(nil, 0); !slices.Equal(now, before) || len(now) != 2 || now[0].Text != "region\x00eu" {
		t.Errorf("on disk %v, before %v", now, before)
	}
	w.names, w.columns = []string{"tier"}, 1
	if w.setSlices(3, before); w.slices[3] != 1 || w.droppedOf(before) != 1 {
		t.Errorf("of other columns: value %d, %d dropped", w.slices[3], w.droppedOf(before))
	}
}

// TestLabelledBatchesAreReused: batches go on in the order of their first rows, and their memory stays up to a bound.
func TestLabelledBatchesAreReused(t *testing.T) {
	models := []arrowio.ModelKey{{Model: "a"}, {Model: "b"}}
	l := &labelled{build: map[groupKey]*builder{}}
	emitted := func() (got string) {
		if err := l.emit(arrowio.Origin{Offset: 7}, func(b *arrowio.Batch) (pipeline.Rejects, error) {
			got += b.Models[0].Model
			if b.Origin.Offset != 7 || b.N != 1 {
				t.Errorf("%d rows of record %d", b.N, b.Origin.Offset)
			}
			return nil, nil
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	for range 2 {
		for _, model := range []int32{1, 0} {
			g := l.groupOf(groupKey{model: model, k: 2}, models)
			g.b.N++
		}
		if got := emitted(); got != "ba" || len(l.build) != 2 {
			t.Errorf("batches %s, %d kept", got, len(l.build))
		}
	}
	g := l.groupOf(groupKey{model: 0, k: 2}, models)
	g.b.N, g.b.Scores = 1, make([]float32, maxBuilt/4+1)
	if got := emitted(); got != "a" || len(l.build) != 0 || l.built != 0 {
		t.Errorf("%d batches of %d bytes kept beyond the bound", len(l.build), l.built)
	}
}

// TestWaitingCounts: counts that were restored are brought to what waits, and never beside it.
func TestWaitingCounts(t *testing.T) {
	counts := pipeline.NewCounts()
	w := waitingCounts{counts: counts}
	w.publish(tally{predictions: 5, labels: 2})
	again := waitingCounts{counts: counts}
	again.restored()
	again.publish(tally{predictions: 3, labels: 4})
	if n := counts.All(); n[pipeline.CountWaiting] != 3 || n[pipeline.CountWaitingLabels] != 4 {
		t.Errorf("%v", n)
	}
}
