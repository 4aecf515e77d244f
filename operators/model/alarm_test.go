package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// testAlarm returns the default alarm, on both signals unless others are named.
func testAlarm(signals ...string) *alarm.Config {
	if len(signals) == 0 {
		signals = []string{stage.SignalRaw, stage.SignalCalibrated}
	}
	c := setting.Default[alarm.Config]()
	c.Signals, c.ReferenceRows, c.ClearRows, c.ClearFor = signals, 1500, 500, 20*time.Second
	c.FalseAlarmEvery = 31_500_000 * time.Second
	return &c
}

// alarmSetup returns a setup with the alarm and nothing else.
func alarmSetup(a *alarm.Config) setup {
	s := defaultSetup()
	s.model.Alarm, s.model.Rules, s.model.Refit.Method = a, nil, "none"
	return s
}

// episode appends rows of one sharpness to the rows before.
func episode(seed uint64, before []batchtest.Row, n int, sharpness float64) []batchtest.Row {
	o := batchtest.Options{N: n, MaxLag: 5 * second, Sharpness: sharpness, Regions: 3}
	if len(before) > 0 {
		o.Start = before[len(before)-1].TS + second
	}
	rows := batchtest.Rows(seed, o)
	for i := range rows {
		rows[i].ID = fmt.Sprint(seed, "-", rows[i].ID)
	}
	return append(slices.Clone(before), rows...)
}

func (w *world) alerts() []record.Alert {
	return worldtest.DecodeAll[record.Alert](w.T, w.Outputs, pipeline.StreamAlerts)
}

// TestAlarmOnInitialError: a model that is overconfident from its first row raises one alarm, which stays.
func TestAlarmOnInitialError(t *testing.T) {
	t.Parallel()
	rows := episode(71, nil, 3000, 1.6)
	w := newWorld(t, alarmSetup(testAlarm(stage.SignalRaw)), worldtest.Stream(t, rows, 2, 50),
		1).run(worldtest.AnyOrder)
	alerts := w.alerts()
	if len(alerts) != 1 {
		t.Fatalf("%d alerts, want one", len(alerts))
	}
	a := alerts[0]
	if a.State != stage.Firing || a.Kind != alarm.Kind || a.Rule != "calibration-raw" || a.InhibitedBy != "" ||
		a.Value < a.Threshold || math.Abs(a.Threshold-math.Log(2*3_150_000)) > 1e-9 {
		t.Errorf("alert %+v: want one that fires, with its evidence above log 2/α", a)
	}
	if since := a.Since.UnixNano(); since > rows[0].TS+20*second || a.Since != a.Evidence.Since {
		t.Errorf("since %s, want about the first row", a.Since)
	}
	if a.Evidence.Direction != "overconfident" || len(a.Evidence.Bins) == 0 || a.ECE < .02 || a.Rows == 0 ||
		!strings.HasPrefix(a.Diagram, "/?at=") {
		t.Errorf("alert %+v, evidence %+v: want overconfident, bins, ECE, a link", a, a.Evidence)
	}
	for _, b := range a.Evidence.Bins {
		if b.Gap >= 0 || math.Abs(b.Accuracy-b.Confidence-b.Gap) > 1e-12 {
			t.Errorf("bin %+v: want a - c below 0", b)
		}
	}
}

// delayedByClass returns rows of a calibrated model of few positives, whose labels take lag.
func delayedByClass(seed uint64, n int, lag func(r *rand.Rand, y int32) int64) []batchtest.Row {
	rng := rand.New(rand.NewPCG(seed, 7))
	rows := batchtest.Rows(seed, batchtest.Options{N: n, K: 2})
	for i := range rows {
		r, z := &rows[i], -2.5+1.5*rng.NormFloat64()
		if r.Scores, r.Label = []float32{0, float32(z)}, 0; rng.Float64() < 1/(1+math.Exp(-z)) {
			r.Label = 1
		}
		r.LabelTS = r.TS + lag(rng, r.Label)
	}
	return rows
}

