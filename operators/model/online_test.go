package model

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestOnlineIsShownAndKept: only the snapshots of the whole version show the top confidence that follows. Crashes do
// not change it.
func TestOnlineIsShownAndKept(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(111, batchtest.Options{N: 1500, MaxLag: 5 * second, Sharpness: 2.5, Regions: 2})
	s := defaultSetup()
	s.slices = []string{"region"}
	in := worldtest.Stream(t, rows, 2, 20)
	w := newWorld(t, s, in, 1).run(worldtest.AnyOrder)
	var last *record.Online
	for _, snap := range w.Snapshots() {
		if (snap.Online != nil) != (snap.Slice == "") && snap.Labelled > 0 && snap.Slice != "" {
			t.Fatalf("slice %q has online %+v", snap.Slice, snap.Online)
		}
		if snap.Online != nil {
			last = snap.Online
		}
	}
	if last == nil || last.Rows < 1000 || last.BestFixed.LogLoss > last.LogLoss+.05 ||
		math.Abs(last.Regret-(last.LogLoss-last.BestFixed.LogLoss)) > 1e-12 || last.ECE > .1 {
		t.Errorf("online %+v: want the latest rows, a regret that is the difference of the losses, and a small ECE",
			last)
	}
	crashed := newWorld(t, s, in, 3)
	crashed.Save, crashed.Crash = .1, .02
	crashed.run(worldtest.AnyOrder).compare(w)
}
