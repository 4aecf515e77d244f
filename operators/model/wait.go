package model

import (
	"context"
	"maps"
	"slices"
)

// A refit's fits run beside the task. A model that comes to the label pane at which they are due before they are
// done waits there, alone: its later panes stay in pending, the other models go on. So what is decided is a
// function of the panes log, and how long a fit takes is not.

// maxBacklog bounds the pane messages of models that wait; past it the task takes nothing before their fits are done.
const maxBacklog = 64 << 20

// awaits reports whether a model must not process a label pane yet.
func (t *ModelTask) awaits(m *model, pane int64) bool {
	for _, v := range m.versions {
		if v.refit.Awaits(pane) {
			return true
		}
	}
	return false
}

// fitting reports whether a version of the model has fits under way.
func (m *model) fitting() bool {
	for _, v := range m.versions {
		if v.refit.Fitting() {
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
	return t.refits.Wake()
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
		case <-t.refits.Wake():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close implements io.Closer: fits that have not begun are not begun any more.
func (t *ModelTask) Close() error {
	t.refits.Close()
	return nil
}
