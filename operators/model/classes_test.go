package model

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// classes is a model task with shards that are only their statistics.
type classes struct {
	t              *testing.T
	cfg            Config
	task           *Task
	shards         []*stats.Operator
	boxes          []*pipeline.Outbox
	log            []pipeline.Record
	out            []pipeline.Message
	model, version string
}

func newClasses(t *testing.T, shards int) *classes {
	s := defaultSetup()
	s.model.Windows, s.model.Rules, s.model.Refit.Method = s.model.Windows[:1], nil, "none"
	x := &classes{t: t, cfg: s.model, task: s.task(), model: "m", version: "1"}
	for i := range shards {
		box := pipeline.NewOutbox(i, shards, s.model.Pane, 1)
		x.boxes = append(x.boxes, box)
		x.shards = append(x.shards, stats.New(stats.Options{Acc: s.model.Acc, Pane: s.model.Pane},
			pipeline.Host{Outbox: box, Counts: pipeline.NewCounts()}))
	}
	return x
}

// rows are labelled predictions of a pane, of K classes.
func (x *classes) rows(shard int, pane int64, k, n int) {
	b := &arrowio.Batch{N: n, K: k, Models: []arrowio.ModelKey{{Model: x.model, Version: x.version}},
		IDs: make([]arrowio.ID, n),
		TS:  make([]int64, n), Label: make([]int32, n), Scores: make([]float32, n*k)}
	for i := range n {
		b.IDs[i] = arrowio.HashID(fmt.Sprint(k, shard, pane, i))
		b.TS[i], b.Label[i] = pane*x.cfg.Pane+int64(i), int32(i%k)
		b.Scores[i*k+(i*i)%k] = 2
	}
	if _, err := x.shards[shard].Process(context.Background(), b, func(*arrowio.Batch) (pipeline.Rejects, error) {
		return nil, nil
	}); err != nil {
		x.t.Fatal(err)
	}
}

// end closes a pane in all shards and gives the task what they say, the first shard's first or last.
func (x *classes) end(pane int64, reversed bool) {
	var ms []pipeline.Message
	for i := range x.shards {
		if reversed {
			i = len(x.shards) - 1 - i
		}
		if err := x.shards[i].Advance(context.Background(), (pane+1)*x.cfg.Pane, nil); err != nil {
			x.t.Fatal(err)
		}
		x.boxes[i].Punctuate(pipeline.Punctuation{Closed: pane + 1})
		ms = append(ms, x.boxes[i].Pending()...)
		x.boxes[i].Clear()
	}
	for _, m := range ms {
		x.take(m.Value)
	}
}

func (x *classes) take(value []byte) {
	x.t.Helper()
	r := pipeline.Record{Input: pipeline.Panes, Topic: "panes", Offset: int64(len(x.log)), Value: value}
	x.log = append(x.log, r)
	if err := x.task.Take(context.Background(), r); err != nil {
		x.t.Fatal(err)
	}
	if err := x.task.Settle(context.Background()); err != nil {
		x.t.Fatal(err)
	}
	x.out = append(x.out, x.task.Outputs()...)
}

// told are the records about numbers of classes.
func (x *classes) told() (out []record.Calibrator) {
	for _, m := range x.out {
		if c, ok := m.Record.(*record.Calibrator); ok && c.Classes > 0 {
			if string(m.Key) != "m/1/classes" || m.Stream != pipeline.StreamCalibrators {
				x.t.Errorf("the record is on %s under %q", m.Stream, m.Key)
			}
			out = append(out, *c)
		}
	}
	return out
}

func (x *classes) hash() string {
	h, err := x.task.Hash()
	if err != nil {
		x.t.Fatal(err)
	}
	return h["m"]
}

