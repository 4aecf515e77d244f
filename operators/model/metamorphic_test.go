package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/pipeline"
)

// TestSplitAndOrderLeaveNoTrace runs the same rows with other numbers of shards, batch sizes and orders of the two
// topics. The state hash and every output must have the same bytes.
func TestSplitAndOrderLeaveNoTrace(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(3, batchtest.Options{N: 800, MaxLag: 50 * second, Unlabelled: .1, Sharpness: 2, Regions: 3,
		Weights: true, Served: true})
	s := defaultSetup()
	s.slices = []string{"region"}
	var want *world
	for _, c := range []struct {
		name          string
		shards, batch int
		order         worldtest.Pick
	}{
		{"one shard", 1, 64, worldtest.AnyOrder},
		{"batches of two", 1, 2, worldtest.AnyOrder},
		{"logits first", 1, 100, worldtest.LogitsFirst},
		{"labels first", 1, 100, worldtest.LabelsFirst},
		{"two shards", 2, 30, worldtest.AnyOrder},
		{"five shards, labels first", 5, 1000, worldtest.LabelsFirst},
		{"nine shards", 9, 7, worldtest.AnyOrder},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.shards > 2 {
				testsize.Slow(t)
			}
			w := newWorld(t, s, worldtest.Stream(t, rows, c.shards, c.batch), uint64(c.shards+c.batch)).run(c.order)
			if want == nil {
				want = w
				return
			}
			w.compare(want)
		})
	}
}

// TestCellsThatGoOutEarlyLeaveNoTrace bounds the cells of shards so that a label pane goes out in up to as many parts
// as it has blocks of rows, before it is closed. The state hash and every output have the same bytes as where each pane
// goes out once, whatever the slices and the crashes.
func TestCellsThatGoOutEarlyLeaveNoTrace(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(3, batchtest.Options{N: 800, MaxLag: 50 * second, Unlabelled: .1, Sharpness: 2, Regions: 3,
		Weights: true, Served: true})
	for _, c := range []struct {
		name  string
		setup setup
		rows  []batchtest.Row
	}{
		{"few slices", defaultSetup(), rows},
		{"more values than slots", manySetup(3), manyValues(slices.Clone(rows), 60)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.setup
			s.slices = []string{"region"}
			want := newWorld(t, s, worldtest.Stream(t, c.rows, 2, 30), 1).run(worldtest.AnyOrder)
			messages := len(want.Panes)
			for _, cells := range []int{1, 64 << 10} {
				for _, crash := range []float64{0, .05} {
					s.cells = cells
					w := newWorld(t, s, worldtest.Stream(t, c.rows, 2, 30), 2)
					w.Save, w.Crash = .2, crash
					w.run(worldtest.AnyOrder)
					t.Logf("%d bytes of cells: %d pane messages, %d without a bound", cells, len(w.Panes), messages)
					if cells == 1 && len(w.Panes) < 2*messages {
						t.Errorf("%d pane messages, want twice the %d without a bound", len(w.Panes), messages)
					}
					if got, hash := w.Hash(), want.Hash(); got != hash {
						t.Errorf("%d bytes of cells: state hash %s, want %s", cells, got, hash)
					}
					worldtest.CompareOutputs(t, worldtest.Firsts(w.Outputs), worldtest.Firsts(want.Outputs))
				}
			}
		})
	}
}

// TestSnapshotsThatAreNotMadeLeaveNoTrace: where nobody reads snapshots, the state hash and every other output have the
// same bytes, also with what only snapshots and corrections bring up to date.
func TestSnapshotsThatAreNotMadeLeaveNoTrace(t *testing.T) {
	t.Parallel()
	sliced := defaultSetup()
	sliced.slices, sliced.model.Alarm = []string{"region"}, testAlarm()
	corrected := classSetup()
	corrected.model.Refit.LabelShift, corrected.model.Refit.FreshRows = refit.ShiftAtOnce, 1000
	for _, c := range []struct {
		name  string
		setup setup
		rows  []batchtest.Row
	}{
		{"slices", sliced, batchtest.Rows(3, batchtest.Options{N: 800, MaxLag: 50 * second, Unlabelled: .1,
			Sharpness: 2, Regions: 3, Weights: true, Served: true})},
		{"a row in six panes", defaultSetup(), batchtest.Rows(4, batchtest.Options{N: 200, Step: 60 * second})},
		{"class weights", corrected, shiftedRows(5, shiftedRows(6, nil, 3000, evenShares, 20*second), 2000,
			movedShares, 20*second)},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := worldtest.Stream(t, c.rows, 1, 50)
			want := newWorld(t, c.setup, in, 1).run(worldtest.AnyOrder)
			c.setup.model.Unseen = true
			w := newWorld(t, c.setup, in, 2).run(worldtest.AnyOrder)
			if got, hash := w.Hash(), want.Hash(); got != hash {
				t.Errorf("state hash %s, want %s", got, hash)
			}
			snapshots := len(want.Snapshots())
			of := func(m pipeline.Message) bool { return m.Stream == pipeline.StreamSnapshots }
			others := slices.DeleteFunc(slices.Clone(want.Outputs), of)
			if len(others) == 0 || snapshots == 0 {
				t.Errorf("%d snapshots, %d other outputs: nothing tested", snapshots, len(others))
			}
			worldtest.CompareOutputs(t, worldtest.Firsts(w.Outputs), worldtest.Firsts(others))
		})
	}
}

