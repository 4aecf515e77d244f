package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// harder returns rows of inputs that are harder for the model, which its confidences reflect: scores of .3 times the
// size, and labels drawn from them.
func harder(seed uint64, rows []batchtest.Row) []batchtest.Row {
	rng := rand.New(rand.NewPCG(seed, 3))
	out := slices.Clone(rows)
	for i := range out {
		out[i].Scores = scaled(out[i].Scores, .3)
		var sum float64
		for _, z := range out[i].Scores {
			sum += math.Exp(float64(z))
		}
		u := rng.Float64() * sum
		for k, z := range out[i].Scores {
			out[i].Label = int32(k)
			if u -= math.Exp(float64(z)); u < 0 {
				break
			}
		}
	}
	return out
}

// fallOfAccuracy returns rows of a calibrated model. The rows from one index up to another are harder.
func fallOfAccuracy() (rows []batchtest.Row, from, to int) {
	rows = episode(101, nil, 12_000, 1)
	from, to = 3000, 5500
	copy(rows[from:to], harder(102, rows[from:to]))
	return rows, from, to
}

// TestAccuracyAlarmWithHonestConfidences: the alert on accuracy fires and is resolved, and no alert on calibration
// fires. The alert equals that of a test on the rows' own sums against the accuracy of the first rows.
func TestAccuracyAlarmWithHonestConfidences(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows, from, to := fallOfAccuracy()
	spec := testAlarm(stage.SignalRaw, stage.SignalAccuracy)
	s := alarmSetup(spec)
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	alerts := w.alerts()
	if len(alerts) != 2 || alerts[0].State != stage.Firing || alerts[1].State != stage.Resolved {
		t.Fatalf("alerts %+v, want firing, resolved", alerts)
	}
	at, ref := plainAccuracy(t, spec, s.model.Pane, rows)
	a := alerts[0]
	if a.Rule != "accuracy-fall" || a.Kind != alarm.Kind || a.Severity != "warning" || a.Signal != stage.SignalRaw ||
		a.At != at || a.At.UnixNano() <= rows[from].TS ||
		math.Abs(a.Threshold-math.Log(2*3_150_000)) > 1e-9 || a.Value < a.Threshold {
		t.Errorf("alert %+v, want one at %s", a, at)
	}
	e := a.Evidence
	if !slices.Equal(e.Tests, []string{"accuracy"}) || e.ReferenceAccuracy == nil ||
		*e.ReferenceAccuracy != ref.Accuracy || e.AccuracySlack != ref.AccuracySlack ||
		e.EpsilonAccuracy != .02 || e.Reference != alarm.Pinned || e.LogE != a.Value || len(e.Bins) != 0 ||
		!strings.Contains(a.Message, "mean confidence") {
		t.Errorf("evidence %+v of a reference of %+v; %s", e, ref, a.Message)
	}
	if since := a.Since.UnixNano(); since < rows[from].TS-60*second || since > rows[from].TS+60*second {
		t.Errorf("since %s, the change was at %s", a.Since, pipeline.Format(rows[from].TS))
	}
	if alerts[1].At.UnixNano() <= rows[to].TS || alerts[1].Rule != "accuracy-fall" || alerts[1].Evidence != nil {
		t.Errorf("resolved %+v, the change back was at %s", alerts[1], pipeline.Format(rows[to].TS))
	}
}

