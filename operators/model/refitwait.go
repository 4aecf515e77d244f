package model

import (
	"context"
	"maps"
	"slices"
)

// A refit's fits run beside the task. A model that comes to the label pane at which they are due before they are done waits
// there, alone: its later panes stay in pending, the other models go on. So what is decided is a function of the panes log,
// and how long a fit takes is not.

// maxBacklog bounds the pane messages of models that wait; past it the task takes nothing before their fits are done.
const maxBacklog = 64 << 20

// job returns the fits of a version's trial, and starts them where they do not run: at the trial's start, or after the
// state was restored.
func (t *ModelTask) job(v *version) *fitJob {
	j := t.jobs[v]
	if j == nil {
		tr := v.refit.trial
		j = newFitJob(tr.methods, tr.fit, v.K, tr.seed, t.cfg.MaxBytes)
		t.jobs[v] = j
		t.cfg.Fits.start(j, t.wake)
	}
	return j
}

// drop forgets a version's fits: nobody wants them any more.
func (t *ModelTask) drop(v *version) {
	if j := t.jobs[v]; j != nil {
		j.cancelled.Store(true)
		delete(t.jobs, v)
	}
}

// awaits reports whether a model must not process a label pane yet.
func (t *ModelTask) awaits(m *model, pane int64) bool {
	for _, v := range m.versions {
		if tr := v.refit.trial; tr.fitting() && pane >= tr.due && !t.job(v).finished() {
			return true
		}
	}
	return false
}

// fitting reports whether a version of the model has fits under way.
func (m *model) fitting() bool {
	for _, v := range m.versions {
		if v.refit.trial.fitting() {
			return true
		}
	}
	return false
}

// Wake implements pipeline.Waiter.
func (t *ModelTask) Wake() <-chan struct{} {
	if len(t.waiting) == 0 {
		return nil
	}
	return t.wake
}

// Resume implements pipeline.Waiter: models whose fits are done go on.
func (t *ModelTask) Resume() error {
	for _, name := range slices.Sorted(maps.Keys(t.waiting)) {
		m := t.models[name]
		if t.awaits(m, m.nextBusy(t.reached)) {
			continue
		}
		t.dirty = true
		if err := t.advance(m, t.reached); err != nil {
			return err
		}
	}
	if len(t.waiting) == 0 {
		t.backlog = 0
	}
	return nil
}

// Settle implements pipeline.Waiter: it waits until no model waits.
func (t *ModelTask) Settle(ctx context.Context) error {
	for {
		if err := t.Resume(); err != nil || len(t.waiting) == 0 {
			return err
		}
		select {
		case <-t.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// computing reports whether a fit runs or waits for a place.
func (t *ModelTask) computing() bool {
	for _, j := range t.jobs {
		if !j.finished() {
			return true
		}
	}
	return false
}

// Close implements io.Closer: fits that have not begun are not begun any more.
func (t *ModelTask) Close() error {
	for _, j := range t.jobs {
		j.cancelled.Store(true)
	}
	return nil
}