// again reads a part of the log, goes on from its checkpoint, and must end with the same state.
func (x *classes) again() {
	x.t.Helper()
	for _, at := range []int{len(x.log) / 3, len(x.log) / 2, len(x.log) - 1} {
		task := NewTask(x.cfg, 0, pipeline.NewCounts(), quiet)
		for i, r := range x.log {
			if i == at {
				c, err := pipeline.EncodeCheckpoint(task.Sections())
				if err != nil {
					x.t.Fatal(err)
				}
				task = NewTask(x.cfg, 0, pipeline.NewCounts(), quiet)
				if err := pipeline.RestoreCheckpoint(c.Data, task.Sections(), nil); err != nil {
					x.t.Fatal(err)
				}
			}
			if err := task.Take(context.Background(), r); err != nil {
				x.t.Fatal(err)
			}
			if err := task.Settle(context.Background()); err != nil {
				x.t.Fatal(err)
			}
		}
		got, err := task.Hash()
		if err != nil || got["m"] != x.hash() {
			x.t.Errorf("restored at message %d: hash %s, want %s, %v", at, got["m"], x.hash(), err)
		}
		if a, b := x.task.counts.All(), task.counts.All(); !maps.Equal(a, b) {
			x.t.Errorf("restored at message %d: counts %v, want %v", at, b, a)
		}
	}
}

const firstPane = 1_000_000

// TestWrongClassesLeaveNoTrace: rows of another K that come first, or among the first, end with the state of the good
// rows alone, in whatever order shards speak; what was dropped is counted, and the shards are told.
func TestWrongClassesLeaveNoTrace(t *testing.T) {
	testsize.Slow(t)
	for _, c := range []struct {
		name  string
		wrong map[int64]int // rows by pane
		told  int
	}{
		{"none", nil, 0},
		{"in a pane before", map[int64]int{0: 500}, 1},
		{"in three panes before", map[int64]int{0: 40, 1: 50, 2: 60}, 1},
		{"in the same pane, fewer", map[int64]int{3: 20}, 1},
		{"in the same pane, more", map[int64]int{3: 400}, 1},
		{"in the second pane", map[int64]int{4: 400}, 1},
	} {
		for _, reversed := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " ", reversed), func(t *testing.T) {
				good, x := newClasses(t, 2), newClasses(t, 2)
				wrong := 0
				for pane := range int64(50) {
					at := firstPane + pane
					if n := c.wrong[pane]; n > 0 {
						wrong += n
						x.rows(0, at, 5, n)
					}
					if pane >= 3 {
						for shard := range 2 {
							good.rows(shard, at, 10, 25)
							x.rows(shard, at, 10, 25)
						}
					}
					good.end(at, false)
					x.end(at, reversed)
				}
				if x.hash() != good.hash() {
					t.Error("the state is not that of the good rows alone")
				}
				if n := x.task.counts.All()[CountDroppedClasses]; n != int64(wrong) {
					t.Errorf("%d predictions dropped, want %d", n, wrong)
				}
				told := x.told()
				if len(told) != c.told || len(told) > 0 && (told[0].Classes != 10 ||
					!strings.HasPrefix(told[0].Outcome, "classes: K = 10 ")) {
					t.Errorf("told %+v, want %d", told, c.told)
				}
				x.again()
			})
		}
	}
}