// plainAccuracy returns the end of the label pane at which a test of the rows' own sums first fires, and its reference.
func plainAccuracy(t *testing.T, spec *alarm.Config, pane int64, rows []batchtest.Row) (at record.Time,
	ref *detect.Reference) {
	t.Helper()
	sums := paneSums(t, rows, pane, int64(spec.Bins), func(r batchtest.Row) int64 { return r.LabelTS })
	var panes []int64
	for p := range sums {
		panes = append(panes, p)
	}
	slices.Sort(panes)
	first := make(detect.Pane, spec.Bins)
	var test *detect.Detector
	for _, p := range panes {
		if test == nil && first.N() >= float64(spec.ReferenceRows) {
			var err error
			if ref, err = detect.ReferenceCurve(first, spec.Slack); err != nil {
				t.Fatal(err)
			}
			if test, err = detect.New(detect.Spec{Null: detect.NullAccuracy, Epsilon: spec.EpsilonAccuracy,
				Alpha: 1. / 3_150_000 / 2, Reference: ref}); err != nil {
				t.Fatal(err)
			}
		}
		if test == nil {
			for j, b := range sums[p] {
				d := &first[j]
				d.N1, d.C1, d.N0, d.C0 = d.N1+b.N1, d.C1+b.C1, d.N0+b.N0, d.C0+b.C0
			}
			continue
		}
		fired, err := test.Observe(p, sums[p])
		if err != nil {
			t.Fatal(err)
		}
		if fired != nil {
			return record.At((p + 1) * pane), ref
		}
	}
	t.Fatal("no alarm")
	return record.Time{}, nil
}

// TestAccuracyAlarmStartsNoRefit: an alert that no calibrator can mend starts no refit, and does not stop refits
// by period.
func TestAccuracyAlarmStartsNoRefit(t *testing.T) {
	t.Parallel()
	for signal, want := range map[string]bool{stage.SignalRaw: true, stage.SignalAccuracy: false} {
		k := &stage.Key{Version: &stage.Version{}}
		alarm.New(&stage.Env{}, testAlarm(stage.SignalRaw, stage.SignalAccuracy)).NewKey(k)
		for _, a := range k.Alerts {
			if a.Signal == signal {
				a.AlertState = stage.AlertState{State: stage.Firing, Since: 7}
			}
		}
		if since, any := k.FiringSince(); any != want || any && since != 7 {
			t.Errorf("alarm on %s: fires for refits %v since %d, want %v", signal, any, since, want)
		}
	}
}

// TestAccuracyAlarmOfSlice: a slice has its own reference, and e-BH decides its alert.
func TestAccuracyAlarmOfSlice(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(103, batchtest.Options{N: 12_000, MaxLag: 5 * second, Regions: 3})
	hard := harder(104, rows)
	for i := 6000; i < len(rows); i++ {
		if rows[i].Region == "r1" {
			rows[i] = hard[i]
		}
	}
	s := alarmSetup(testAlarm(stage.SignalAccuracy))
	s.slices = []string{"region"}
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	slice := false
	for _, a := range w.alerts() {
		if a.Rule != "accuracy-fall" || a.Slice != "" && a.Slice != "region=r1" {
			t.Errorf("alert %+v", a)
		}
		if a.Slice == "region=r1" && a.State == stage.Firing && a.Evidence != nil && a.Evidence.FDR == .05 &&
			a.Evidence.Threshold == 0 {
			slice = true
		}
	}
	if !slice {
		t.Errorf("alerts %+v, want one of slice r1", w.alerts())
	}
}

// TestAccuracyOfLateClass: where the labels of one class come minutes after those of the other, the accuracy is not
// compared with that of the first class alone; a fall that comes later is found.
func TestAccuracyOfLateClass(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rng := rand.New(rand.NewPCG(104, 1))
	rows := batchtest.Rows(103, batchtest.Options{N: 12_000, K: 2, Regions: 2})
	const fall = 9000
	for i := range rows {
		r := &rows[i]
		odds := 1.5*rng.NormFloat64() - 2
		r.Scores, r.Label, r.LabelTS = []float32{0, float32(odds)}, 0, r.TS+second
		if rng.Float64() < 1/(1+math.Exp(-odds)) {
			r.Label, r.LabelTS = 1, r.TS+200*second
		}
		if i >= fall && rng.Float64() < .2 {
			r.Label = 1 - r.Label
		}
	}
	spec := testAlarm(stage.SignalAccuracy)
	spec.ReferenceRows, spec.Slices = 1000, true
	s := alarmSetup(spec)
	s.slices, s.join.Wait, s.model.FinalAfter = []string{"region"}, 300*time.Second, 310*second
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	alerts := w.alerts()
	for _, a := range alerts {
		if a.At.UnixNano() < rows[fall].TS {
			t.Errorf("alert %+v before the fall", a)
		}
	}
	if len(alerts) == 0 {
		t.Error("no alert after the fall")
	}
}
