package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
)

// clocked is a model that begins after a while and whose clock is wrong by off.
type clocked struct {
	model            string
	after, off, step int64
	n                int
}

var clockedModels = []clocked{{"good", 0, 0, second / 4, 700}, {"ahead", 0, 20 * second, second / 3, 500},
	{"slow", 0, -30 * second, second / 2, 400}, {"new", 70 * second, -35 * second, second / 2, 200}}

func (c *clocked) rows(seed uint64) []batchtest.Row {
	return batchtest.Rows(seed, batchtest.Options{N: c.n, Model: c.model, Step: c.step,
		Start: batchtest.Start + c.after + c.off, MaxLag: 20 * second, Sharpness: 2})
}

// arriving are the rows of models in the order in which they are sent, by the true time that at tells, but for a
// shuffle within short of the allowed lateness.
func arriving(rows []batchtest.Row, at func(*batchtest.Row) int64, within int64) []batchtest.Row {
	r := rand.New(rand.NewPCG(5, 5))
	jitter := map[string]int64{}
	for i := range rows {
		jitter[rows[i].ID] = r.Int64N(within)
	}
	out := slices.Clone(rows)
	slices.SortStableFunc(out, func(a, b batchtest.Row) int {
		return int((at(&a) + jitter[a.ID]) - (at(&b) + jitter[b.ID]))
	})
	return out
}

// clockedLanes are the records of several models, in the order in which they were sent.
func clockedLanes(t *testing.T, models []clocked, shards, batch int) []worldtest.Lanes {
	t.Helper()
	var rows []batchtest.Row
	off := map[string]int64{}
	for i := range models {
		rows = append(rows, models[i].rows(uint64(models[i].model[0]))...)
		off[models[i].model] = models[i].off
	}
	sent := arriving(rows, func(r *batchtest.Row) int64 { return r.TS - off[r.Model] }, 10*second)
	labels := arriving(rows, func(r *batchtest.Row) int64 { return r.LabelTS - off[r.Model] }, 10*second)
	byShard := batchtest.Split(labels, shards)
	out := make([]worldtest.Lanes, shards)
	for i, part := range batchtest.Split(sent, shards) {
		out[i] = worldtest.Lanes{batchtest.Predictions(t, part, batch), batchtest.Labels(t, byShard[i], batch)}
	}
	return out
}

// outputsOf are the outputs of one model, by stream and key.
func outputsOf(w *world, model string) map[string][]string {
	out := worldtest.Firsts(w.Outputs)
	for lane := range out {
		if _, key, _ := strings.Cut(lane, " "); !strings.HasPrefix(key, model) {
			delete(out, lane)
		}
	}
	return out
}

// TestNoModelMakesAnotherLate runs models whose clocks differ by much more than the allowed lateness in the same
// shards: over 1, 2 and 4 of them, in other orders of the topics, and through crashes. Every model has the outputs that
// it has alone, byte for byte, and no row is late.
func TestNoModelMakesAnotherLate(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	s := defaultSetup()
	s.lateness, s.apart = 20*second, 60*second
	alone := map[string]map[string][]string{}
	for _, m := range clockedModels {
		w := newWorld(t, s, clockedLanes(t, []clocked{m}, 1, 20), 1).run(worldtest.AnyOrder)
		if alone[m.model] = outputsOf(w, m.model); len(alone[m.model]) < 2 || w.Counts()["late"] != 0 {
			t.Fatalf("%s alone: %d lanes of outputs, counts %v", m.model, len(alone[m.model]), w.Counts())
		}
	}
	for _, c := range []struct {
		name          string
		models        int
		shards, batch int
		order         worldtest.Pick
		crash         float64
		cells         int
	}{
		{"one shard", 4, 1, 20, worldtest.AnyOrder, 0, 0},
		{"cells that go out early", 4, 2, 20, worldtest.AnyOrder, .02, 1},
		// Labels that begin later than models wait for each other are not waited for: without the model that is new.
		{"logits first", 3, 1, 7, worldtest.LogitsFirst, 0, 0},
		{"labels first", 4, 2, 20, worldtest.LabelsFirst, 0, 0},
		{"two shards", 4, 2, 5, worldtest.AnyOrder, 0, 0},
		{"four shards", 4, 4, 20, worldtest.InTurn, 0, 0},
		{"one shard, crashes", 4, 1, 20, worldtest.AnyOrder, .02, 0},
		{"four shards, crashes", 4, 4, 10, worldtest.AnyOrder, .02, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			models, s := clockedModels[:c.models], s
			s.cells = c.cells
			w := newWorld(t, s, clockedLanes(t, models, c.shards, c.batch), uint64(c.shards))
			if w.Crash = c.crash; c.crash > 0 {
				w.Save = .1
			}
			w.run(c.order)
			if n := w.Counts()["late"]; n != 0 {
				t.Errorf("%d late rows: %v", n, w.Counts())
			}
			for _, m := range models {
				worldtest.CompareOutputs(t, outputsOf(w, m.model), alone[m.model])
			}
		})
	}
}

