package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline/plumbline/operators/model/slice"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// A model gets a new version at each deployment, and every version has windows, references, tests and a sample of rows.
// So the task forgets a version that is out of service: other versions have had rows for Config.ForgetAfter since
// its last rows. A pause of the whole model counts as at most pauseOfAll. Otherwise, when two versions come back after
// half a year, the one that comes later would be forgotten.
//
// Where deployments are many or versions large (classes, slices), that is too late: a CI job that makes a version of
// each commit would use up the memory with versions that never come back. So while the versions of a model take more
// than Config.KeepBytes, those without rows for silentFor are forgotten too, the longest silent first.

// keepBytes is the default of Config.KeepBytes.
const keepBytes = 256 << 20

// pauseOfAll is the longest time, in ns, that a pause of all versions adds to the time out of service. It is less than
// silentFor: after a night without traffic each version may come back.
const pauseOfAll = silentFor / 2

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
func (m *model) forgetIdle(f *fleet, pane int64) error {
	after := f.cfg.ForgetAfter / f.cfg.Pane
	if after == 0 {
		return nil
	}
	for name, v := range sorted(m.versions) {
		if v.last == minPane || v.idle < after || !v.settled(pane) {
			continue
		}
		if err := (&stepper{f, v}).forget(noRowsFor(f.cfg.ForgetAfter), (pane+1)*f.cfg.Pane); err != nil {
			return fmt.Errorf("version %q: %w", name, err)
		}
	}
	return m.forgetLarge(f, pane)
}

// noRowsFor says why a version is forgotten.
func noRowsFor(d int64) string {
	return fmt.Sprintf("no rows for %s, in which other versions of the model had some", time.Duration(d))
}

// forgetLarge forgets silent versions while those of the model take too much. Those with windows that are still to be
// published go last.
func (m *model) forgetLarge(f *fleet, pane int64) error {
	total, soon := 0, max(silentFor, f.cfg.FinalAfter+f.cfg.Pane)/f.cfg.Pane
	var silent []*version
	for _, v := range m.versions {
		total += v.bytes(&f.cfg)
		if len(v.keys) > 0 && v.last != minPane && v.idle >= soon && v.refit.Idle(pane) {
			silent = append(silent, v)
		}
	}
	most := cmp.Or(f.cfg.KeepBytes, keepBytes)
	if total <= most || len(silent) == 0 {
		return nil
	}
	slices.SortFunc(silent, func(a, b *version) int {
		if first := a.settled(pane); first != b.settled(pane) {
			if first {
				return -1
			}
			return 1
		}
		return cmp.Or(-cmp.Compare(a.idle, b.idle), cmp.Compare(a.Name, b.Name))
	})
	for _, v := range silent {
		if total <= most {
			break
		}
		total -= v.bytes(&f.cfg)
		why := fmt.Sprintf("%s, and they take more than %d MiB", noRowsFor(v.idle*f.cfg.Pane), most>>20)
		if err := (&stepper{f, v}).forget(why, (pane+1)*f.cfg.Pane); err != nil {
			return fmt.Errorf("version %q: %w", v.Name, err)
		}
	}
	return nil
}

// bytes is about the memory of a version. It is a function of the state alone, not of how it came to be.
func (v *version) bytes(cfg *Config) (n int) {
	const (
		row      = 90       // of a sampled row, beside its scores
		key      = 10 << 10 // of a key that is new
		grown    = 100 << 10
		class    = 1600 // of both by class
		settling = 1000 // rows after which windows hardly grow
	)
	for _, k := range v.keys {
		n += key + (grown+class*v.K)*int(min(k.Labelled, settling))/settling
		if k.Slice == "" || cfg.Unlabelled != nil && cfg.Unlabelled.ReadsRows(k.Slice) {
			rows := cfg.SampleRows
			if k.Slice != "" {
				rows = min(rows, cfg.SliceRows)
			}
			n += int(min(k.Labelled, int64(rows))) * (row + 4*v.K)
		}
	}
	return n
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
func (t *stepper) forget(cause string, now int64) error {
	v := t.version
	why := fmt.Sprintf("forgotten: %s; %s", cause, errorUnknown)
	for _, k := range sorted(v.keys) {
		k.wake(t.fleet)
		t.alert.End(&k.Key, k.EndAlerts(why), now)
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
	t.log.Info("model version forgotten: it is out of service", "model", v.Model, "version", v.Name, "why", cause,
		"at", pipeline.Format(now))
	return nil
}

// idleSection is the checkpoint section with the label panes of the versions' last rows.
func (f *fleet) idleSection() pipeline.Section {
	return pipeline.Section{Name: "idle", Version: 1,
		State: f.paneSection("last rows", func(v *version) (pane, passed *int64) { return &v.last, &v.idle })}
}
