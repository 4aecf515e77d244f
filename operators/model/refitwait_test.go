package model

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// twoModels are rows of models "m" and "other", of which "m" alone has enough for refits.
func twoModels() []batchtest.Row {
	rows := batchtest.Rows(71, batchtest.Options{N: 2500, MaxLag: 5 * second, Sharpness: 2.5})
	return append(rows, batchtest.Rows(72, batchtest.Options{N: 125, Step: 2 * second, MaxLag: 5 * second, Model: "other"})...)
}

// TestSlowFitsLeaveNoTrace lets fits end at random, late or only after the stream's end: every output and the state are
// those of a run whose fits are done at once.
func TestSlowFitsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(73, batchtest.Options{N: 3000, MaxLag: 20 * second, Sharpness: 2.5, Versions: []string{"a", "b"}, Weights: true})
	for _, late := range []bool{false, true} {
		s := defaultSetup()
		s.model.Refit.Method = "auto"
		in := stream(t, rows, 2, 20)
		if late {
			// Increments that come late while their model waits.
			for i, part := range batchtest.Split(rows, 2) {
				in[i] = lanes{batchtest.Predictions(t, displaced(part, 60), 10), batchtest.Labels(t, displaced(batchtest.ByLabelTime(part), 60), 10)}
			}
		}
		first := newWorld(t, s, in, 1).run(anyOrder)
		if c := decodeAll[record.Calibrator](t, first.outputs, pipeline.StreamCalibrators); len(c) < 2 {
			t.Fatalf("%d calibrators were published, want one for each version", len(c))
		}
		if n := first.counts()["late"]; late != (n > 0) {
			t.Fatalf("%d late rows", n)
		}
		// The one panes log, so that the same rows are late, read under other timings of fits and checkpoints.
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

// TestOnlyTheModelWaits: while a model waits for a fit that does not end, another one goes on, and the task does not say
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
		t.Fatalf("m at pane %d, other at %d of %d: want m to wait and other to be there", m.next, other.next, w.model.reached)
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
	if st := w.model.Status(); !st.CaughtUp || st.StateHash == nil || len(w.model.waiting) > 0 || w.model.Wake() != nil {
		t.Errorf("status %+v: want caught up, with a hash", st)
	}
}

// TestBacklogIsBounded: past its bound the task takes no message before the fit is done.
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

// TestFailedFitIsRecorded: a fit that fails or panics is a "no change" with its error, and no more.
func TestFailedFitIsRecorded(t *testing.T) {
	rows := sample(batchtest.Rows(74, batchtest.Options{N: 300}))
	s := defaultSetup()
	s.model.Refit.Delay = 1
	for method, want := range map[string]string{"no such method": "no such method", "temperature": "panic: "} {
		task := s.task()
		v := &version{Version: stage.Version{Model: "m", Name: "v", K: 4}, keys: map[string]*keyState{}}
		k := v.key("", &task.cfg)
		task.cfg.Refit.Method = method
		fit := append([]acc.SampleRow(nil), rows...)
		if err := task.begin(v, k, fit, reasonPeriod, &stage.Pane{Index: 10, End: 11 * s.model.Pane}); err != nil {
			t.Fatal(err)
		}
		if method == "temperature" {
			panicked := &fitJob{done: make(chan struct{}), results: []fitResult{guarded(method, func() (fitResult, error) { panic("index out of range") })}}
			close(panicked.done)
			task.jobs[v] = panicked
		}
		if err := task.stepTrial(v, k, &stage.Pane{Index: 11, End: 12 * s.model.Pane, Labelled: 1}); err != nil {
			t.Fatal(err)
		}
		d := decodeAll[record.Calibrator](t, task.Outputs(), pipeline.StreamDecisions)
		if len(d) != 1 || d[0].Published || !strings.Contains(d[0].Outcome, want) || len(d[0].Evidence.Candidates) != 1 || !strings.Contains(d[0].Evidence.Candidates[0].Outcome, want) {
			t.Errorf("%s: decisions %+v, want one without a change that says %q", method, d, want)
		}
		if v.refit.trial != nil {
			t.Errorf("%s: the refit goes on", method)
		}
	}
}

// TestCancelledFitsEnd: a task that is closed leaves nobody behind who fits for nobody.
func TestCancelledFitsEnd(t *testing.T) {
	p := NewFitPool(1)
	p.slots <- struct{}{}
	j := newFitJob([]string{"temperature"}, sample(batchtest.Rows(75, batchtest.Options{N: 300})), 4, 1, 0)
	p.start(j, make(chan struct{}, 1))
	j.cancelled.Store(true)
	<-p.slots
	<-j.done
	if len(j.results) != 0 {
		t.Errorf("%d results of a fit that nobody wants", len(j.results))
	}
}
