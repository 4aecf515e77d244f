package model

import (
	"context"
	"maps"
	"slices"
)

// The fits of a refit run beside the task. If a model reaches the label pane at which they are due before they have
// ended, that model waits. Its later panes stay pending, and other models go on. So decisions depend on the panes log
// only, not on how long a fit takes.

// maxBacklog limits the bytes of pane messages for waiting models. Beyond it the task takes no message until their fits
// have ended.
const maxBacklog = 64 << 20

// awaits reports whether a model must not process a label pane yet.
func (t *Task) awaits(m *model, pane int64) bool {
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
func (t *Task) Wake() <-chan struct{} {
	if len(t.waiting) == 0 {
		return nil
	}
	return t.refits.Wake()
}

// Resume implements pipeline.Waiter. Models whose fits have ended go on.
func (t *Task) Resume() error {
	for _, name := range slices.Sorted(maps.Keys(t.waiting)) {
		m := t.models[name]
		if t.awaits(m, m.nextBusy(m.reached)) {
			continue
		}
		t.dirty = true
		if err := t.advance(m, m.reached); err != nil {
			return err
		}
	}
	if len(t.waiting) == 0 {
		t.backlog = 0
	}
	return nil
}

// Settle implements pipeline.Waiter. It returns when no model waits.
func (t *Task) Settle(ctx context.Context) error {
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

// Close implements io.Closer. Fits that have not begun are dropped.
func (t *Task) Close() error {
	t.refits.Close()
	return nil
}