// TestFewRowsOverManyShards leaves most shards without a single row.
func TestFewRowsOverManyShards(t *testing.T) {
	rows := batchtest.Rows(4, batchtest.Options{N: 5, Step: 25 * second})
	s := defaultSetup()
	want := newWorld(t, s, worldtest.Stream(t, rows, 1, 10), 1).run(worldtest.AnyOrder)
	if len(want.Snapshots()) == 0 {
		t.Fatal("no snapshot of five rows in one shard")
	}
	got := newWorld(t, s, worldtest.Stream(t, rows, 16, 10), 2).run(worldtest.AnyOrder)
	got.compare(want)
}

// TestLateRowsAreInEverySum shuffles the rows of both topics, so that many come after their panes were emitted. The
// final windows must have the same sums as a stream in order.
func TestLateRowsAreInEverySum(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(5, batchtest.Options{N: 800, MaxLag: 20 * second, Unlabelled: .1, Sharpness: 2, Regions: 2})
	s := defaultSetup()
	s.slices = []string{"region"}
	s.join.Wait = time.Hour
	s.model.FinalAfter = 3600 * second
	s.model.Refit.Method = "none" // another calibrator may be in force when a late row comes
	// Much later rows make every window final.
	tail := batchtest.Rows(6, batchtest.Options{N: 40, Start: batchtest.Start + 3*3600*second, Step: second,
		Regions: 1})
	ordered := newWorld(t, s, worldtest.Stream(t, append(rows, tail...), 2, 10), 1).run(worldtest.AnyOrder)
	shuffled := displaced(rows, 200)
	in := make([]worldtest.Lanes, 2)
	for i, part := range batchtest.Split(append(shuffled, tail...), 2) {
		in[i] = worldtest.Lanes{batchtest.Predictions(t, part, 10),
			batchtest.Labels(t, append(displaced(batchtest.ByLabelTime(part[:len(part)-len(batchtest.Split(tail,
				2)[i])]), 200), batchtest.ByLabelTime(batchtest.Split(tail, 2)[i])...), 10)}
	}
	late := newWorld(t, s, in, 2).run(worldtest.AnyOrder)
	if n := late.Counts()["late"]; n == 0 {
		t.Fatal("no late rows: nothing tested")
	}
	for _, name := range []string{"predictions", "labels", "joined", "labelled"} {
		if g, w := late.Counts()[name], ordered.Counts()[name]; g != w {
			t.Errorf("%s = %d, want %d", name, g, w)
		}
	}
	got, want := late.Finals(), ordered.Finals()
	for key, w := range want {
		g := got[key]
		// The seed of the resampled interval is the pane of the snapshot, which differs. The lag and all sums come from
		// the rows.
		w.Raw.ECENull, w.Raw.ECENullHi, w.Raw.ECELo, w.Raw.ECEHi = g.Raw.ECENull, g.Raw.ECENullHi, g.Raw.ECELo,
			g.Raw.ECEHi
		if g.Predictions != w.Predictions || g.Labelled != w.Labelled || !reflect.DeepEqual(g.Lag, w.Lag) ||
			!reflect.DeepEqual(g.Raw, w.Raw) {
			t.Errorf("%s: %d predictions, %d labelled, want %d, %d; raw\n%+v, want\n%+v", key, g.Predictions,
				g.Labelled, w.Predictions, w.Labelled, g.Raw, w.Raw)
		}
	}
	if len(want) < 10 || len(got) != len(want) {
		t.Errorf("%d windows, want %d (10 or more)", len(got), len(want))
	}
	n := int64(0)
	for _, s := range late.Snapshots() {
		if s.Window.Name == "tumbling" && s.Slice == "" && s.Window.Final {
			n += s.Late
		}
	}
	if want := late.Counts()["late"]; n == 0 || n > want {
		t.Errorf("windows report %d late rows, shards counted %d", n, want)
	}
}

