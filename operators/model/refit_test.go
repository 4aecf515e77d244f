package model

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestNoChangeHasEvidence refits calibrated rows every minute. Nothing may be published, and every decision says why,
// for every candidate.
func TestNoChangeHasEvidence(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(41, batchtest.Options{N: 6000, MaxLag: 5 * second})
	s := defaultSetup()
	s.model.Rules = nil
	s.model.Refit.Method = "auto"
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	if c := worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators); len(c) > 0 {
		t.Errorf("published %+v on calibrated rows", c[0])
	}
	decisions := worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamDecisions)
	if len(decisions) < 4 {
		t.Fatalf("%d decisions in ten periods", len(decisions))
	}
	for _, d := range decisions {
		e := d.Evidence
		if d.Published || d.Revision != 0 || d.Reason != "period" || d.Stage != "shadow" ||
			!strings.HasPrefix(d.Outcome, "no change: ") || e.FitRows == 0 || e.FitRows > 1400 || e.NLLNew == 0 ||
			e.ECEInForce == 0 {
			t.Errorf("decision %+v: want no change on period, with evidence", d)
		}
		want := []string{"temperature"}
		if e.FitRows >= 500 {
			want = append(want, "ensemble_temperature", "beta")
		}
		if e.FitRows >= 20*(4*4+4) {
			want = append(want, "dirichlet")
		} else {
			want = append(want, "vector")
		}
		if len(e.Candidates) != len(want) || math.Abs(e.LogENeeded-math.Log(float64(len(want))/.05)) > 1e-9 {
			t.Errorf("candidates %+v at log e-value %v, want %v, and the level split over them", e.Candidates,
				e.LogENeeded, want)
		}
		for i, c := range e.Candidates {
			if c.Method != want[i] || c.Outcome == "" || c.NLL == 0 || c.LogE >= e.LogENeeded {
				t.Errorf("candidate %+v: want %s with what it lacked", c, want[i])
			}
		}
		// First the newest 30 %, then the rows that come, up to a pane past validation_rows.
		if least := e.FitRows * 3 / 7; e.FitTo.After(e.TestTo) || e.TestRows < least || e.TestRows > 1000+150 {
			t.Errorf("fitted on %d rows to %s, validated on %d to %s: want %d to 1150", e.FitRows, e.FitTo, e.TestRows,
				e.TestTo, least)
		}
	}
}

// TestApplyWritesTheCalibratedStream checks the probabilities, and that nothing else depends on the operator.
func TestApplyWritesTheCalibratedStream(t *testing.T) {
	rows := batchtest.Rows(43, batchtest.Options{N: 100})
	s := defaultSetup()
	plain := newWorld(t, s, worldtest.Stream(t, rows, 1, 25), 1).run(worldtest.AnyOrder)
	s.apply = apply.NewPublished(0)
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 25), 1).run(worldtest.AnyOrder)
	if g, want := w.Hash(), plain.Hash(); g != want {
		t.Errorf("hash %s, without the calibrated stream %s", g, want)
	}
	n := 0
	for _, m := range w.Letters {
		if m.Stream == pipeline.StreamCalibrated {
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d calibrated messages, want 4", n)
	}
}

// TestWholeComesAfterSlices: when a refit runs, all slices have processed the pane.
func TestWholeComesAfterSlices(t *testing.T) {
	rows := batchtest.Rows(44, batchtest.Options{N: 200, Regions: 2})
	s := defaultSetup()
	s.slices = []string{"region"}
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 25), 1).run(worldtest.AnyOrder)
	var order []string
	for _, snap := range w.Snapshots() {
		if snap.Window.Name == "rows" && (len(order) == 0 || order[len(order)-1] != snap.Slice) {
			order = append(order, snap.Slice)
		}
	}
	if len(order) < 3 || !slices.Equal(order[:3], []string{"region=r0", "region=r1", ""}) {
		t.Errorf("order of keys %q", order)
	}
}

