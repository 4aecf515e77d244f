package model

import (
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
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
		in := stream(t, rows, 2, 20)
		if late {
			// Increments come late while their model waits.
			for i, part := range batchtest.Split(rows, 2) {
				in[i] = lanes{batchtest.Predictions(t, displaced(part, 60), 10),
					batchtest.Labels(t, displaced(batchtest.ByLabelTime(part), 60), 10)}
			}
		}
		first := newWorld(t, s, in, 1).run(anyOrder)
		if c := decodeAll[record.Calibrator](t, first.outputs, pipeline.StreamCalibrators); len(c) < 2 {
			t.Fatalf("%d calibrators were published, want one for each version", len(c))
		}
		if n := first.counts()["late"]; late != (n > 0) {
			t.Fatalf("%d late rows", n)
		}
		// The same panes log, so that the same rows are late, is read with other timings of fits and checkpoints.
		for seed := range uint64(4) {
			w := newWorld(t, s, nil, seed)
			w.panes, w.slow = first.panes, 1
			w.hold(true)
			waited := 0
			for int(max(w.model.next, 0)) < len(w.panes) {
				w.readPanes(1 + w.r.IntN(20))
				if seed < 3 && w.r.IntN(8) == 0 {
					w.hold(!w.held)
				}
				if len(w.model.waiting) > 0 {
					waited++
				}
				if w.r.IntN(6) == 0 {
					w.saveModel()
				}
				if w.r.IntN(9) == 0 && w.savedModel != nil {
					w.must(w.model.Close())
					w.model = w.setup.task()
					w.must(pipeline.RestoreCheckpoint(w.savedModel, w.model.Sections(), nil))
				}
			}
			w.finish()
			if waited == 0 && seed == 3 {
				t.Error("no model ever waited: nothing was tested")
			}
			if g, want := w.hash(), first.hash(); g != want {
				t.Errorf("seed %d: state hash %s, want %s", seed, g, want)
			}
			compareOutputs(t, firsts(w.outputs), firsts(first.outputs))
		}
	}
}

// TestOnlyTheModelWaits: while one model waits for a fit that does not end, another goes on. The task does not report
// that it has caught up.
func TestOnlyTheModelWaits(t *testing.T) {
	s := defaultSetup()
	s.model.Rules = nil
	w := newWorld(t, s, stream(t, twoModels(), 1, 20), 1)
	w.hold(true)
	for w.step(anyOrder) {
	}
	w.readPanes(len(w.panes))
	m, other := w.model.models["m"], w.model.models["other"]
	if !w.model.waiting["m"] || m.next >= w.model.reached || other.next != w.model.reached {
		t.Fatalf("m at pane %d, other at %d of %d: want m to wait and other to be there", m.next, other.next,
			w.model.reached)
	}
	w.model.Report(true, true)()
	if st := w.model.Status(); st.CaughtUp || st.StateHash != nil {
		t.Errorf("status %+v: want not caught up", st)
	}
	if w.model.Wake() == nil {
		t.Error("no wake-up although a model waits")
	}
	w.finish()
	w.model.Report(true, true)()
	if st := w.model.Status(); !st.CaughtUp || st.StateHash == nil || len(w.model.waiting) > 0 ||
		w.model.Wake() != nil {
		t.Errorf("status %+v: want caught up, with a hash", st)
	}
}

// TestBacklogIsBounded: beyond its bound the task takes no message before the fit has ended.
func TestBacklogIsBounded(t *testing.T) {
	s := defaultSetup()
	s.model.Rules = nil
	w := newWorld(t, s, stream(t, twoModels(), 1, 20), 1)
	w.hold(true)
	for w.step(anyOrder) {
	}
	n := 0
	for ; !w.model.waiting["m"]; n++ {
		w.must(w.model.Take(t.Context(), w.panes[n]))
	}
	before := w.model.backlog
	for ; w.model.backlog == before; n++ {
		w.must(w.model.Take(t.Context(), w.panes[n]))
	}
	w.model.backlog = maxBacklog + 1
	taken := make(chan error)
	go func() { taken <- w.model.Take(t.Context(), w.panes[n]) }()
	w.hold(false)
	w.must(<-taken)
	if w.model.backlog != 0 || w.model.next != int64(n+1) {
		t.Errorf("backlog %d, next message %d; want 0, %d", w.model.backlog, w.model.next, n+1)
	}
}
