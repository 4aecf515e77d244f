package model

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestCrashAfterAnyMessage clears the memory of shards and of the model task at random points: before, between and
// after checkpoint and outputs. It compares the result with a run without crashes.
func TestCrashAfterAnyMessage(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(1, batchtest.Options{N: 500, MaxLag: 40 * second, Unlabelled: .1, Sharpness: 2, Regions: 2,
		Versions: []string{"a", "b"}, Weights: true, Served: true})
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
			w.save, w.crash, w.slow = .1, .02, .7
			w.run(anyOrder).compare(want)
		})
	}
}

// TestModelTaskReloadsAtEveryMessage feeds one panes log, with late rows, alarms, refits and shards that become idle,
// to a task that runs through and to one that is restored again and again.
func TestModelTaskReloadsAtEveryMessage(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(61, batchtest.Options{N: 1500, MaxLag: 10 * second, Unlabelled: .05, Sharpness: 2.5})
	s := defaultSetup()
	in := make([]lanes, 2)
	for i, part := range batchtest.Split(rows, 2) {
		in[i] = lanes{batchtest.Predictions(t, displaced(part, 80), 10),
			batchtest.Labels(t, displaced(batchtest.ByLabelTime(part), 80), 10)}
	}
	w := newWorld(t, s, in, 1).run(anyOrder)
	if w.counts()["late"] == 0 || len(decodeAll[record.Calibrator](t, w.outputs, pipeline.StreamCalibrators)) == 0 ||
		len(decodeAll[record.Alert](t, w.outputs, pipeline.StreamAlerts)) == 0 {
		t.Fatalf("counts %v: want late rows, a calibrator and an alert", w.counts())
	}
	w.compareRestarts(t, w.restartsAfter(3))
}

// compare reports the differences between two runs over the same rows.
func (w *world) compare(want *world) {
	t := w.t
	t.Helper()
	if got, want := w.hash(), want.hash(); got != want {
		t.Errorf("state hash %s, want %s", got, want)
	}
	got, wanted := w.counts(), want.counts()
	if len(w.shards) != len(want.shards) {
		// How much has expired by the end depends on how far each shard has come.
		for _, name := range []string{pipeline.CountExpired, pipeline.CountWaiting} {
			delete(got, name)
			delete(wanted, name)
		}
	}
	if !maps.Equal(got, wanted) {
		t.Errorf("counts %v, want %v", got, wanted)
	}
	compareOutputs(t, firsts(w.outputs), firsts(want.outputs))
	if got, want := firsts(w.letters), firsts(want.letters); !reflect.DeepEqual(got, want) {
		t.Errorf("%d lanes of dead letters, want %d", len(got), len(want))
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