// TestAlarmOnQuickClass: positives have their labels within minutes, negatives after half an hour, so that the first
// labels are all positive and a calibrated model seems to err. The alerts say that this may be the delay, those before
// the first negative and those after. Where labels of all rows take ten minutes, an alert on wrong labels does not.
func TestAlarmOnQuickClass(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	quick := delayedByClass(131, 24_000, func(r *rand.Rand, y int32) int64 {
		if y == 0 {
			return 1800 * second
		}
		return int64(60 * r.ExpFloat64() * float64(second))
	})
	wrong := delayedByClass(132, 9000, func(*rand.Rand, int32) int64 { return 600 * second })
	for i := range wrong {
		wrong[i].Label = 1
	}
	firing := func(rows []batchtest.Row) (out []record.Alert) {
		s := alarmSetup(testAlarm())
		s.join.Wait = time.Hour
		w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
		for _, a := range w.alerts() {
			if a.State == stage.Firing {
				out = append(out, a)
			}
		}
		return out
	}
	const ofClass, ofWrong = " were of class 1 (", "labels of wrong rows came sooner"
	negatives := quick[0].TS + 1800*second
	before, after := 0, 0
	for _, a := range firing(quick) {
		want := ofClass
		if a.At.UnixNano() < negatives {
			before++
		} else if after++; a.Since.UnixNano() > quick[0].TS+60*second { // it has begun among rows of both classes
			want = ofWrong
		}
		if !strings.Contains(a.Message, want) || strings.Contains(a.Message, ofClass) != (want == ofClass) {
			t.Errorf("at %s, since %s: %q, want %q", a.At, a.Since, a.Message, want)
		}
	}
	if before == 0 || after < 2 {
		t.Errorf("%d alerts before the first label of a negative, %d after", before, after)
	}
	alerts := firing(wrong)
	for _, a := range alerts {
		if strings.Contains(a.Message, ofClass) || strings.Contains(a.Message, ofWrong) {
			t.Errorf("wrong labels that take as long: %q", a.Message)
		}
	}
	if len(alerts) == 0 {
		t.Error("no alert on wrong labels")
	}
}

// TestAlarmComesAndGoes: there is no alarm while the model is calibrated. One fires when it no longer is, and is
// resolved when it is again.
func TestAlarmComesAndGoes(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := episode(72, nil, 4000, 1)
	from := len(rows)
	rows = episode(73, rows, 2500, 2)
	to := len(rows)
	rows = episode(74, rows, 6000, 1)
	w := newWorld(t, alarmSetup(testAlarm(stage.SignalRaw)), worldtest.Stream(t, rows, 2, 50),
		1).run(worldtest.AnyOrder)
	alerts := w.alerts()
	if len(alerts) != 2 || alerts[0].State != stage.Firing || alerts[1].State != stage.Resolved {
		t.Fatalf("alerts %+v, want firing, resolved", alerts)
	}
	start, end := rows[from].TS, rows[to].TS
	if at, since := alerts[0].At.UnixNano(), alerts[0].Since.UnixNano(); at <= start || at > start+120*second ||
		since < start-60*second || since > start+40*second {
		t.Errorf("fires at %s since %s, the change was at %s", alerts[0].At, alerts[0].Since, pipeline.Format(start))
	}
	if at := alerts[1].At.UnixNano(); at <= end || alerts[1].Since != alerts[0].Since {
		t.Errorf("resolved at %s since %s, the change back was at %s", alerts[1].At, alerts[1].Since,
			pipeline.Format(end))
	}
}

