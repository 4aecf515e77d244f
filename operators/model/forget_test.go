package model

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// phase appends rows of some versions that start the given number of seconds after the rows before.
func phase(seed uint64, before []batchtest.Row, after int64, n int, versions ...string) []batchtest.Row {
	o := batchtest.Options{N: n, MaxLag: 5 * second, Sharpness: 2.5, Regions: 2, Versions: versions}
	if len(before) > 0 {
		o.Start = before[len(before)-1].TS + after*second
	}
	return append(slices.Clone(before), batchtest.Rows(seed, o)...)
}

func forgetSetup() setup {
	s := defaultSetup()
	s.slices, s.model.Alarm, s.model.ForgetAfter = []string{"region"}, testAlarm(), 200*second
	return s
}

// TestForgottenVersion: a version that another one has replaced is forgotten once, at the same label pane for any
// shards, order and restarts. Its alerts are resolved, and its statistics leave the checkpoint. If it comes back, it
// starts again and continues its numbers.
func TestForgottenVersion(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	served := phase(301, nil, 0, 1500, "a")
	replaced := phase(302, served, 10, 4500, "b")
	back := phase(303, replaced, 10, 900, "a")
	s := forgetSetup()
	var want *world
	for _, c := range []struct {
		shards, batch int
		order         worldtest.Pick
		crash         float64
	}{{1, 64, worldtest.AnyOrder, 0}, {1, testsize.Pick(20, 3), worldtest.LabelsFirst, 0},
		{3, 20, worldtest.AnyOrder, .02}, {4, 30, worldtest.LogitsFirst,
			.02}} {
		w := newWorld(t, s, worldtest.Stream(t, back, c.shards, c.batch), uint64(c.shards+c.batch))
		w.Save, w.Crash = .1, c.crash
		w.run(c.order)
		if n := w.Model.counts.All()[CountForgotten]; n != 1 {
			t.Errorf("%d versions are counted as forgotten, want 1", n)
		}
		if want == nil {
			want = w
			continue
		}
		if got, hash := w.Hash(), want.Hash(); got != hash {
			t.Errorf("%d shards: state hash %s, want %s", c.shards, got, hash)
		}
		worldtest.CompareOutputs(t, worldtest.Firsts(w.Outputs), worldtest.Firsts(want.Outputs))
	}
	checkForgotten(t, want)

	a := want.Model.models["m"].versions["a"]
	if n := a.keys[""].Labelled; n == 0 || n > 900 {
		t.Errorf("%d labelled rows of the version that came back, want those of its second time, at most 900", n)
	}
	gone := newWorld(t, s, worldtest.Stream(t, replaced, 2, 20), 1).run(worldtest.AnyOrder)
	g := gone.Model.models["m"].versions["a"]
	if len(g.keys) != 0 || len(g.Calibrators) != 1 || g.refit.Running() {
		t.Errorf("a forgotten version has %d keys, %d calibrators, a refit run: %t; want 0, the one in force, none",
			len(g.keys), len(g.Calibrators), g.refit.Running())
	}
	if a.refit.Revision() < g.refit.Revision() || g.refit.Revision() == 0 {
		t.Errorf("revision %d after it came back, %d when it was forgotten", a.refit.Revision(), g.refit.Revision())
	}
	s.model.ForgetAfter = 0
	kept := newWorld(t, s, worldtest.Stream(t, replaced, 2, 20), 1).run(worldtest.AnyOrder)
	if n := kept.Model.counts.All()[CountForgotten]; n != 0 {
		t.Errorf("%d versions are forgotten where none is to be", n)
	}
	if has, had := checkpointSize(t, gone), checkpointSize(t, kept); has > had*3/4 {
		t.Errorf("a checkpoint of %d bytes with a forgotten version, %d with it", has, had)
	}
}

