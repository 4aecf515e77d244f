package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestNoChangeHasEvidence refits calibrated rows every minute: nothing may be published, and every decision says why, for
// every candidate.
func TestNoChangeHasEvidence(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(41, batchtest.Options{N: 6000, MaxLag: 5 * second})
	s := defaultSetup()
	s.model.Rules = nil
	s.model.Refit.Method = "auto"
	w := newWorld(t, s, stream(t, rows, 2, 50), 1).run(anyOrder)
	if c := decodeAll[record.Calibrator](t, w.outputs, pipeline.StreamCalibrators); len(c) > 0 {
		t.Errorf("published %+v on calibrated rows", c[0])
	}
	decisions := decodeAll[record.Calibrator](t, w.outputs, pipeline.StreamDecisions)
	if len(decisions) < 4 {
		t.Fatalf("%d decisions in ten periods", len(decisions))
	}
	for _, d := range decisions {
		e := d.Evidence
		if d.Published || d.Revision != 0 || d.Reason != "period" || d.Stage != "shadow" || !strings.HasPrefix(d.Outcome, "no change: ") || e.FitRows == 0 || e.FitRows > 1400 || e.NLLNew == 0 || e.ECEInForce == 0 {
			t.Errorf("decision %+v: want no change on period, with evidence", d)
		}
		want := candidateMethods("auto", 4, e.FitRows, false)
		if len(e.Candidates) != len(want) || math.Abs(e.LogENeeded-math.Log(float64(len(want))/.05)) > 1e-9 {
			t.Errorf("candidates %+v at log e-value %v, want %v, and the level split over them", e.Candidates, e.LogENeeded, want)
		}
		for i, c := range e.Candidates {
			if c.Method != want[i] || c.Outcome == "" || c.NLL == 0 || c.LogE >= e.LogENeeded {
				t.Errorf("candidate %+v: want %s with what it lacked", c, want[i])
			}
		}
		// The newest 30 % first, and then what comes, up to a pane past validation_rows.
		if least := e.FitRows * 3 / 7; e.FitTo > e.TestTo || e.TestRows < least || e.TestRows > 1000+150 {
			t.Errorf("fitted on %d rows to %s, validated on %d to %s: want %d to 1150", e.FitRows, e.FitTo, e.TestRows, e.TestTo, least)
		}
	}
}

// TestRefitWaitsForFreshRows: on an alarm only rows since its start count, and not before there are enough.
func TestRefitWaitsForFreshRows(t *testing.T) {
	s := defaultSetup()
	s.model.Refit.Delay = 1
	task := s.task()
	v := &version{Version: stage.Version{Model: "m", Name: "v", K: 4}, keys: map[string]*keyState{}}
	k := v.key("", &task.cfg)
	k.Sample = sample(batchtest.Rows(42, batchtest.Options{N: 1000, Sharpness: 3}))
	end := batchtest.Start + 100*second
	pane := pipeline.PaneIndex(end, s.model.Pane) - 1
	refit := func(since, end int64) {
		t.Helper()
		if err := task.refitOnAlarm(v, k, &stage.Pane{Index: pane, End: end, Labelled: 1}, since); err != nil {
			t.Fatal(err)
		}
	}
	if refit(k.Sample[800].TS, end); v.refit.trial != nil {
		t.Fatal("refit on 200 fresh rows, want to wait for 300")
	}
	if refit(k.Sample[700].TS, end); v.refit.trial == nil || v.refit.trial.due != pane+1 {
		t.Fatalf("refit %+v, want one that is due at the next pane", v.refit.trial)
	}
	later := sample(batchtest.Rows(43, batchtest.Options{N: 100, Sharpness: 3, Start: end}))
	if err := task.stepTrial(v, k, &stage.Pane{Index: pane + 1, End: end + s.model.Pane, Rows: later, Labelled: 100}); err != nil {
		t.Fatal(err)
	}
	c := decodeAll[record.Calibrator](t, task.Outputs(), pipeline.StreamCalibrators)
	if len(c) != 1 || c[0].Reason != "alarm" || c[0].Evidence.FitRows != 210 || c[0].Evidence.TestRows != 190 || nanos(t, c[0].Evidence.FitFrom) != k.Sample[700].TS {
		t.Fatalf("got %+v, want one calibrator of the last 300 rows, validated on 90 of them and 100 more", c)
	}
	if refit(0, end+int64(s.model.Refit.Cooldown)-1); v.refit.trial != nil {
		t.Error("refit within the cooldown")
	}
	if refit(0, end+int64(s.model.Refit.Cooldown)); v.refit.trial != nil {
		t.Error("refit after the cooldown without a row since the new calibrator")
	}
}

func sample(rows []batchtest.Row) []acc.SampleRow {
	out := make([]acc.SampleRow, 0, len(rows))
	for i, r := range rows {
		out = append(out, acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8)}, TS: r.TS, LabelTS: r.LabelTS, W: 1, Y: r.Label, Z: r.Scores})
	}
	return out
}

func TestCalibratorInForceByEventTime(t *testing.T) {
	v := &version{}
	for i, from := range []int64{100, 200, 300} {
		v.Calibrators = append(v.Calibrators, &stage.InForce{Revision: i + 1, From: from})
	}
	at := func(want map[int64]int) {
		t.Helper()
		for ts, revision := range want {
			got := 0
			if f := v.At(ts, [16]byte{}); f != nil {
				got = f.Revision
			}
			if got != revision {
				t.Errorf("revision %d in force at %d, want %d", got, ts, revision)
			}
		}
	}
	at(map[int64]int{0: 0, 99: 0, 100: 1, 199: 1, 200: 2, 300: 3, 1000: 3})
	v.ForgetBefore(199)
	at(map[int64]int{100: 1, 199: 1, 200: 2})
	v.ForgetBefore(200)
	at(map[int64]int{200: 2, 299: 2, 300: 3})
	v.ForgetBefore(1000)
	at(map[int64]int{300: 3})
	if len(v.Calibrators) != 1 {
		t.Errorf("%d calibrators kept, want the newest", len(v.Calibrators))
	}
}

// TestApplyWritesTheCalibratedStream checks probabilities and that nothing else depends on the operator.
func TestApplyWritesTheCalibratedStream(t *testing.T) {
	rows := batchtest.Rows(43, batchtest.Options{N: 100})
	s := defaultSetup()
	plain := newWorld(t, s, stream(t, rows, 1, 25), 1).run(anyOrder)
	s.apply = apply.NewPublished()
	w := newWorld(t, s, stream(t, rows, 1, 25), 1).run(anyOrder)
	if g, want := w.hash(), plain.hash(); g != want {
		t.Errorf("hash %s, without the calibrated stream %s", g, want)
	}
	n := 0
	for _, m := range w.letters {
		if m.Stream == pipeline.StreamCalibrated {
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d calibrated messages, want 4", n)
	}
}

// TestWholeComesAfterSlices: a refit sees the statistics of every slice of its pane done.
func TestWholeComesAfterSlices(t *testing.T) {
	rows := batchtest.Rows(44, batchtest.Options{N: 200, Regions: 2})
	s := defaultSetup()
	s.slices = []string{"region"}
	w := newWorld(t, s, stream(t, rows, 1, 25), 1).run(anyOrder)
	var order []string
	for _, snap := range w.snapshots() {
		if snap.Window.Name == "rows" && (len(order) == 0 || order[len(order)-1] != snap.Slice) {
			order = append(order, snap.Slice)
		}
	}
	if len(order) < 6 || !slices.Equal(order[:3], []string{"region=r0", "region=r1", ""}) {
		t.Errorf("order of keys %q", order)
	}
}
