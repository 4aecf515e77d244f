package refit

import (
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// TestRefitBeginsWhereAccuracyFell: while an alarm of before still fires, rows of before the fall would spoil the fit.
func TestRefitBeginsWhereAccuracyFell(t *testing.T) {
	x := newFixture(t, testConfig(), 4)
	k := x.key
	k.Sample = sample(batchtest.Rows(44, batchtest.Options{N: 1000, Sharpness: 3}))
	fell := &stage.Alert{Anytime: true, Signal: stage.SignalAccuracy,
		AlertState: stage.AlertState{State: stage.Firing, Since: k.Sample[800].TS}}
	k.Alerts = []*stage.Alert{{AlertState: stage.AlertState{State: stage.Firing, Since: k.Sample[0].TS}}, fell}
	end := batchtest.Start + 100*second
	for _, c := range []struct {
		state string
		since int64
		fit   int64 // first row, -1 = none
	}{{stage.Firing, k.Sample[800].TS, -1}, {stage.Firing, k.Sample[600].TS, 600}, {stage.Inactive, 0, 0}} {
		fell.State, fell.Since = c.state, c.since
		x.run, x.alarmAt = nil, 0
		in := &stage.Pane{Index: pipeline.PaneIndex(end, paneLength), End: end, Labelled: 1}
		x.must(x.onAlarm(in, k.Sample[0].TS))
		if got := x.run != nil; got != (c.fit >= 0) || got && x.run.fitFrom != k.Sample[c.fit].TS {
			t.Errorf("accuracy %q since row at %d: run %+v, want one from row %d on", c.state, c.since, x.run, c.fit)
		}
	}
}

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

// sixAMinute returns 1,000 rows, one every 10 s, each with its label.
func sixAMinute(seed uint64) []acc.SampleRow {
	rows := sample(batchtest.Rows(seed, batchtest.Options{N: 1000, Sharpness: 3}))
	for i := range rows {
		rows[i].TS = batchtest.Start + int64(i)*10*second
		rows[i].LabelTS = rows[i].TS
	}
	return rows
}

// TestRefitOnAlarmGoesOn: at few rows a minute, the next refit on the same alarm does not end one that is being tested
// at each cooldown, but after as many rows more as it began with.
func TestRefitOnAlarmGoesOn(t *testing.T) {
	x := newFixture(t, testConfig(), 4)
	k := x.key
	rows := sixAMinute(45)
	since := rows[0].TS
	at := func(n int) *run {
		t.Helper()
		k.Sample = rows[:n]
		x.must(x.onAlarm(&stage.Pane{Index: int64(n), End: rows[n-1].TS + 1, Labelled: 1}, since))
		return x.run
	}
	if at(299) != nil || at(300) == nil {
		t.Fatal("want a refit at 300 rows")
	}
	first := x.run
	for n := 301; n < 600; n++ {
		if at(n) != first {
			t.Fatalf("another refit began after %d rows", n)
		}
	}
	if second := at(600); second == first || len(second.fit)+len(second.held) != 600 {
		t.Errorf("after 600 rows %+v, want a refit on all", second)
	}
	since = rows[601].TS // another change
	if third := at(902); third.fitFrom != since {
		t.Errorf("300 rows after another change a refit on rows from %s, want those since %s",
			pipeline.Format(third.fitFrom), pipeline.Format(since))
	}
}

// TestRefitByPeriodWaitsForRows: at six rows a minute a period has six; the next refit by period waits for as many new
// rows as the first needs, so that no run is replaced before it has evidence of its own.
func TestRefitByPeriodWaitsForRows(t *testing.T) {
	x := newFixture(t, testConfig(), 4)
	k := x.key
	rows := sixAMinute(46)
	var began []int
	for n := 1; n <= len(rows); n++ {
		k.Sample = rows[:n]
		before := x.run
		x.must(x.byPeriod(&stage.Pane{Index: int64(n), End: rows[n-1].TS + 1, Labelled: 1}))
		if x.run != before {
			began = append(began, n)
		}
	}
	if len(began) != 5 { // 200 rows apart, less those of the period in which the one before began; not 6
		t.Errorf("refits began after %d rows, want one in about 200", began)
	}
	x.period *= 60 // refit.period was a second before
	x.must(x.byPeriod(&stage.Pane{Index: 1001, End: rows[999].TS + 60*second, Labelled: 1}))
	if now := (rows[999].TS + 60*second) / (60 * second); x.period > now {
		t.Errorf("period %d after one that was shorter, want at most %d", x.period, now)
	}
}

// TestRunsAwaitTheirFits: a label pane waits only for fits that are due at it, and a run that another replaces drops
// its own.
func TestRunsAwaitTheirFits(t *testing.T) {
	x := newFixture(t, testConfig(), 4)
	x.stage.deps.Pool = NewPool(1)
	x.stage.deps.Pool <- struct{}{} // the only place
	rs := &runs{publisher: x.publisher}
	if rs.Fitting() || rs.Awaits(11) || !rs.Idle(11) {
		t.Error("fits without a run")
	}
	rows := sample(batchtest.Rows(77, batchtest.Options{N: 300}))
	begin := func() *job {
		t.Helper()
		x.must(rs.begin(rows, reasonPeriod, &stage.Pane{Index: 10, End: 11 * paneLength}))
		return rs.fits()
	}
	first := begin()
	second := begin()
	if !first.cancelled.Load() || second.cancelled.Load() || len(x.stage.jobs) != 1 {
		t.Errorf("%d fits, want those of the second run alone", len(x.stage.jobs))
	}
	if !rs.Fitting() || rs.Due() != 11 || rs.Awaits(10) || !rs.Awaits(11) || rs.Idle(10) || !rs.Idle(11) {
		t.Errorf("fits are due at %d, and a pane awaits them", rs.Due())
	}
	<-x.stage.deps.Pool
	<-second.done
	if rs.Awaits(11) {
		t.Error("a pane awaits fits that have ended")
	}
}