// TestAlarmOfLateLabels: where labels come ten minutes late, an alarm dates the error by the predictions, and the refit
// begins with the first of them.
func TestAlarmOfLateLabels(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := episode(75, nil, 2500, 1)
	from := len(rows)
	rows = episode(76, rows, 2500, 2)
	for i := range rows {
		rows[i].LabelTS += 600 * second
	}
	s := alarmSetup(testAlarm(stage.SignalRaw))
	s.model.Refit.Method, s.model.Refit.Period, s.model.Refit.OnAlarm = "ensemble_temperature", 0, true
	s.join.Wait = 900 * time.Second
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	start := rows[from].TS
	near := func(what string, at record.Time) {
		if at := at.UnixNano(); at < start-60*second || at > start+60*second {
			t.Errorf("%s is %s, the change was at %s", what, pipeline.Format(at), pipeline.Format(start))
		}
	}
	alerts := w.alerts()
	if len(alerts) != 1 {
		t.Fatalf("alerts %+v, want one that fires", alerts)
	}
	a := &alerts[0]
	near("the alert's start", a.Since)
	for _, b := range a.Evidence.Bins {
		if !b.Since.IsZero() && b.Since.UnixNano() > a.At.UnixNano()-600*second {
			t.Errorf("bin %+v: labels of that time have not come", b)
		}
	}
	if n := a.At.UnixNano() - a.Since.UnixNano() - 600*second; a.Rows > 10*(n/second+10) {
		t.Errorf("%d rows since then, want those of about %d s, 10 each", a.Rows, n/second)
	}
	cals := worldtest.DecodeAll[record.Calibrator](t, w.Outputs, pipeline.StreamCalibrators)
	if len(cals) == 0 {
		t.Fatal("no calibrator was published")
	}
	near("the first row of the fit", cals[0].Evidence.FitFrom)
}

// TestAlarmAfterSilence: an error that is there from the first row after eight hours without rows is not dated
// into them, nor before them.
func TestAlarmAfterSilence(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := episode(77, nil, 2500, 1)
	from := len(rows)
	rows = episode(78, rows, 2000, 2)
	for i := range rows[from:] {
		rows[from+i].TS += 8 * 3600 * second
		rows[from+i].LabelTS += 8 * 3600 * second
	}
	w := newWorld(t, alarmSetup(testAlarm(stage.SignalRaw)), worldtest.Stream(t, rows, 2, 50),
		1).run(worldtest.AnyOrder)
	alerts := w.alerts()
	if len(alerts) != 1 {
		t.Fatalf("alerts %+v, want one that fires", alerts)
	}
	last, start := rows[from-1].TS, rows[from].TS
	if at := alerts[0].Since.UnixNano(); at < start-10*second || at > start+40*second {
		t.Errorf("the alert's start is %s, rows came again at %s", alerts[0].Since, pipeline.Format(start))
	}
	for _, b := range alerts[0].Evidence.Bins {
		if at := b.Since.UnixNano(); !b.Since.IsZero() && at > last && at < start-10*second {
			t.Errorf("bin (%g, %g] is off since %s, when no rows came", b.Lo, b.Hi, b.Since)
		}
	}
}

// paneSums sums rows by event time, directly from the rows: the plain reference of alarmPanes.
func paneSums(t *testing.T, rows []batchtest.Row, length, bins int64,
	at func(batchtest.Row) int64) map[int64]detect.Pane {
	out := map[int64]detect.Pane{}
	for _, r := range rows {
		if r.Label < 0 {
			continue
		}
		row := predicted(t, r)
		pane := pipeline.PaneIndex(at(r), length)
		if out[pane] == nil {
			out[pane] = make(detect.Pane, bins)
		}
		j := max(0, min(bins-1, int64(math.Ceil(row.Conf*float64(bins)))-1))
		b := &out[pane][j]
		if int32(row.Arg) == r.Label {
			b.N1, b.C1 = b.N1+1, b.C1+row.Conf
		} else {
			b.N0, b.C0 = b.N0+1, b.C0+row.Conf
		}
	}
	return out
}

