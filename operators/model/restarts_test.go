package model

import (
	"bytes"
	"fmt"
	"maps"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
)

// restored returns a new model task, restored from the checkpoint of task. It must encode to the same bytes.
func restored(t testing.TB, s *setup, task *Task, when string) *Task {
	t.Helper()
	saved, err := pipeline.EncodeCheckpoint(task.Sections())
	if err != nil {
		t.Fatal(err)
	}
	to := s.task()
	if err := pipeline.RestoreCheckpoint(saved.Data, to.Sections(), nil); err != nil {
		t.Fatal(err)
	}
	again, err := pipeline.EncodeCheckpoint(to.Sections())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(saved.Data, again.Data) {
		t.Fatalf("%s: a restored checkpoint of %d bytes encodes to another one of %d", when, len(saved.Data),
			len(again.Data))
	}
	return to
}

// restartsAfter returns after which messages of a panes log a task is restored: every n-th, in a long run, and the last
// few.
func (w *world) restartsAfter(n int) func(i int, task *Task) bool {
	n = testsize.Pick(4*n+1, n)
	return func(i int, _ *Task) bool { return i%n == 0 || i >= len(w.Panes)-3 }
}

// compareRestarts reads the panes log with a task that is restored from its own checkpoint after the messages that at
// selects, and takes each message twice. Outputs, state and counts must equal those of the task that runs through.
func (w *world) compareRestarts(t *testing.T, at func(i int, task *Task) bool) {
	t.Helper()
	task, outputs := w.setup.task(), []pipeline.Message(nil)
	for i, r := range w.Panes {
		w.Must(task.Take(t.Context(), r))
		w.Must(task.Take(t.Context(), r)) // again, at the same offset
		outputs = append(outputs, task.Outputs()...)
		if at(i, task) {
			task = restored(t, &w.setup, task, fmt.Sprint("message ", i))
		}
	}
	w.Must(task.Settle(t.Context()))
	got, err := task.Hash()
	w.Must(err)
	want, err := w.Model.Hash()
	w.Must(err)
	if !maps.Equal(got, want) || !maps.Equal(task.counts.All(), w.Model.counts.All()) {
		t.Errorf("with restarts hash %v, counts %v, want %v, %v", got, task.counts.All(), want, w.Model.counts.All())
	}
	worldtest.CompareOutputs(t, worldtest.Firsts(append(outputs, task.Outputs()...)), worldtest.Firsts(w.Outputs))
}
