package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// passer skips one offset, and keeps what it is told.
type passer struct {
	offset int64      // -1 = none
	mu     sync.Mutex // a save is told beside the task
	told   []string
}

func (p *passer) tell(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, what)
}

func (p *passer) Pass(r Record, over func(why string) bool) bool {
	return r.Offset == p.offset && over("it ended the task")
}

func (p *passer) Suspects(Record) bool       { return false }
func (p *passer) Taking(r Record)            { p.tell(fmt.Sprint("taking ", r.Offset)) }
func (p *passer) Taken()                     { p.tell("taken") }
func (p *passer) Saved(next map[Input]int64) { p.tell(fmt.Sprint("saved ", next[Logits])) }

// skip is the adder's Skip.
func (a *adder) skip(r Record, why string) bool {
	a.state.next, a.dirty = r.Offset+1, true
	a.before = append(a.before, Message{Stream: StreamDeadLetter, Value: []byte(why)})
	return true
}

// runGuarded runs the rig's task, whose order matters, under a guard.
func (r *rig) runGuarded(ctx context.Context, g Guard) error {
	r.runner.Guard = g
	return Run(ctx, r.runner, func() (Registered, error) {
		task, err := r.build()
		task.Order, task.Skip = anyOrder{}, r.task.skip
		return task, err
	}, func(next map[Input]int64) (Opened, error) {
		r.source.next = next[Logits]
		return Opened{Source: r.source}, nil
	})
}

// TestPanicIsTheRecordsError: a panic is an error that names the record, and what came before it is not saved.
func TestPanicIsTheRecordsError(t *testing.T) {
	r := newRig(1, 2)
	g := &passer{offset: -1}
	r.runner.Guard = g
	err := Run(t.Context(), r.runner, func() (Registered, error) {
		task, err := r.build()
		task.Task = panicking{r.task}
		return task, err
	}, func(map[Input]int64) (Opened, error) { return Opened{Source: r.source}, nil })
	var te *TakeError
	var p *PanicError
	if !errors.As(err, &te) || te.Offset != 1 || !errors.As(err, &p) ||
		!strings.Contains(string(p.Stack), "guard_test") ||
		!strings.Contains(err.Error(), "offset 1: panic: index out of range") {
		t.Errorf("got %v, want a panic at offset 1 with its stack", err)
	}
	if want := []string{"taking 0", "taken", "taking 1"}; !slices.Equal(g.told, want) || len(r.events) > 0 {
		t.Errorf("the guard was told %v, want %v; events %v", g.told, want, r.events)
	}
}

// panicking panics at the second record.
type panicking struct{ *adder }

func (p panicking) Take(ctx context.Context, r Record) error {
	if r.Offset == 1 {
		panic("index out of range")
	}
	return p.adder.Take(ctx, r)
}

// TestPanicInACheckpointIsAnError, of the goroutine that saves it.
func TestPanicInACheckpointIsAnError(t *testing.T) {
	r := newRig(1)
	r.sink.fail = func([]Message) error { panic("no") }
	var p *PanicError
	if err := r.run(t.Context()); !errors.As(err, &p) || p.Value != "no" {
		t.Errorf("got %v, want the panic", err)
	}
}

// TestSkippedRecordStaysSkipped: what is skipped is no part of the sum, and neither where the newest checkpoint is
// damaged and the journal tells what was taken, by a guard that knows of nothing.
func TestSkippedRecordStaysSkipped(t *testing.T) {
	r := newRig(1, 2, 3, 4, 6, 7, 100, 8)
	store := &keptStore{}
	r.runner.Store = store
	g := &passer{offset: 6}
	if err := r.runGuarded(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	want := []int64{1, 3, 6, 10, 16, 23, 31}
	if !slices.Equal(r.sink.panes, want) || g.told[len(g.told)-1] != "saved 8" || len(store.kept) != 2 {
		t.Errorf("panes %v, want %v; the guard was told %v", r.sink.panes, want, g.told)
	}
	if slices.Contains(g.told, "taking 6") {
		t.Errorf("the record was taken: %v", g.told)
	}
	store.damage() // the checkpoint after the record, whose journal has the skip
	r.sink.panes = nil
	if err := r.runGuarded(t.Context(), &passer{offset: -1}); err != nil {
		t.Fatal(err)
	}
	if got := r.sink.panes[len(r.sink.panes)-1]; got != 31 || r.task.state.sum != 31 {
		t.Errorf("after the fallback: panes %v, sum %d, want 31", r.sink.panes, r.task.state.sum)
	}
}

// TestFullDiskPublishesNothing: where the bytes of a checkpoint find no room, no output of it is written; where the
// outputs fail, there is no checkpoint.
func TestFullDiskPublishesNothing(t *testing.T) {
	r := newRig(1, 2, 3)
	r.store.fail = func(int) error { return errTest }
	if err := r.run(t.Context()); !errors.Is(err, errTest) || strings.Join(r.events, ", ") != "save failed" {
		t.Errorf("%v, events %v, want a save that failed and nothing written", err, r.events)
	}
	r = newRig(1, 2, 3)
	r.sink.fail = func([]Message) error { return errTest }
	if err := r.run(t.Context()); !errors.Is(err, errTest) || len(r.store.saved) > 0 {
		t.Errorf("%v, %d checkpoints, want none", err, len(r.store.saved))
	}
}
