package model

import (
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// twoModels returns rows of the models "m" and "other". Only "m" has enough rows for refits.
func twoModels() []batchtest.Row {
	rows := batchtest.Rows(71, batchtest.Options{N: 2500, MaxLag: 5 * second, Sharpness: 2.5})
	return append(rows, batchtest.Rows(72, batchtest.Options{N: 125, Step: 2 * second, MaxLag: 5 * second,
		Model: "other"})...)
}

// TestSlowFitsLeaveNoTrace lets fits end at random, late or only after the end of the stream. Every output and the
// state equal those of a run whose fits end at once.
func TestSlowFitsLeaveNoTrace(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(73, batchtest.Options{N: 3000, MaxLag: 20 * second, Sharpness: 2.5,
		Versions: []string{"a", "b"}, Weights: true})
	for _, late := range []bool{false, true} {
		s := defaultSetup()
		s.model.Refit.Method = "auto"
		in := worldtest.Stream(t, rows, 2, 20)
		if late {
			// Increments come late while their model waits.
			for i, part := range batchtest.Split(rows, 2) {
				in[i] = worldtest.Lanes{batchtest.Predictions(t, displaced(part, 60), 10),
					batchtest.Labels(t, displaced(batchtest.ByLabelTime(part), 60), 10)}
			}
		}
		first := newWorld(t, s, in, 1).run(worldtest.AnyOrder)
		if c := worldtest.DecodeAll[record.Calibrator](t, first.Outputs, pipeline.StreamCalibrators); len(c) < 2 {
			t.Fatalf("%d calibrators were published, want one for each version", len(c))
		}
		if n := first.Counts()["late"]; late != (n > 0) {
			t.Fatalf("%d late rows", n)
		}
		// The same panes log, so that the same rows are late, is read with other timings of fits and checkpoints.
		for seed := range uint64(4) {
			w := newWorld(t, s, nil, seed)
			w.Panes, w.Slow = first.Panes, 1
			w.Hold(true)
			waited := 0
			for int(max(w.Model.next, 0)) < len(w.Panes) {
				w.ReadPanes(1 + w.Rand.IntN(20))
				if seed < 3 && w.Rand.IntN(8) == 0 {
					w.Hold(!w.Held)
				}
				if len(w.Model.waiting) > 0 {
					waited++
				}
				if w.Rand.IntN(6) == 0 {
					w.SaveModel()
				}
				if w.Rand.IntN(9) == 0 && w.SavedModel != nil {
					w.Must(w.Model.Close())
					w.Model = w.setup.task()
					w.Must(pipeline.RestoreCheckpoint(w.SavedModel, w.Model.Sections(), nil))
				}
			}
			w.Finish()
			if waited == 0 && seed == 3 {
				t.Error("no model ever waited: nothing was tested")
			}
			if g, want := w.Hash(), first.Hash(); g != want {
				t.Errorf("seed %d: state hash %s, want %s", seed, g, want)
			}
			worldtest.CompareOutputs(t, worldtest.Firsts(w.Outputs), worldtest.Firsts(first.Outputs))
		}
	}
}

// TestOnlyTheModelWaits: while one model waits for a fit that does not end, another goes on. The task does not report
// that it has caught up.
func TestOnlyTheModelWaits(t *testing.T) {
	s := defaultSetup()
	s.model.Rules = nil
	w := newWorld(t, s, worldtest.Stream(t, twoModels(), 1, 20), 1)
	w.Hold(true)
	for w.Step(worldtest.AnyOrder) {
	}
	w.ReadPanes(len(w.Panes))
	m, other := w.Model.models["m"], w.Model.models["other"]
	if !w.Model.waiting["m"] || m.next >= w.Model.reached || other.next != w.Model.reached {
		t.Fatalf("m at pane %d, other at %d of %d: want m to wait and other to be there", m.next, other.next,
			w.Model.reached)
	}
	w.Model.Report(true, true)()
	if st := w.Model.Status(); st.CaughtUp || st.StateHash != nil {
		t.Errorf("status %+v: want not caught up", st)
	}
	if w.Model.Wake() == nil {
		t.Error("no wake-up although a model waits")
	}
	w.Finish()
	w.Model.Report(true, true)()
	if st := w.Model.Status(); !st.CaughtUp || st.StateHash == nil || len(w.Model.waiting) > 0 ||
		w.Model.Wake() != nil {
		t.Errorf("status %+v: want caught up, with a hash", st)
	}
}

// TestBacklogIsBounded: beyond its bound the task takes no message before the fit has ended.
func TestBacklogIsBounded(t *testing.T) {
	s := defaultSetup()
	s.model.Rules = nil
	w := newWorld(t, s, worldtest.Stream(t, twoModels(), 1, 20), 1)
	w.Hold(true)
	for w.Step(worldtest.AnyOrder) {
	}
	n := 0
	for ; !w.Model.waiting["m"]; n++ {
		w.Must(w.Model.Take(t.Context(), w.Panes[n]))
	}
	before := w.Model.backlog
	for ; w.Model.backlog == before; n++ {
		w.Must(w.Model.Take(t.Context(), w.Panes[n]))
	}
	w.Model.backlog = maxBacklog + 1
	taken := make(chan error)
	go func() { taken <- w.Model.Take(t.Context(), w.Panes[n]) }()
	w.Hold(false)
	w.Must(<-taken)
	if w.Model.backlog != 0 || w.Model.next != int64(n+1) {
		t.Errorf("backlog %d, next message %d; want 0, %d", w.Model.backlog, w.Model.next, n+1)
	}
}
