package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// firingRules returns a checkpoint taken while the rules accuracy and nll fire, and the setup that wrote it.
func firingRules(t *testing.T) (setup, []byte) {
	t.Helper()
	rows := changing(func(r *batchtest.Row, i int) {
		if i%3 == 0 {
			r.Label = (r.Label + 1) % 4
		}
	})
	s := alarmSetup(nil)
	s.model.Rules = thresholds()[:2]
	w := newWorld(t, s, worldtest.Stream(t, rows[:4000], 1, 50), 1).run(worldtest.AnyOrder)
	k := w.Model.models["m"].versions["v1"].keys[""]
	for i, name := range []string{rule.Accuracy, rule.NLL} {
		if a := k.Alerts[i]; a.Rule != name || a.State != stage.Firing {
			t.Fatalf("rule %s is %q, want it to fire", a.Rule, a.State)
		}
	}
	return s, w.SavedModel
}

// TestRulesMayChange continues from a checkpoint with other rules. Unchanged rules continue and new ones start. If a
// rule is gone or means something else, its alert is resolved.
func TestRulesMayChange(t *testing.T) {
	t.Parallel()
	s, saved := firingRules(t)
	for _, c := range []struct {
		name   string
		change func([]rule.Config) []rule.Config
		ended  string // how the alerts of accuracy and nll end
		why    string
	}{
		{"nothing", func(r []rule.Config) []rule.Config { return r }, "", ""},
		{"another order", func(r []rule.Config) []rule.Config { slices.Reverse(r); return r }, "", ""},
		{"one more", func(r []rule.Config) []rule.Config {
			return append([]rule.Config{threshold(rule.ECE, .5, .4)},
				r...)
		}, "", ""},
		{"other bounds", func(r []rule.Config) []rule.Config {
			for i := range r {
				r[i].Fire, r[i].Severity, r[i].For, r[i].MinRows, r[i].Interval = r[i].Fire+.01, "critical",
					50*time.Second, 300, true
			}
			return r
		}, "", ""},
		{"one gone", func(r []rule.Config) []rule.Config { return r[1:] }, rule.Accuracy, "has no rule accuracy"},
		{"all gone", func([]rule.Config) []rule.Config { return nil }, rule.Accuracy + " " + rule.NLL, "has no rule"},
		{"renamed", func(r []rule.Config) []rule.Config { r[1].Name = "new"; return r }, rule.NLL, "has no rule nll"},
		{"another measure", func(r []rule.Config) []rule.Config { r[0].Measure = rule.SmECE; return r }, rule.Accuracy,
			"has changed"},
		{"more rows", func(r []rule.Config) []rule.Config { r[1].Rows *= 2; return r }, rule.NLL, "has changed"},
		{"another signal", func(r []rule.Config) []rule.Config { r[1].Signal = stage.SignalCalibrated; return r },
			rule.NLL, "has changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := s
			now.model.Rules = c.change(thresholds()[:2])
			task := now.task()
			if err := pipeline.RestoreCheckpoint(saved, task.Sections(), nil); err != nil {
				t.Fatal(err)
			}
			var over []string
			for _, m := range task.Outputs() {
				var a record.Alert
				if err := json.Unmarshal(m.Value, &a); err != nil {
					t.Fatal(err)
				}
				if over = append(over, a.Rule); a.State != stage.Resolved || a.InhibitedBy != "" &&
					a.Rule == rule.Accuracy || !strings.Contains(a.Message, c.why) {
					t.Errorf("%+v, want it resolved, because it %s", a, c.why)
				}
			}
			if slices.Sort(over); strings.Join(over, " ") != c.ended {
				t.Errorf("%v are over, want %q", over, c.ended)
			}
			k := task.models["m"].versions["v1"].keys[""]
			for i := range now.model.Rules {
				name := now.model.Rules[i].Name
				goesOn := (name == rule.Accuracy || name == rule.NLL) && !slices.Contains(over, name)
				if (k.Alerts[i].State == stage.Firing) != goesOn {
					t.Errorf("rule %s is %q, goes on: %v", name, k.Alerts[i].State, goesOn)
				}
			}
		})
	}
}