// TestAlarmEqualsRows compares the alarm of the stream with one that gets the sums of the rows themselves, by
// label pane, and in matured mode by slots of prediction panes.
func TestAlarmEqualsRows(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := episode(75, episode(76, nil, 1500, 1), 6000, 1.7)
	for _, matured := range []int64{0, 35 * second, 330 * second} { // the last one uses slots of two panes
		t.Run(fmt.Sprint(matured/second), func(t *testing.T) {
			spec := testAlarm(stage.SignalRaw)
			spec.Matured = time.Duration(matured)
			s := alarmSetup(spec)
			s.model.FinalAfter = 400 * second
			w := newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
			at, length := func(r batchtest.Row) int64 { return r.LabelTS }, s.model.Pane
			if matured > 0 {
				at, length = func(r batchtest.Row) int64 { return r.TS }, s.model.Pane*max(1,
					((matured+s.model.Pane-1)/s.model.Pane+31)/32)
			}
			sums := paneSums(t, rows, length, 15, at)
			var panes []int64
			for p := range sums {
				panes = append(panes, p)
			}
			slices.Sort(panes)
			var want record.Time
			plain, err := detect.NewAlarm(detect.AlarmSpec{Bins: spec.Bins, EpsilonECE: spec.EpsilonECE,
				EpsilonBin: spec.EpsilonBin, Alpha: 1. / 3_150_000})
			w.Must(err)
			for _, p := range panes {
				fired, err := plain.Observe(p, sums[p], nil)
				w.Must(err)
				if fired != nil && want.IsZero() {
					want = record.At((p+1)*length + (matured+s.model.Pane-1)/s.model.Pane*s.model.Pane)
				}
			}
			alerts := w.alerts()
			if want.IsZero() || len(alerts) != 1 || alerts[0].At != want {
				t.Errorf("alerts %+v, want one at %s", alerts, want)
			}
			if n := w.Model.counts.All()[alarm.CountAlarmLate]; n != 0 {
				t.Errorf("%d late rows", n)
			}
		})
	}
}

// TestMaturedLateRows: a row whose label comes later than the age counts as unlabelled and is counted.
func TestMaturedLateRows(t *testing.T) {
	t.Parallel()
	spec := testAlarm(stage.SignalRaw)
	spec.Matured = 3 * time.Second // less than the longest delay
	rows := batchtest.Rows(77, batchtest.Options{N: 1500, MaxLag: 40 * second})
	w := newWorld(t, alarmSetup(spec), worldtest.Stream(t, rows, 1, 50), 1).run(worldtest.AnyOrder)
	late, all := w.Model.counts.All()[alarm.CountAlarmLate], int64(1500)
	if late < all/2 || late >= all*7/8 {
		t.Errorf("%d of %d rows late", late, all)
	}
}

// TestAlarmOfASlice: an error in one slice raises the alert of that slice and no other.
func TestAlarmOfASlice(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	good := episode(78, nil, 6000, 1)
	s := alarmSetup(testAlarm(stage.SignalRaw))
	s.slices = []string{"region"}
	w := newWorld(t, s, worldtest.Stream(t, good, 2, 50), 1).run(worldtest.AnyOrder)
	if a := w.alerts(); len(a) != 0 {
		t.Errorf("alerts %+v without an error", a)
	}
	rows := slices.Clone(good)
	for i := 0; i < len(rows); i += 2 {
		if rows[i].Region == rows[0].Region { // half of this slice's rows come from a model that is sure and wrong
			rows[i].Scores = scaled(rows[i].Scores, 3)
		}
	}
	w = newWorld(t, s, worldtest.Stream(t, rows, 2, 50), 1).run(worldtest.AnyOrder)
	slice := "region=" + rows[0].Region
	first := map[string]record.Alert{}
	for _, a := range w.alerts() {
		if _, ok := first[a.Slice]; !ok && a.State == stage.Firing {
			first[a.Slice] = a
		}
	}
	a, ok := first[slice]
	if !ok || a.Evidence.FDR != .05 || a.Evidence.Slices != 3 || a.Value < a.Threshold-math.Log(3) {
		t.Errorf("alerts %+v, want one of slice %s by e-BH", w.alerts(), slice)
	}
	for name := range first {
		if name != slice && name != "" {
			t.Errorf("slice %s has an alert, too", name)
		}
	}
}