// TestShardThatWakesUp lets one of two shards become idle, lets the model go on without it, and then brings its rows.
// They count as late, and every one is in the sums.
func TestShardThatWakesUp(t *testing.T) {
	rows := batchtest.Rows(7, batchtest.Options{N: 600, MaxLag: 20 * second})
	s := defaultSetup()
	s.model.Refit.Method = "none"
	in := worldtest.Stream(t, rows, 2, 10)
	w := newWorld(t, s, in, 1)
	sleeper, other := w.Shards[0], w.Shards[1]
	idle := func(sh *pipeline.Shard) {
		for in := range s.inputs {
			w.Must(sh.Take(context.Background(), pipeline.Record{Input: pipeline.Input(in), Idle: true}))
		}
	}
	feed := func(i int, from, to [2]int) {
		for l := range 2 {
			for _, r := range in[i][l][from[l]:to[l]] {
				w.Must(w.Shards[i].Take(context.Background(), r))
			}
		}
		w.WritePanes(w.Shards[i])
		w.ReadPanes(len(w.Panes))
	}
	end := func(i int) [2]int { return [2]int{len(in[i][0]), len(in[i][1])} }
	feed(0, [2]int{}, [2]int{10, 10})
	idle(sleeper)
	feed(0, [2]int{10, 10}, [2]int{10, 10})
	feed(1, [2]int{}, end(1))
	reached := w.Model.shards.barrier()
	if want := pipeline.PaneIndex(other.Watermark.Now(), s.model.Pane); reached != want {
		t.Fatalf("barrier %d with the other shard idle, want %d", reached, want)
	}
	feed(0, [2]int{10, 10}, end(0))
	if got := w.Model.shards.barrier(); got < reached {
		t.Errorf("barrier fell from %d to %d", reached, got)
	}
	w.Drained[0], w.Drained[1] = false, false
	w.run(worldtest.AnyOrder)
	k := w.Model.models["m"].versions["v1"].keys[""]
	if k.Labelled != 600 || k.LateRows == 0 || len(k.pending) != 0 {
		t.Errorf("%d labelled rows, %d late, %d panes left over; want 600, some, 0", k.Labelled, k.LateRows,
			len(k.pending))
	}
}

// displaced shuffles rows within blocks of n.
func displaced(rows []batchtest.Row, n int) []batchtest.Row {
	out := append([]batchtest.Row(nil), rows...)
	r := rand.New(rand.NewPCG(9, 9))
	for len(rows) > 0 {
		b := out[len(out)-len(rows):]
		b = b[:min(n, len(b))]
		r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		rows = rows[len(b):]
	}
	return out
}

func TestSeedsDiffer(t *testing.T) {
	if a, b := fmt.Sprint(batchtest.Rows(1, batchtest.Options{N: 3})), fmt.Sprint(batchtest.Rows(2,
		batchtest.Options{N: 3})); a == b {
		t.Error("two seeds give the same rows")
	}
}

// TestPauseLeavesNoTrace lets every input become idle half way. Rows that come later must find the same state as in a
// stream without a pause.
func TestPauseLeavesNoTrace(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(8, batchtest.Options{N: 1200, MaxLag: 20 * second, Sharpness: 2, Unlabelled: .1})
	for i := 700; i < len(rows); i++ {
		rows[i].TS += 60 * second
		rows[i].LabelTS += 60 * second
	}
	s := defaultSetup()
	whole, first := worldtest.Stream(t, rows, 2, 10), worldtest.Stream(t, rows[:700], 2, 10)
	want := newWorld(t, s, whole, 1).run(worldtest.AnyOrder)
	got := newWorld(t, s, first, 2).run(worldtest.AnyOrder)
	rest := worldtest.Stream(t, rows[700:], 2, 10)
	for i := range got.In {
		for l := range got.In[i] {
			for _, r := range rest[i][l] {
				r.Offset = int64(len(got.In[i][l]))
				got.In[i][l] = append(got.In[i][l], r)
			}
		}
		got.Drained[i] = false
	}
	got.run(worldtest.AnyOrder).compare(want)
}

// TestIdleIsTakenBack: a shard that wakes up reports that at once. A shard that nobody reads is not idle.
func TestIdleIsTakenBack(t *testing.T) {
	s := defaultSetup()
	in := worldtest.Stream(t, batchtest.Rows(9, batchtest.Options{N: 20, Step: second}), 1, 10)
	w := newWorld(t, s, in, 1)
	sh := w.Shards[0]
	expectIdle := func(idle bool) {
		t.Helper()
		ms := sh.Decided().After
		if len(ms) == 0 || !sh.Decided().Dirty {
			t.Fatal("nothing to tell")
		}
		m, err := pipeline.DecodePane(ms[len(ms)-1].Value)
		if err != nil || !m.Punctuation || m.Idle != idle {
			t.Errorf("punctuation %+v, %v, want idle = %v", m, err, idle)
		}
		sh.Written()
	}
	idle := func() {
		t.Helper()
		for in := range s.inputs {
			w.Must(sh.Take(context.Background(), pipeline.Record{Input: pipeline.Input(in), Idle: true}))
		}
	}
	idle()
	expectIdle(true)
	w.Must(sh.Take(context.Background(), in[0][0][0]))
	if !sh.Decided().Full {
		t.Error("the news that the shard is awake waits for the checkpoint's time")
	}
	expectIdle(false)
	if sh.Decided().Full {
		t.Error("full after everything was written")
	}
	idle()
	expectIdle(true)
	idle()
	if len(sh.Decided().After) != 0 {
		t.Error("idle twice is no news")
	}
	sh.Closing()
	expectIdle(false)
	sh.Closing()
	if len(sh.Decided().After) != 0 {
		t.Error("closing twice is no news")
	}
}
