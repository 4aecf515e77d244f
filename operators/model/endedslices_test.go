package model

import (
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
)

func endedBy(task *Task, reason string) int64 {
	return task.counts.All()[CountEndedSlices+":"+reason]
}

// TestEndedSlicesAreCounted: every slice that another one replaces is counted once, however often the task is restored.
// Slices of a column that is no longer configured are added to the counts of the checkpoint; a second restart from the
// same checkpoint gives the same counts.
func TestEndedSlicesAreCounted(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := manyValues(batchtest.Rows(154, batchtest.Options{N: 1200, MaxLag: 30 * second, Sharpness: 2, Regions: 1}),
		60)
	s := manySetup(4)
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 25), 1).run(worldtest.AnyOrder)
	task := s.task()
	var want int64
	had := map[string]bool{}
	for i, r := range w.Panes {
		w.Must(task.Take(t.Context(), r))
		w.Must(task.Settle(t.Context()))
		if m := task.models["m"]; m != nil {
			now := map[string]bool{}
			for name := range m.versions["v1"].keys {
				now[name] = true
			}
			for name := range had { // plain reference: the slices that existed before this message
				if !now[name] {
					want++
				}
			}
			had = now
		}
		if i%5 == 0 {
			saved, err := pipeline.EncodeCheckpoint(task.Sections())
			w.Must(err)
			task = s.task()
			w.Must(pipeline.RestoreCheckpoint(saved.Data, task.Sections(), nil))
		}
	}
	if got := endedBy(task, EndedPooled); got != want || want == 0 {
		t.Errorf("%d slices are counted as pooled, %d are gone", got, want)
	}
	if n := endedBy(w.Model, EndedPooled); n < want {
		t.Errorf("%d slices without restarts, at least %d", n, want)
	}
	saved, err := pipeline.EncodeCheckpoint(task.Sections())
	w.Must(err)
	none := s
	none.model.Slices.Columns = []string{}
	for range 2 {
		last := none.task()
		w.Must(pipeline.RestoreCheckpoint(saved.Data, last.Sections(), nil))
		of := int64(len(task.models["m"].versions["v1"].keys) - 1) // all but the whole version
		if got := endedBy(last, EndedColumn); got != of || of == 0 {
			t.Errorf("%d slices are counted as without their column, want %d", got, of)
		}
		if got := endedBy(last, EndedPooled); got != want {
			t.Errorf("%d pooled slices after the restart, %d before", got, want)
		}
		if status := last.Report(true, true); status != nil {
			status()
		}
		if got := last.Status().Counts[CountEndedSlices+":"+EndedColumn]; got != of {
			t.Errorf("the status counts %d, want %d", got, of)
		}
	}
}
