package model

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/plumbline/plumbline/operators/model/slice"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// A model gets a new version at each deployment, and each has windows, references, tests and a sample of rows. So a
// version that is out of service is forgotten: others have had rows for ModelConfig.ForgetAfter since its last ones. A
// pause of the whole model counts as pauseAtMost, however long it is, so that of two versions that both come back after
// half a year the later one is not taken for gone.

// pauseAtMost is what a time without rows of any version adds to how long one has been out of service, ns.
const pauseAtMost = int64(24 * time.Hour)

// CountForgotten counts model versions that were forgotten.
const CountForgotten = "versions_forgotten"

// takes reports whether anything of a label pane waits for the version.
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

// seen notes which versions have rows in the label pane at hand, and reports whether any has; pause is the most panes
// that count since the last such one.
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

// forgetIdle forgets the versions that are out of service at the end of a label pane. It is asked at panes with rows
// only: which of the others are stepped through depends on how far the barrier jumps.
func (m *model) forgetIdle(t *ModelTask, pane int64) error {
	after := t.cfg.ForgetAfter / t.cfg.Pane
	if after == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.versions)) {
		v := m.versions[name]
		if v.last == minPane || v.idle < after || !v.settled(pane) {
			continue
		}
		if err := (&stepper{t, v}).forget((pane + 1) * t.cfg.Pane); err != nil {
			return fmt.Errorf("version %q: %w", name, err)
		}
	}
	return nil
}

// settled reports whether the version has something to forget, and nothing that a label pane without rows would still
// bring about.
func (v *version) settled(pane int64) bool {
	for _, k := range v.keys {
		if k.open() {
			return false
		}
	}
	return len(v.keys) > 0 && v.refit.Idle(pane)
}

// forget ends what a version has: alerts are resolved, a refit under way ends without a change, statistics and
// tests are dropped. Cells of later label panes stay, and begin anew. So do the revision's number, what is in force,
// pins and the heads that were asked for: the topics have them.
func (t *stepper) forget(now int64) error {
	v := t.version
	why := fmt.Sprintf("forgotten: no rows for %s, in which other versions of the model had some; whether the error is gone is not known", time.Duration(t.cfg.ForgetAfter))
	for _, name := range slices.Sorted(maps.Keys(v.keys)) {
		k := v.keys[name]
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

// idleState is the section of a model task's checkpoint with the label panes of the versions' last rows.
type idleState struct{ t *ModelTask }

// AppendState implements pipeline.State: by model and version the label panes of those that have had rows.
func (s idleState) AppendState(dst []byte) ([]byte, error) {
	for _, name := range slices.Sorted(maps.Keys(s.t.models)) {
		m := s.t.models[name]
		for _, vn := range slices.Sorted(maps.Keys(m.versions)) {
			if v := m.versions[vn]; v.last != minPane {
				dst = binenc.AppendVarint(binenc.AppendString(binenc.AppendString(append(dst, 1), name), vn), v.last)
				dst = binenc.AppendVarint(dst, v.idle)
			}
		}
	}
	return dst, nil
}

// RestoreState implements pipeline.State. The section of the models was restored before.
func (s idleState) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	for r.Err() == nil && r.Len() > 0 {
		r.Byte()
		name, vn, last, idle := r.String(binenc.MaxName), r.String(binenc.MaxName), r.Varint(), r.Varint()
		if r.Err() != nil {
			break
		}
		m := s.t.models[name]
		if m == nil || m.versions[vn] == nil {
			return fmt.Errorf("last rows of %s version %q, which the checkpoint has not", name, vn)
		}
		m.versions[vn].last, m.versions[vn].idle = last, max(0, idle)
	}
	return r.Close()
}
