package model

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
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
	in := worldtest.Stream(t, rows, 3, 16)
	want := newWorld(t, s, in, 1).run(worldtest.AnyOrder)
	if n := want.Counts()["late"]; n != 0 {
		t.Fatalf("%d late rows in a stream that has none", n)
	}
	if len(want.Snapshots()) == 0 || len(worldtest.Firsts(want.Outputs)) < 5 {
		t.Fatalf("outputs %v: too few to compare", slices.Sorted(maps.Keys(worldtest.Firsts(want.Outputs))))
	}
	for seed := uint64(2); seed < 4; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s, in, seed)
			w.Save, w.Crash, w.Slow = .1, .02, .7
			w.run(worldtest.AnyOrder).compare(want)
		})
	}
}

// TestTaskReloadsAtEveryMessage feeds one panes log, with late rows, alarms, refits and shards that become idle,
// to a task that runs through and to one that is restored again and again.
func TestTaskReloadsAtEveryMessage(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(61, batchtest.Options{N: 1500, MaxLag: 10 * second, Unlabelled: .05, Sharpness: 2.5})
	s := defaultSetup()
	in := make([]worldtest.Lanes, 2)
	for i, part := range batchtest.Split(rows, 2) {
		in[i] = worldtest.Lanes{batchtest.Predictions(t, displaced(part, 80), 10),
			batchtest.Labels(t, displaced(batchtest.ByLabelTime(part), 80), 10)}
	}
	w := newWorld(t, s, in, 1).run(worldtest.AnyOrder)
	if w.Counts()["late"] == 0 || len(worldtest.DecodeAll[record.Calibrator](t, w.Outputs,
		pipeline.StreamCalibrators)) == 0 ||
		len(worldtest.DecodeAll[record.Alert](t, w.Outputs, pipeline.StreamAlerts)) == 0 {
		t.Fatalf("counts %v: want late rows, a calibrator and an alert", w.Counts())
	}
	w.compareRestarts(t, w.restartsAfter(3))
}
