package model

import (
	"context"
	"maps"
	"slices"
)

// The fits of a refit run beside the task. If a model reaches the label pane at which they are due before they have
// ended, that model waits. Its later panes stay pending, and other models go on. So decisions depend on the panes log
// only, not on how long a fit takes.

// A model with rows of long ago has years of panes to process: a row with a wrong clock opens a window of a day, with
// thousands of panes without rows. So a model that has more than a few gets turns, one model at a time, and the records
// of others come between.

// panesOfTurn is how many label panes of a model are processed at a time.
const panesOfTurn = 64

// maxBacklog limits the bytes of pane messages for waiting models. Beyond it the task takes no message until their fits
// have ended.
const maxBacklog = 64 << 20

// turns are the models that have label panes to process which wait.
type turns struct {
	waiting map[string]bool // at a pane for which a fit is due that has not ended, or behind
	behind  map[string]bool // with more panes to process than others should wait for
	last    string          // the model of these that had the last turn
}

func (q *turns) wait(model string, behind bool) {
	if q.waiting[model] = true; behind {
		q.behind[model] = true
	}
}

func (q *turns) leave(model string) {
	delete(q.waiting, model)
	delete(q.behind, model)
}

// next returns the model behind whose turn it is, by name after that of the last turn.
func (q *turns) next() string {
	names := slices.Sorted(maps.Keys(q.behind))
	i, had := slices.BinarySearch(names, q.last)
	if had {
		i++
	}
	q.last = names[i%len(names)]
	return q.last
}

// awaits reports whether a model must not process a label pane yet.
func (m *model) awaits(pane int64) bool {
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
	switch {
	case len(t.turns.behind) > 0:
		return atOnce
	case len(t.turns.waiting) == 0:
		return nil
	}
	return t.refits.Wake()
}

// atOnce always has a value.
var atOnce = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Resume implements pipeline.Waiter. Models whose fits have ended go on, and one that is behind has its turn.
func (t *Task) Resume() error {
	if err := resumeFits(t); err != nil || len(t.turns.behind) == 0 {
		return err
	}
	t.dirty = true
	m := t.models[t.turns.next()]
	return t.advance(m, m.reached)
}

// resumeFits lets models go on whose fits have ended.
func resumeFits(t *Task) error {
	for name := range sorted(t.turns.waiting) {
		m := t.models[name]
		if t.turns.behind[name] || m.awaits(m.nextBusy(m.reached, &t.cfg)) {
			continue
		}
		t.dirty = true
		if err := t.advance(m, m.reached); err != nil {
			return err
		}
	}
	if len(t.turns.waiting) == 0 {
		t.backlog = 0
	}
	return nil
}

// Settle implements pipeline.Waiter. It returns when no model waits.
func (t *Task) Settle(ctx context.Context) error {
	for {
		if err := t.Resume(); err != nil || len(t.turns.waiting) == 0 {
			return err
		}
		select {
		case <-t.Wake():
		case <-ctx.Done():
			return ctx.Err()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Close implements io.Closer. Fits that have not begun are dropped.
func (t *Task) Close() error {
	t.refits.Close()
	return nil
}
