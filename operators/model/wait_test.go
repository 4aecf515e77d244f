package model

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
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
				if len(w.Model.turns.waiting) > 0 {
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
	if !w.Model.turns.waiting["m"] || m.next >= w.Model.shards.reached || other.next != w.Model.shards.reached {
		t.Fatalf("m at pane %d, other at %d of %d: want m to wait and other to be there", m.next, other.next,
			w.Model.shards.reached)
	}
	w.Model.Report(true, true)()
	if st := w.Model.Status(); st.CaughtUp || st.StateHash != nil {
		t.Errorf("status %+v: want not caught up", st)
	}
	if w.Model.Wake() == nil {
		t.Error("no wake-up although a model waits")
	}
	w.Finish()
	for i, active := range []bool{true, false, false} {
		w.Model.Report(true, active)()
		if hashed := w.Model.Status().StateHash != nil; hashed != (i == 2) {
			t.Errorf("report %d: state hash %t", i, hashed)
		}
	}
	if st := w.Model.Status(); !st.CaughtUp || len(w.Model.turns.waiting) > 0 ||
		w.Model.Wake() != nil {
		t.Errorf("status %+v: want caught up", st)
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
	for ; !w.Model.turns.waiting["m"]; n++ {
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

// pastAndGood gives a task a row of a model of months ago, which opens a window of a day, then rows of a good model,
// pane by pane. It calls settle after each.
func pastAndGood(t *testing.T, settle func(x *loaded)) *loaded {
	x := newModels(t, 0, 0, 0)
	const k, recent = 4, 1_000_000
	rows := func(model string, panes ...int64) {
		n := len(panes)
		b := &arrowio.Batch{Kind: arrowio.Predictions, N: n, K: k, TS: make([]int64, n), Label: make([]int32, n),
			Models: []arrowio.ModelKey{{Model: model, Version: "1"}}, Scores: make([]float32, n*k),
			IDs: make([]arrowio.ID, n)}
		for i, pane := range panes {
			b.IDs[i] = arrowio.HashID(fmt.Sprint(model, pane))
			b.TS[i], b.Scores[i*k] = pane*x.task.cfg.Pane, 3
		}
		emit := func(*arrowio.Batch) (pipeline.Rejects, error) { return nil, nil }
		if _, err := x.stats.Process(t.Context(), b, emit); err != nil {
			t.Fatal(err)
		}
	}
	rows("a-past", 1000) // first in order
	for pane := range int64(3) {
		rows("good", recent+pane, recent+pane)
		x.take(t, recent+pane)
		settle(x)
	}
	return x
}

// TestRowsOfLongAgoHoldNobodyUp: a model with rows of years ago has its panes processed between those of others, and
// its state is the same as if they had waited for it.
func TestRowsOfLongAgoHoldNobodyUp(t *testing.T) {
	testsize.Slow(t)
	settled := func(x *loaded) {
		if err := x.task.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := pastAndGood(t, settled)
	got := pastAndGood(t, func(x *loaded) {
		good, past := x.task.models["good"], x.task.models["a-past"]
		there := good.next == x.task.shards.reached && past.next < x.task.shards.reached
		if !there || !x.task.turns.behind["a-past"] {
			t.Errorf("good at pane %d, the other at %d: want good at %d", good.next, past.next, x.task.shards.reached)
		}
		select {
		case <-x.task.Wake():
		default:
			t.Error("the task does not go on by itself")
		}
		before := past.next
		if err := x.task.Resume(); err != nil {
			t.Fatal(err)
		}
		if past.next <= before {
			t.Error("a turn of the model did nothing")
		}
		c, err := pipeline.EncodeCheckpoint(x.task.Sections())
		if err != nil {
			t.Fatal(err)
		}
		x.task = NewTask(x.task.cfg, 0, pipeline.NewCounts(), quiet) // a restart
		if err := pipeline.RestoreCheckpoint(c.Data, x.task.Sections(), nil); err != nil {
			t.Fatal(err)
		}
	})
	settled(got)
	for _, name := range []string{"a-past", "good"} {
		a, err := want.task.models[name].append(nil, want.task.cfg.table, false)
		b, err2 := got.task.models[name].append(nil, got.task.cfg.table, false)
		if err = errors.Join(err, err2); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: another state of %d bytes, want %d (%v)", name, len(b), len(a), err)
		}
	}
	if len(got.task.turns.waiting)+len(got.task.turns.behind) > 0 || got.task.Wake() != nil {
		t.Error("the task waits for nothing")
	}
}

// TestTurns: models that are behind have turns by name, one after the other, whoever comes or leaves between. Those
// that wait for a fit have none.
func TestTurns(t *testing.T) {
	q := turns{waiting: map[string]bool{}, behind: map[string]bool{}}
	for _, c := range []struct{ behind, waits, leaves, want string }{
		{"b", "a", "", "b"}, {"", "", "", "b"}, {"d", "", "", "d"}, {"c", "", "", "b"}, {"", "", "b", "c"},
		{"", "", "c", "d"}, {"a", "", "", "a"},
	} {
		if c.behind != "" {
			q.wait(c.behind, true)
		}
		if c.waits != "" {
			q.wait(c.waits, false)
		}
		q.leave(c.leaves)
		if got := q.next(); got != c.want || !q.waiting[got] {
			t.Errorf("%+v: the turn of %q, behind %v", c, got, q.behind)
		}
	}
}
