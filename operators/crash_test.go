package operators

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
)

// TestCrashAfterAnyMessage loses the memory of shards and of the model task at random points, before, between and
// after checkpoint and outputs, and compares with the run that was left alone.
func TestCrashAfterAnyMessage(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(1, batchtest.Options{N: 500, MaxLag: 40 * second, Unlabelled: .1, Sharpness: 2, Regions: 2, Versions: []string{"a", "b"}, Weights: true, Served: true})
	s := defaultSetup()
	s.slices = []string{"region"}
	in := stream(t, rows, 3, 16)
	want := newWorld(t, s, in, 1).run(anyOrder)
	if n := want.counts()["late"]; n != 0 {
		t.Fatalf("%d late rows in a stream that has none", n)
	}
	if len(want.snapshots()) == 0 || len(firsts(want.outputs)) < 5 {
		t.Fatalf("outputs %v: too few to compare", slices.Sorted(maps.Keys(firsts(want.outputs))))
	}
	for seed := uint64(2); seed < 4; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s, in, seed)
			w.save, w.crash = .1, .02
			w.run(anyOrder).compare(want)
		})
	}
}

// compare reports what differs between two runs of the same rows.
func (got *world) compare(want *world) {
	t := got.t
	t.Helper()
	if g, w := got.hash(), want.hash(); g != w {
		t.Errorf("state hash %s, want %s", g, w)
	}
	g, w := got.counts(), want.counts()
	if len(got.shards) != len(want.shards) {
		// What has expired by the end depends on how far each shard has come.
		delete(g, pipeline.CountExpired)
		delete(w, pipeline.CountExpired)
	}
	if !maps.Equal(g, w) {
		t.Errorf("counts %v, want %v", g, w)
	}
	compareOutputs(t, firsts(got.outputs), firsts(want.outputs))
	if g, w := firsts(got.letters), firsts(want.letters); !reflect.DeepEqual(g, w) {
		t.Errorf("%d lanes of dead letters, want %d", len(g), len(w))
	}
}

func compareOutputs(t testing.TB, got, want map[string][]string) {
	t.Helper()
	for lane := range want {
		g, w := got[lane], want[lane]
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Errorf("%s: output %d is\n%s, want\n%s", lane, i, g[i], w[i])
				return
			}
		}
		if len(g) != len(w) {
			t.Errorf("%s: %d outputs, want %d", lane, len(g), len(w))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lanes of outputs, want %d", len(got), len(want))
	}
}
