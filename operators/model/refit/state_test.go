package refit

import (
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// TestRefitWaitsForFreshRows: a refit on an alarm uses only rows since the alarm's start, and waits until there are
// enough.
func TestRefitWaitsForFreshRows(t *testing.T) {
	x := newFixture(t, testConfig(), 4)
	k := x.key
	k.Sample = sample(batchtest.Rows(42, batchtest.Options{N: 1000, Sharpness: 3}))
	end := batchtest.Start + 100*second
	pane := pipeline.PaneIndex(end, paneLength) - 1
	refit := func(since, end int64) {
		t.Helper()
		x.must(x.onAlarm(&stage.Pane{Index: pane, End: end, Labelled: 1}, since))
	}
	if refit(k.Sample[800].TS, end); x.run != nil {
		t.Fatal("refit on 200 fresh rows, want to wait for 300")
	}
	if refit(k.Sample[700].TS, end); x.run == nil || x.run.due != pane+1 {
		t.Fatalf("refit %+v, want one that is due at the next pane", x.run)
	}
	later := sample(batchtest.Rows(43, batchtest.Options{N: 100, Sharpness: 3, Start: end}))
	x.must(x.stepRun(&stage.Pane{Index: pane + 1, End: end + paneLength, Rows: later, Labelled: 100}))
	c := x.published(pipeline.StreamCalibrators)
	if len(c) != 1 || c[0].Reason != "alarm" || c[0].Evidence.FitRows != 210 || c[0].Evidence.TestRows != 190 ||
		c[0].Evidence.FitFrom.UnixNano() != k.Sample[700].TS {
		t.Fatalf("got %+v, want one calibrator of the last 300 rows, validated on 90 of them and 100 more", c)
	}
	if refit(0, end+int64(x.stage.cfg.Cooldown)-1); x.run != nil {
		t.Error("refit within the cooldown")
	}
	if refit(0, end+int64(x.stage.cfg.Cooldown)); x.run != nil {
		t.Error("refit after the cooldown without a row since the new calibrator")
	}
}
