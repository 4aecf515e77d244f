package model

import (
	"fmt"
	"time"

	"github.com/plumbline/plumbline/operators/model/slice"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/pipeline"
)

// A model gets a new version at each deployment, and every version has windows, references, tests and a sample of rows.
// So the task forgets a version that is out of service: other versions have had rows for Config.ForgetAfter since
// its last rows. A pause of the whole model counts as at most pauseAtMost. Otherwise, when two versions come back after
// half a year, the one that comes later would be forgotten.

// pauseAtMost is the longest time, in ns, that a pause of all versions adds to the time out of service.
const pauseAtMost = int64(24 * time.Hour)

// CountForgotten counts model versions that were forgotten.
const CountForgotten = "versions_forgotten"

// takes reports whether cells of a label pane wait for the version.
func (v *version) takes(pane int64) bool {
	for _, k := range v.keys {
		if len(k.pending[pane]) > 0 {
			return true
		}
	}
	for _, b := range v.pendingSlices {
		if len(b.pending[pane]) > 0 {
			return true
		}
	}
	return false
}

// seen notes which versions have rows in the label pane, and reports whether any has. pause is the largest number of
// panes that count since the last pane with rows.
func (m *model) seen(pane, pause int64) (any bool) {
	before := int64(minPane)
	for _, v := range m.versions {
		before = max(before, v.last)
	}
	for _, v := range m.versions {
		if v.takes(pane) {
			v.last, v.idle, any = pane, 0, true
		}
	}
	if !any {
		return false
	}
	for _, v := range m.versions {
		if v.last != pane && v.last != minPane {
			v.idle += min(pane-before, pause)
		}
	}
	return true
}

// forgetIdle forgets the versions that are out of service at the end of a label pane. It must be called only at panes
// with rows. Which other panes are processed depends on how far the barrier jumps, and must not matter.
func (m *model) forgetIdle(t *Task, pane int64) error {
	after := t.cfg.ForgetAfter / t.cfg.Pane
	if after == 0 {
		return nil
	}
	for name, v := range sorted(m.versions) {
		if v.last == minPane || v.idle < after || !v.settled(pane) {
			continue
		}
		if err := (&stepper{t, v}).forget((pane + 1) * t.cfg.Pane); err != nil {
			return fmt.Errorf("version %q: %w", name, err)
		}
	}
	return nil
}

// settled reports whether the version has state to forget, and whether label panes without rows would change nothing.
func (v *version) settled(pane int64) bool {
	for _, k := range v.keys {
		if k.open() {
			return false
		}
	}
	return len(v.keys) > 0 && v.refit.Idle(pane)
}

// errorUnknown ends the reason of an alert whose key ends while the alert is firing.
const errorUnknown = "whether the error is gone is not known"

// forget drops the state of a version. Alerts are resolved, a current refit ends without a change, statistics and tests
// are dropped. Cells of later label panes stay and start again. The revision's number, the calibrator in force, pins
// and requests for heads stay too, because the topics hold them.
func (t *stepper) forget(now int64) error {
	v := t.version
	why := fmt.Sprintf("forgotten: no rows for %s, in which other versions of the model had some; %s",
		time.Duration(t.cfg.ForgetAfter), errorUnknown)
	for _, k := range sorted(v.keys) {
		k.wake(t.Task)
		t.end(&k.Key, k.EndAlerts(why), now)
	}
	if err := v.refit.Forget(why, now); err != nil {
		return err
	}
	if f := v.Newest(); f != nil {
		v.Calibrators = []*stage.InForce{f}
	}
	old := v.keys
	v.keys, v.heavy, v.last, v.idle = map[string]*keyState{}, map[string]*slice.Counts{}, minPane, 0
	v.served, v.unserved, v.Silent = minPane, 0, ""
	for name, k := range old {
		if len(k.pending) > 0 {
			v.key(name, &t.cfg).inbox = k.inbox
		}
	}
	t.models[v.Model].heads.Forget(v.Name)
	t.counts.Add(CountForgotten, 1)
	t.log.Info("model version forgotten: it is out of service", "model", v.Model, "version", v.Name,
		"event_time.forget_after", time.Duration(t.cfg.ForgetAfter), "at", pipeline.Format(now))
	return nil
}

// idleSection is the checkpoint section with the label panes of the versions' last rows.
func idleSection(t *Task) pipeline.Section {
	return pipeline.Section{Name: "idle", Version: 1,
		State: paneSection(t, "last rows", func(v *version) (pane, passed *int64) { return &v.last, &v.idle })}
}