// TestWindowsMayChange continues with other windows. Those of the same name and definition keep their rows; others
// start empty.
func TestWindowsMayChange(t *testing.T) {
	t.Parallel()
	s, saved := firingRules(t)
	now := s
	now.model.Windows = []window.Config{{Name: "new", Kind: "rows", Rows: 100}}
	for _, w := range s.model.Windows {
		if w.Kind == "rows" && w.Every == 0 {
			w.Rows *= 2 // this makes it another window
		}
		now.model.Windows = append([]window.Config{w}, now.model.Windows...)
	}
	task := now.task()
	if err := pipeline.RestoreCheckpoint(saved, task.Sections(), nil); err != nil {
		t.Fatal(err)
	}
	k := task.models["m"].versions["v1"].keys[""]
	same := 0
	for i := range now.model.Windows {
		spec := &now.model.Windows[i]
		has := k.Snapshots.Has(spec.Name)
		was := slices.ContainsFunc(s.model.Windows, func(x window.Config) bool { return x == *spec })
		if has != was {
			t.Errorf("window %s: the same as before: %v, has rows: %v", spec.Name, was, has)
		}
		if was {
			same++
		}
	}
	if same == 0 || same == len(now.model.Windows) {
		t.Errorf("%d of %d windows are as before: nothing compared", same, len(now.model.Windows))
	}
}

// TestFinerBinsRestartWindows continues with bins that the sums of a checkpoint are too coarse for: windows start
// empty. With coarser ones they go on.
func TestFinerBinsRestartWindows(t *testing.T) {
	t.Parallel()
	s, saved := firingRules(t)
	for bins, goOn := range map[int]bool{acc.CoarseBins: true, 2 * acc.CoarseBins: false} {
		now := s
		now.model.ExtraBins = []int{bins}
		task := now.task()
		if err := pipeline.RestoreCheckpoint(saved, task.Sections(), nil); err != nil {
			t.Fatal(err)
		}
		k := task.models["m"].versions["v1"].keys[""]
		for _, w := range now.model.Windows {
			if k.Snapshots.Has(w.Name) != goOn {
				t.Errorf("window %s has rows with %d bins: %v", w.Name, bins, !goOn)
			}
		}
		if k.Labelled == 0 || k.Alerts[0].State != stage.Firing {
			t.Errorf("%d labelled rows, alert %q: what has no bins is lost", k.Labelled, k.Alerts[0].State)
		}
	}
}

// TestOtherSumsAreRefused: a shard that has nothing open refuses other sums in the words of the model task, so that no
// pane of theirs reaches the topic before what was changed is set back. A shard that begins anew may have them.
func TestOtherSumsAreRefused(t *testing.T) {
	t.Parallel()
	s := defaultSetup()
	rows := batchtest.Rows(155, batchtest.Options{N: 200, MaxLag: second})
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 50), 1).run(worldtest.AnyOrder)
	now := s
	now.model.Acc.Bins = 20
	fresh := func() *pipeline.Shard {
		shard := now.shard(0, 1)
		t.Cleanup(func() { w.Must(shard.Close()) })
		return shard
	}
	want := fmt.Sprintf("the statistics were made with other settings: stats.bins was %d and is 20: set back",
		s.model.Acc.Bins)
	for name, task := range map[string][2]interface{ Sections() []pipeline.Section }{
		"shard": {w.Shards[0], fresh()}, "model task": {w.Model, now.task()},
	} {
		c, err := pipeline.EncodeCheckpoint(task[0].Sections())
		w.Must(err)
		if err := pipeline.RestoreCheckpoint(c.Data, task[1].Sections(), nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", name, err, want)
		}
	}
	c, err := pipeline.Begun([]int64{1, 1}, &pipeline.Epoch{ID: 3})
	w.Must(err)
	if err := pipeline.RestoreCheckpoint(c.Data, fresh().Sections(), nil); err != nil {
		t.Errorf("a shard that begins anew: %v", err)
	}
}
