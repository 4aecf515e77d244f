package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// ways are ways in which the same rows may come.
var ways = []struct {
	shards, batch int
	order         worldtest.Pick
	crash         float64
}{{1, 64, worldtest.AnyOrder, 0}, {3, 20, worldtest.AnyOrder, .02}, {4, 30, worldtest.LogitsFirst, .02}}

// everyWay runs rows in all ways, checks that the outputs are the same, and returns the first world.
func everyWay(t *testing.T, s setup, rows []batchtest.Row) *world {
	t.Helper()
	var want *world
	for _, c := range ways {
		w := newWorld(t, s, worldtest.Stream(t, rows, c.shards, c.batch), uint64(c.shards+c.batch))
		w.Save, w.Crash = .1, c.crash
		if w.run(c.order); want == nil {
			want = w
			continue
		}
		if got, hash := w.Hash(), want.Hash(); got != hash {
			t.Errorf("%d shards: state hash %s, want %s", c.shards, got, hash)
		}
		worldtest.CompareOutputs(t, worldtest.Firsts(w.Outputs), worldtest.Firsts(want.Outputs))
	}
	return want
}

// latest returns the latest alert records of a model version up to an event time, of those that are not resolved.
func (w *world) latest(model, version string, until int64) (out []record.Alert) {
	last := map[string]record.Alert{}
	for _, a := range w.alerts() {
		if a.Model == model && a.Version == version && a.At.UnixNano() <= until {
			last[a.Slice+"/"+a.Rule] = a
		}
	}
	for _, a := range last {
		if a.State != stage.Resolved {
			out = append(out, a)
		}
	}
	return out
}

// notified returns how many of the alerts nobody inhibits.
func notified(alerts []record.Alert) (n int) {
	for _, a := range alerts {
		if a.InhibitedBy == "" {
			n++
		}
	}
	return n
}

// TestReplacedVersion: when another version has had all predictions for a while, the alerts of the one before are
// inhibited, and say since when it has none, though labels still come. They keep their state: when predictions are
// back, they are published at once. In whatever order rows come, and after crashes, the records are the same.
func TestReplacedVersion(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	served := phase(321, nil, 0, 1500, "a")
	for i := 1400; i < 1500; i++ { // their labels come while the version is silent
		served[i].LabelTS = served[i].TS + 115*second
	}
	replaced := phase(322, served, 10, 3000, "b")
	back := phase(323, replaced, 10, 600, "a")
	s := alarmSetup(testAlarm())
	s.model.Rules, s.slices = defaultSetup().model.Rules, []string{"region"}
	s.model.SilentAfter, s.model.Hold = 100*second, time.Hour
	w := everyWay(t, s, back)

	pane := s.model.Pane
	ended := (served[len(served)-1].TS/pane + 1) * pane
	silent := ended + 10*second + s.model.SilentAfter + pane // b begins 10 s later
	if before := w.latest("m", "a", silent-3*pane); notified(before) == 0 {
		t.Fatalf("no alert of a before it is silent: %v", before)
	}
	why := record.NoPredictions + record.At(ended).String()
	gone := w.latest("m", "a", silent)
	for _, a := range gone {
		if a.InhibitedBy != why {
			t.Errorf("%s of %q is inhibited by %q, want %q", a.Rule, a.Slice, a.InhibitedBy, why)
		}
	}
	again := (replaced[len(replaced)-1].TS + 10*second) / pane * pane
	for _, a := range w.latest("m", "a", again) {
		if a.InhibitedBy != why {
			t.Errorf("later, %s of %q is inhibited by %q, want %q", a.Rule, a.Slice, a.InhibitedBy, why)
		}
	}
	returned := w.latest("m", "a", again+2*pane)
	if notified(returned) == 0 {
		t.Errorf("predictions are back, and nobody is notified: %+v", returned)
	}
	for _, a := range returned {
		if strings.HasPrefix(a.InhibitedBy, record.NoPredictions) || a.Since.UnixNano() >= ended {
			t.Errorf("%s of %q since %s is inhibited by %q after its predictions are back", a.Rule, a.Slice, a.Since,
				a.InhibitedBy)
		}
	}
	if b := w.latest("m", "b", again); notified(b) == 0 {
		t.Errorf("no alert of the version that has predictions: %v", b)
	}

	s.model.SilentAfter = 0
	kept := newWorld(t, s, worldtest.Stream(t, replaced, 2, 20), 1).run(worldtest.AnyOrder)
	if notified(kept.latest("m", "a", again)) == 0 {
		t.Error("no alert of a is left where no version is ever silent")
	}
}