// TestLabelsOfWrongRowsFirst: where the labels of wrong rows come a second later and those of right rows two minutes
// later, refits and corrections of a calibrated stream would learn from the wrong ones. They do not, with alarm.matured
// or without, and a change is answered still.
func TestLabelsOfWrongRowsFirst(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows, from := wrongFirst(t)
	published := func(matured time.Duration) (before, after, tops int) {
		alarms := testAlarm(stage.SignalRaw)
		alarms.Matured = matured
		s := alarmSetup(alarms)
		s.model.Refit.Method, s.model.Refit.Period, s.model.Refit.OnAlarm = "auto", time.Minute, true
		s.model.Refit.FirstAnswer, s.model.Refit.Follow = true, true
		s.join.Wait, s.model.FinalAfter = 300*time.Second, 310*second
		w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
		for _, c := range worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators) {
			if c.EffectiveFrom.UnixNano() < rows[from].TS {
				before++
			} else {
				after++
			}
		}
		for _, c := range worldtest.DecodeAll[record.TopCorrection](t, w.Outputs, pipeline.StreamTops) {
			if d := (calibrator.TopCorrection{Slope: c.Slope, Intercept: c.Intercept}).Map(.8) - .8; c.Revision == 0 &&
				c.EffectiveFrom.UnixNano() < rows[from].TS && math.Abs(d) > .15 {
				tops++
			}
		}
		return before, after, tops
	}
	for _, matured := range []time.Duration{0, 120 * time.Second} {
		if before, after, tops := published(matured); before > 0 || tops > 0 || after == 0 {
			t.Errorf("matured %v, %d calibrators and %d large corrections of a calibrated stream, then %d calibrators",
				matured, before, tops, after)
		}
	}
}

// wrongFirst are calibrated rows, from one on overconfident ones, whose labels come a second later where they are wrong
// and two minutes later where they are right.
func wrongFirst(t *testing.T) (rows []batchtest.Row, from int) {
	rows = episode(77, nil, 8000, 1)
	from = len(rows)
	rows = episode(78, rows, 4000, 3)
	for i := range rows {
		r := &rows[i]
		lag := second
		if p := predicted(t, *r); p.Arg == int(r.Label) {
			lag = 120 * second
		}
		r.LabelTS = r.TS + lag
	}
	return rows, from
}

// TestLabelsInBulk: where labels come in batches, an alarm is answered by what its batch has, not only with the next.
func TestLabelsInBulk(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := episode(79, nil, 7000, 3)
	const every = 300 * second
	start := rows[0].TS
	for i := range rows {
		r := &rows[i]
		r.LabelTS = start + ((r.TS-start)/every+1)*every + 5*second
	}
	s := alarmSetup(testAlarm(stage.SignalRaw))
	s.model.Refit.Method, s.model.Refit.Period, s.model.Refit.OnAlarm = "temperature", 0, true
	s.model.Refit.FirstAnswer = false
	s.join.Wait, s.model.FinalAfter = 400*time.Second, 410*second
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	alerts := w.alerts()
	cals := worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators)
	if len(alerts) == 0 || alerts[0].State != stage.Firing || len(cals) == 0 {
		t.Fatalf("alerts %+v, calibrators %+v, want one of both at least", alerts, cals)
	}
	fired, c := alerts[0].At.UnixNano(), &cals[0]
	if at := c.EffectiveFrom.UnixNano(); c.Reason != "alarm" || at > fired+120*second {
		t.Errorf("the alarm fired at %s, a calibrator took force at %s by %s, want one before the next batch",
			alerts[0].At, c.EffectiveFrom, c.Reason)
	}
	if from := c.Evidence.FitFrom.UnixNano(); from > fired-150*second {
		t.Errorf("it was fitted to rows since %s only, all since %s show the error", c.Evidence.FitFrom,
			pipeline.Format(start))
	}
}