// TestOrderAboutClasses: what a shard sends of another K, after K stands, is dropped and shown; an order gives
// the version that K, and begins anew.
func TestOrderAboutClasses(t *testing.T) {
	x := newClasses(t, 2)
	pane := int64(firstPane)
	run := func(panes, a, b int) {
		for range panes {
			x.rows(0, pane, a, 25)
			x.rows(1, pane, b, 20)
			x.end(pane, false)
			pane++
		}
	}
	run(40, 5, 10)
	v := x.task.models["m"].versions["1"]
	if v.K != 5 || !v.contest.settled {
		t.Fatalf("K = %d, settled: %v", v.K, v.contest.settled)
	}
	if n := v.contest.dropped[10]; n != 40*20 {
		t.Errorf("%d predictions of K = 10 dropped, want %d", n, 40*20)
	}
	told := x.told()
	if len(told) != 1 || told[0].Classes != 5 || !strings.Contains(told[0].Outcome, "K = 5 stands") {
		t.Errorf("told %+v", told)
	}
	z := make([]float32, 25)
	for i := range 5 {
		z[6*i] = 3
	}
	vector, _, err := calibrator.Fit("vector", calibrator.NewData(z, 5, []int32{0, 1, 2, 4, 3}, nil),
		calibrator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := calibrator.Encode(vector)
	if err != nil {
		t.Fatal(err)
	}
	publish := &pipeline.Order{ID: [16]byte{1}, Action: pipeline.ActionPublish, Model: "m", Version: "1", By: "ann",
		Why: "test", Calibrator: body}
	x.take(pipeline.AppendOrder(nil, publish))
	before := len(v.Calibrators)
	order := &pipeline.Order{ID: [16]byte{2}, Action: pipeline.ActionClasses, Model: "m", Version: "1", Classes: 10,
		By: "ann", Why: "the model has ten"}
	for range 2 { // the second is a repeat
		x.take(pipeline.AppendOrder(nil, order))
	}
	if v.K != 10 || !v.contest.settled {
		t.Fatalf("after the order K = %d, settled: %v", v.K, v.contest.settled)
	}
	if before != 1 {
		t.Errorf("%d calibrators in force before the order", before)
	} else {
		if f := v.Newest(); f == nil || f.Cal.Method() != "identity" || f.Revision != 2 {
			t.Errorf("in force after the order: %+v", f)
		}
	}
	told = x.told()
	if len(told) != 2 || told[1].Classes != 10 || told[1].By != "ann" || told[1].Why != order.Why {
		t.Errorf("told %+v", told)
	}
	run(5, 10, 10)
	if k := v.keys[""]; k == nil || k.Labelled != 5*45 {
		t.Errorf("labelled rows after the order: %+v", k)
	}
	x.again()
}

// TestVersionsAreBounded: a version beyond the bound is dropped and counted, until one has been silent for an hour; a
// version that was decided about keeps its revision.
func TestVersionsAreBounded(t *testing.T) {
	x := newClasses(t, 1)
	x.cfg.MaxVersions = 3
	x.task = NewTask(x.cfg, 0, pipeline.NewCounts(), quiet)
	pane := int64(firstPane)
	send := func(models ...string) {
		for _, m := range models {
			x.model = m
			x.rows(0, pane, 3, 10)
		}
		x.end(pane, false)
		pane++
	}
	send("a", "b", "c", "d")
	send("a", "b", "d")
	publish := &pipeline.Order{ID: [16]byte{1}, Action: pipeline.ActionPublish, Model: "b", Version: "1", By: "ann",
		Why: "test", Calibrator: batchtest.Temperature(t, 2)}
	x.take(pipeline.AppendOrder(nil, publish))
	if n := x.task.counts.All()[CountRefusedVersions]; n != 20 {
		t.Errorf("%d predictions of a fourth version dropped, want 20", n)
	}
	for range 361 {
		send("a")
	}
	send("a", "d", "e", "f") // c, which has the oldest rows, and b make room
	has := func(m string) bool {
		md := x.task.models[m]
		return md != nil && md.versions["1"] != nil && len(md.versions["1"].keys) > 0
	}
	for m, want := range map[string]bool{"a": true, "b": false, "c": false, "d": true, "e": true, "f": false} {
		if has(m) != want {
			t.Errorf("%s has statistics: %v, want %v", m, has(m), want)
		}
	}
	if x.task.models["c"] != nil {
		t.Error("a model about which nothing was decided has left something behind")
	}
	if v := x.task.models["b"].versions["1"]; v.Newest() == nil || v.refit.Revision() != 1 {
		t.Error("a calibrator that was published is forgotten")
	}
	x.again()
}

// TestRoomForOtherModels: a model with a new version for each request leaves room for new versions of other models.
func TestRoomForOtherModels(t *testing.T) {
	x := newClasses(t, 1)
	x.cfg.MaxVersions = 20
	x.task = NewTask(x.cfg, 0, pipeline.NewCounts(), quiet)
	pane := int64(firstPane)
	send := func(model, version string) {
		x.model, x.version = model, version
		x.rows(0, pane, 3, 10)
		x.end(pane, false)
		pane++
	}
	for i := range 30 {
		send("a", fmt.Sprint(i))
	}
	send("b", "1")
	send("b", "2")
	if a, b := len(x.task.models["a"].versions), len(x.task.models["b"].versions); a != 18 || b != 2 {
		t.Errorf("%d versions of the model that makes them up and %d of another, want 18 of 20, and 2", a, b)
	}
}