// TestGoneSlice: when a slice has had no predictions for two days in which others of its version had some, its alerts
// are inhibited, and say since when it has none. When its predictions are back, they no longer are. A pause of all rows
// counts as one day at most.
func TestGoneSlice(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	s := alarmSetup(testAlarm())
	s.slices, s.model.SilentAfter = []string{"region"}, 100*second
	pane := s.model.Pane
	both := phase(341, nil, 0, 1500)
	ended := (both[len(both)-1].TS/pane + 1) * pane
	alone := func(n int, step int64) []batchtest.Row {
		return batchtest.Rows(342, batchtest.Options{N: n, Start: ended, Step: step, MaxLag: 5 * second, Sharpness: 2.5,
			Regions: 1})
	}
	why := record.NoPredictions + record.At(ended).String()
	for _, c := range []struct {
		name  string
		alone []batchtest.Row // of region r0
		want  string
	}{
		{"two days", alone(60, 3000*second), why}, // 50 hours
		{"a day", alone(30, 3000*second), ""},
		{"a pause of three days", alone(2, 72*3600*second), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := phase(343, slices.Concat(both, c.alone), 600, 600)
			for i := range rows {
				rows[i].ID = fmt.Sprint(rows[i].TS, "/", i)
			}
			w := everyWay(t, s, rows)
			// silence is what the alerts of a region are inhibited by, if it is silence.
			silence := func(region string, until int64) (by string) {
				alerts := slices.DeleteFunc(w.latest("m", "v1", until), func(a record.Alert) bool {
					return a.Slice != "region="+region
				})
				if len(alerts) == 0 {
					t.Errorf("no alert of region %s is left at %s", region, record.At(until))
				}
				for _, a := range alerts {
					if strings.HasPrefix(a.InhibitedBy, record.NoPredictions) {
						by = a.InhibitedBy
					}
				}
				return by
			}
			end := c.alone[len(c.alone)-1].TS/pane*pane + 3*pane
			if by := silence("r1", end); by != c.want {
				t.Errorf("region r1 is inhibited by %q, want %q", by, c.want)
			}
			if by := silence("r0", end); by != "" {
				t.Errorf("region r0 is inhibited by %q", by)
			}
			if by := silence("r1", end+1200*second); by != "" {
				t.Errorf("region r1 is inhibited by %q when its predictions are back", by)
			}
		})
	}
}

// TestPausedModel: the alerts of a model without rows stay for two days of event time, in which other models have some,
// and no longer. Versions that pause together and come back one after the other keep theirs.
func TestPausedModel(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	merged := func(parts ...[]batchtest.Row) (rows []batchtest.Row) {
		rows = slices.Concat(parts...)
		for i := range rows {
			rows[i].ID = fmt.Sprint(rows[i].Model, rows[i].Version, rows[i].TS, i)
		}
		slices.SortStableFunc(rows, func(a, b batchtest.Row) int { return cmp.Compare(a.TS, b.TS) })
		return rows
	}
	s := alarmSetup(testAlarm())
	s.slices, s.model.SilentAfter = []string{"region"}, 100*second
	pane := s.model.Pane
	first := phase(331, nil, 0, 1000, "a", "b")
	others := batchtest.Rows(332, batchtest.Options{N: 100, MaxLag: 5 * second, Regions: 2, Model: "n",
		Step: 3600 * second})
	last, label := first[len(first)-1].TS, int64(0)
	for _, r := range first {
		label = max(label, r.LabelTS)
	}
	for _, c := range []struct {
		name   string
		pause  int64
		silent bool
	}{{"a day", 24 * 3600 * second, false}, {"three days", 72 * 3600 * second, true}} {
		t.Run(c.name, func(t *testing.T) {
			b := batchtest.Rows(333, batchtest.Options{N: 50, Start: last + c.pause, MaxLag: 5 * second, Regions: 2,
				Versions: []string{"b"}})
			a := batchtest.Rows(334, batchtest.Options{N: 300, Start: last + c.pause + 20*second, MaxLag: 5 * second,
				Regions: 2, Versions: []string{"a", "b"}, Sharpness: 2.5})
			w := everyWay(t, s, merged(first, others, b, a))
			before := w.latest("m", "a", last+47*3600*second)
			if c.pause > 47*3600*second && notified(before) == 0 {
				t.Errorf("after 47 hours no alert is left: %v", before)
			}
			var silent []record.Alert
			for _, a := range w.alerts() {
				if a.Model == "m" && strings.HasPrefix(a.InhibitedBy, record.NoPredictions) &&
					a.At.UnixNano() < last+c.pause {
					silent = append(silent, a)
				}
			}
			for _, a := range silent {
				if at := a.At.UnixNano(); at != label/pane*pane+modelPause+pane {
					t.Errorf("%s of %q version %s is inhibited by %q at %s, want two days after the last row", a.Rule,
						a.Slice, a.Version, a.InhibitedBy, a.At)
				}
			}
			if (len(silent) > 0) != c.silent {
				t.Errorf("%d records of a silent version, want some: %t", len(silent), c.silent)
			}
			if end := w.latest("m", "a", last+c.pause+50*second); notified(end) == 0 {
				t.Errorf("rows are back, and nobody is notified: %v", end)
			}
		})
	}
}