// TestLargeVersionsAreForgotten: versions that take too much together are kept while they have rows. Without rows for
// an hour the one that is silent longest is forgotten, at the same label pane for any shards, order and restarts; no
// more of them than needed, and none where versions are never forgotten.
func TestLargeVersionsAreForgotten(t *testing.T) {
	t.Parallel()
	var rows []batchtest.Row
	for i, v := range []struct {
		name    string
		n, step int64
	}{{"a", 600, 1}, {"b", 600, 1}, {"c", 2200, 2}} {
		o := batchtest.Options{N: int(v.n), Step: v.step * second, MaxLag: 5 * second, Regions: 2,
			Versions: []string{v.name}}
		if i > 0 {
			o.Start = rows[len(rows)-1].TS + second
		}
		rows = append(rows, batchtest.Rows(uint64(400+i), o)...)
	}
	run := func(after int64, keep, shards int, crash float64) *world {
		s := forgetSetup()
		s.model.ForgetAfter, s.model.KeepBytes = after, keep
		w := newWorld(t, s, worldtest.Stream(t, rows, shards, 20), uint64(shards))
		w.Save, w.Crash = .1, crash
		return w.run(worldtest.AnyOrder)
	}
	const month, keep = 720 * 3600 * second, 900_000
	want := run(month, keep, 1, 0)
	for _, shards := range []int{1, 3} {
		got := run(month, keep, shards, .02)
		if got.Hash() != want.Hash() {
			t.Errorf("%d shards: another state hash", shards)
		}
		worldtest.CompareOutputs(t, worldtest.Firsts(got.Outputs), worldtest.Firsts(want.Outputs))
	}
	for _, c := range []struct {
		name string
		w    *world
		kept string
	}{
		{"too much for three", want, "bc"},
		{"too much for one", run(month, 1, 1, 0), "c"},
		{"enough for all", run(month, 2_000_000, 1, 0), "abc"},
		{"never", run(0, 1, 1, 0), "abc"},
	} {
		kept := ""
		for name, v := range sorted(c.w.Model.models["m"].versions) {
			if len(v.keys) > 0 {
				kept += name
			}
		}
		if kept != c.kept {
			t.Errorf("%s: versions %q are kept, want %q", c.name, kept, c.kept)
		}
	}
}

func checkpointSize(t *testing.T, w *world) int {
	t.Helper()
	c, err := pipeline.EncodeCheckpoint(w.Model.Sections())
	w.Must(err)
	return len(c.Data)
}

// checkForgotten checks that some alerts of version a fired and that all of them were resolved.
func checkForgotten(t *testing.T, w *world) {
	t.Helper()
	state, seen := map[string]string{}, 0
	for _, a := range w.alerts() {
		if a.Version != "a" {
			continue
		}
		if strings.HasPrefix(a.Message, "forgotten: ") {
			seen++
			if before := state[a.Slice+"/"+a.Rule]; before != stage.Firing && before != stage.Pending ||
				a.State != stage.Resolved {
				t.Errorf("%s of %q is %s by %q after %q", a.Rule, a.Slice, a.State, a.Message, before)
			}
		}
		state[a.Slice+"/"+a.Rule] = a.State
	}
	if seen == 0 {
		t.Errorf("nothing of the forgotten version was resolved; alerts %v", slices.Sorted(maps.Keys(state)))
	}
}

// TestPausesAreNotForgotten: after a pause of all versions, none is forgotten when one comes back before the other.
func TestPausesAreNotForgotten(t *testing.T) {
	t.Parallel()
	rows := phase(311, nil, 0, 1200, "a", "b")
	rows = phase(312, rows, 180*24*3600, 1200, "a")
	s := forgetSetup()
	s.model.ForgetAfter = 48 * 3600 * second
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 20), 1).run(worldtest.AnyOrder)
	if n := w.Model.counts.All()[CountForgotten]; n != 0 {
		t.Errorf("%d versions are forgotten after a pause of the model", n)
	}
	v := w.Model.models["m"].versions["b"]
	if idle := v.idle * s.model.Pane; idle < pauseOfAll || idle > pauseOfAll+200*second {
		t.Errorf("version b counts as without rows for %d s, want half an hour and what came since", idle/second)
	}
}

// TestNightsAreNotForgotten: two versions share the traffic of a model. Nobody sends anything for two hours of the
// night. In the morning one of them has its first row half a minute before the other: in this time, not in two hours,
// the other was silent while some version had rows, so it must not be forgotten.
func TestNightsAreNotForgotten(t *testing.T) {
	t.Parallel()
	const n = 600
	rows := batchtest.Rows(500, batchtest.Options{N: n, Step: second, MaxLag: 5 * second, Regions: 2,
		Versions: []string{"a", "b"}})
	next := func(after int64, n int, seed uint64, versions ...string) {
		rows = append(rows, batchtest.Rows(seed, batchtest.Options{N: n, Step: second, MaxLag: 5 * second, Regions: 2,
			Versions: versions, Start: rows[len(rows)-1].TS + after})...)
	}
	next(2*3600*second, 30, 501, "a")
	next(second, n, 502, "a", "b")
	s := forgetSetup()
	s.model.ForgetAfter, s.model.KeepBytes = 720*3600*second, 1
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 20), 1).run(worldtest.AnyOrder)
	if got := w.Model.counts.All()[CountForgotten]; got != 0 {
		t.Errorf("%d versions forgotten, want 0: no version was silent for an hour in which another had rows", got)
	}
}