func scaled(z []float32, f float32) []float32 {
	out := slices.Clone(z)
	for i := range out {
		out[i] *= f
	}
	return out
}

// TestAlarmSurvivesAnything: in every mode of the alarm, a task that is restored again and again ends like a task that
// runs through. So does any split of the rows over shards.
func TestAlarmSurvivesAnything(t *testing.T) {
	t.Parallel()
	rows := episode(80, episode(81, episode(82, nil, 1200, 1), 1500, 2), 1500, 1)
	for _, c := range []struct {
		name string
		set  func(*alarm.Config)
	}{
		{"arrival", func(*alarm.Config) {}},
		{"matured", func(a *alarm.Config) { a.Matured = 25 * time.Second }},
		{"pinned", func(a *alarm.Config) { a.Reference, a.ReferenceRows = alarm.Pinned, 800 }},
		{"rolling", func(a *alarm.Config) { a.Reference, a.ReferenceRows = alarm.Rolling, 500 }},
		{"weights", func(a *alarm.Config) { a.MaxWeight = 2 }},
		{"accuracy", func(a *alarm.Config) {
			a.Signals, a.ReferenceRows = append(a.Signals, stage.SignalAccuracy),
				500
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testsize.Slow(t)
			t.Parallel()
			spec := testAlarm()
			c.set(spec)
			s := alarmSetup(spec)
			s.model.Rules, s.model.Refit.Method, s.model.Hold = defaultSetup().model.Rules, "temperature",
				30*time.Second
			s.model.Unlabelled = &drift.Config{Reference: alarm.Pinned, ReferenceRows: 700, Alpha: .001, Slices: true}
			if c.name == alarm.Rolling {
				s.model.Unlabelled.Reference = alarm.Rolling
			}
			for _, r := range comparing(c.name) {
				s.model.Rules = append(slices.Clone(s.model.Rules), r)
			}
			s.slices = []string{"region"}
			if c.name != "arrival" { // windows are the same in all modes
				s.model.Windows = s.model.Windows[:1]
			}
			w := newWorld(t, s, worldtest.Stream(t, rows, 2, 25), 1).run(worldtest.AnyOrder)
			if len(w.alerts()) == 0 {
				t.Fatal("no alert to compare")
			}
			newWorld(t, s, worldtest.Stream(t, rows, 3, 40), 5).run(worldtest.AnyOrder).compare(w)
			w.compareRestarts(t, w.restartsAfter(3))
		})
	}
}

// TestAlarmRestartsUnderAnotherSpecification: a firing alert keeps firing, and the tests start without rows.
func TestAlarmRestartsUnderAnotherSpecification(t *testing.T) {
	t.Parallel()
	s := alarmSetup(testAlarm(stage.SignalRaw))
	w := newWorld(t, s, worldtest.Stream(t, episode(83, nil, 2000, 2), 1, 50), 1).run(worldtest.AnyOrder)
	s.model.Alarm = testAlarm(stage.SignalRaw)
	s.model.Alarm.EpsilonECE = .03
	task := s.task()
	w.Must(pipeline.RestoreCheckpoint(w.SavedModel, task.Sections(), nil))
	old, a := w.Model.models["m"].versions["v1"].keys[""].Alerts[0], task.models["m"].versions["v1"].keys[""].Alerts[0]
	if old.State != stage.Firing || a.State != stage.Firing || a.Since != old.Since {
		t.Errorf("alarm %+v became %+v", old, a)
	}
	s.model.Alarm = nil
	w.Must(pipeline.RestoreCheckpoint(w.SavedModel, s.task().Sections(), nil))
}