// TestFirstRowsOfAModel has a model begin beside another that is ahead: with one message over several panes in one
// shard, and in the other shard after the model task has had all of that. Cells go out when their panes are closed, and
// as soon as they are there.
func TestFirstRowsOfAModel(t *testing.T) {
	for _, cells := range []int{0, 1} {
		t.Run(fmt.Sprint(cells), func(t *testing.T) { firstRowsOfAModel(t, cells) })
	}
}

func firstRowsOfAModel(t *testing.T, cells int) {
	s := defaultSetup()
	s.cells = cells
	s.inputs, s.lateness, s.apart = 1, 10*second, 60*second
	old := func(from, n int) []batchtest.Row {
		return batchtest.Rows(uint64(from+1), batchtest.Options{N: n, Start: batchtest.Start + int64(from)*second,
			Step: second / 2})
	}
	begins := batchtest.Rows(77, batchtest.Options{N: 200, Model: "b", Start: batchtest.Start - 15*second,
		Step: second / 4})
	lanes := func(parts ...[]batchtest.Row) []worldtest.Lanes {
		out := make([]worldtest.Lanes, 2)
		for _, rows := range parts {
			for i, part := range batchtest.Split(rows, 2) {
				for _, r := range batchtest.Inline(t, part, 1000) {
					r.Offset = int64(len(out[i][0]))
					out[i][0] = append(out[i][0], r)
				}
			}
		}
		return out
	}
	want := outputsOf(newWorld(t, s, lanes(begins), 1).run(worldtest.AnyOrder), "b")
	w := newWorld(t, s, lanes(old(0, 120), begins, old(60, 120)), 1)
	for _, step := range [][2]int{{1, 0}, {0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}} {
		w.Must(w.Shards[step[0]].Take(context.Background(), w.In[step[0]][0][step[1]]))
		w.WritePanes(w.Shards[step[0]])
		w.ReadPanes(len(w.Panes))
	}
	w.run(worldtest.AnyOrder)
	if n, m := w.Counts()["late"], w.Model.counts.All()["late"]; n != 0 || m != 0 {
		t.Errorf("late rows: %d in shards, %d in the model task", n, m)
	}
	got := outputsOf(w, "b")
	for lane := range got { // beside another the model is evaluated further than its own rows go
		got[lane] = got[lane][:min(len(got[lane]), len(want[lane]))]
	}
	worldtest.CompareOutputs(t, got, want)
}

// TestSilentModel has one of two models end: it is evaluated up to the time that models wait for each other, and holds
// back neither the other nor what waits in the join. A slow one is followed while its rows come.
func TestSilentModel(t *testing.T) {
	s := defaultSetup()
	s.inputs, s.apart = 1, 60*second
	rows := func(model string, start int64, n int) []batchtest.Row {
		return batchtest.Rows(uint64(model[0]), batchtest.Options{N: n, Model: model, Start: batchtest.Start + start,
			Step: second})
	}
	goes, ends, slow := rows("goes", 0, 600), rows("ends", 0, 100), rows("slow", -300*second, 500)
	var in []pipeline.Record
	for at := 0; at < 600; at += 10 {
		for _, m := range [][]batchtest.Row{goes, ends, slow} {
			if at < len(m) {
				r := batchtest.Inline(t, m[at:at+10], 10)[0]
				r.Offset = int64(len(in))
				in = append(in, r)
			}
		}
	}
	w := newWorld(t, s, []worldtest.Lanes{{in}}, 1)
	for _, r := range in {
		w.Must(w.Shards[0].Take(context.Background(), r))
	}
	w.WritePanes(w.Shards[0])
	w.ReadPanes(len(w.Panes))
	reached := func(model string) int64 { return w.Model.models[model].reached - batchtest.Start/s.model.Pane }
	// The last row of "goes" is at 599 s, and that of "slow", which ends after 500 rows, at 199 s.
	if g, e, sl := reached("goes"), reached("ends"), reached("slow"); g != 59 || e != 53 || sl != 53 {
		t.Errorf("panes: goes %d, ends %d, slow %d; want 59, 53, 53", g, e, sl)
	}
	clock := w.Shards[0].Watermark
	if least := clock.Clocks.Least(s.model.Pane); least < clock.Now()-s.apart {
		t.Errorf("what waits waits for %d s more than the watermark", (clock.Now()-least)/second)
	}
	if n := w.Counts()["late"]; n != 0 {
		t.Errorf("%d late rows: %v", n, w.Counts())
	}
}
