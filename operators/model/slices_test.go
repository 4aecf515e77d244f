package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model/slice"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/operators/slicing"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// manyValues gives rows slice values of falling weights. The order turns half way: first r0, r1, … are heavy, then s0,
// s1, ….
func manyValues(rows []batchtest.Row, values int) []batchtest.Row {
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range rows {
		name, u := "r", rng.Float64()
		if i > len(rows)/2 {
			name = "s"
		}
		rows[i].Region = fmt.Sprintf("%s%d", name, int(float64(values)*u*u*u))
	}
	return rows
}

func manySetup(limit int) setup {
	s := alarmSetup(testAlarm(stage.SignalRaw))
	s.slices, s.maxKeys = []string{"region"}, limit
	s.model.Slices = SliceSpec{slice.Config{MaxKeys: limit, HalfLife: 60 * time.Second}}
	s.model.Alarm.Slices = true
	return s
}

// TestManyValuesLeaveNoTrace has more values than places and more than slots. Any number of shards, batch size, order
// and crash gives the same bytes, and every row is in exactly one slice.
func TestManyValuesLeaveNoTrace(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := manyValues(batchtest.Rows(151, batchtest.Options{N: 1500, MaxLag: 30 * second, Unlabelled: .1, Sharpness: 2,
		Regions: 1}), 60)
	for i, limit := range []int{3, 25, 3, 25} { // slots for 12 and 100 values a pane
		s := manySetup(limit)
		s.model.Turns = slicing.Turns(3 * (i / 2))
		var want *world
		for _, c := range []struct {
			shards, batch int
			order         worldtest.Pick
			crash         float64
		}{{1, 64, worldtest.AnyOrder, 0}, {1, 2, worldtest.LabelsFirst, 0}, {3, 20, worldtest.AnyOrder, 0},
			{4, 30, worldtest.LogitsFirst, .02}} {
			w := newWorld(t, s, worldtest.Stream(t, rows, c.shards, c.batch), uint64(c.shards+c.batch))
			w.Save, w.Crash = .1, c.crash
			w.run(c.order)
			if want == nil {
				want = w
				checkMany(t, w, limit)
				continue
			}
			if got, hash := w.Hash(), want.Hash(); got != hash {
				t.Errorf("%d places, %d shards: state hash %s, want %s", limit, c.shards, got, hash)
			}
			worldtest.CompareOutputs(t, worldtest.Firsts(w.Outputs), worldtest.Firsts(want.Outputs))
		}
	}
}

// checkMany checks which slices are kept at the end, and the alerts of those that ended.
func checkMany(t *testing.T, w *world, limit int) {
	t.Helper()
	v := w.Model.models["m"].versions["v1"]
	kept := slices.Sorted(maps.Keys(v.heavy["region"].Kept))
	if len(kept) != limit || len(v.pendingSlices) != 0 || len(v.keys) != limit+2 {
		t.Errorf("%v are kept, %d keys, %d pending slices; want %d and the whole and the rest, none", kept, len(v.keys),
			len(v.pendingSlices), limit)
	}
	late := 0
	for _, x := range kept {
		if strings.HasPrefix(x, "s") {
			late++
		}
	}
	if late == 0 {
		t.Errorf("%v are kept: none of those that are heavy now", kept)
	}
	pooled := int64(0)
	for _, s := range w.Snapshots() {
		if s.Slice == "region="+slicing.Other {
			pooled = max(pooled, s.PooledValues)
		}
	}
	if pooled == 0 {
		t.Error("no snapshot says how many values are pooled")
	}
	if w.Model.counts.All()[CountPooledRows] == 0 || (w.Counts()[pipeline.CountPooled] > 0) != (limit < 5) {
		t.Errorf("counts %v and %v", w.Model.counts.All(), w.Counts())
	}
	firingNow := map[string]bool{}
	for _, a := range w.alerts() {
		firingNow[a.Slice+"/"+a.Rule] = a.State != stage.Resolved
	}
	for key, on := range firingNow {
		slice, _, _ := strings.Cut(key, "/")
		if on && v.keys[slice] == nil {
			t.Errorf("%s fires for ever", key)
		}
	}
}

// TestSliceTurns: where slices take turns, their final windows and their rows at the end are those of slices that have
// every pane, and so are the model version's final windows.
func TestSliceTurns(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(153, batchtest.Options{N: 1500, MaxLag: 30 * second, Unlabelled: .1, Sharpness: 2,
		Regions: 5})
	s := manySetup(10)
	s.model.Windows = []window.Config{{Name: "1m", Kind: window.KindTime, Size: time.Minute},
		{Name: "day", Kind: window.KindTime, Size: 24 * time.Hour}}
	at := func(turns slicing.Turns) (finals map[string]string, count map[string]int64) {
		s := s
		s.model.Turns = turns
		w := newWorld(t, s, worldtest.Stream(t, rows, 2, 25), 1).run(worldtest.AnyOrder)
		finals, count = map[string]string{}, map[string]int64{}
		for _, x := range w.Snapshots() {
			if x.Window.Name == "day" {
				count[x.Slice] = max(count[x.Slice], x.Predictions+x.Labelled)
			}
			if x.Window.Final {
				b, err := json.Marshal(x.Raw)
				if err != nil {
					t.Fatal(err)
				}
				finals[fmt.Sprint(x.Slice, x.Window.End)] = fmt.Sprint(x.Labelled, string(b))
			}
		}
		return finals, count
	}
	want, _ := at(0)
	got, count := at(6)
	if len(want) < 5 || !maps.Equal(got, want) {
		t.Errorf("%d final windows of slices in turns: %v; want %v", len(got), got, want)
	}
	all := map[string]int64{}
	for i := range rows {
		n := int64(1)
		if rows[i].Label >= 0 {
			n = 2
		}
		all[""] += n
		if rows[i].Region != "" {
			all["region="+rows[i].Region] += n
		}
	}
	if !maps.Equal(count, all) {
		t.Errorf("%v predictions and labels at the end with slices in turns, want %v", count, all)
	}
}

// TestManyValuesSurvive restores the task from its checkpoint again and again.
func TestManyValuesSurvive(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := manyValues(batchtest.Rows(152, batchtest.Options{N: 1200, MaxLag: 30 * second, Sharpness: 2, Regions: 1}),
		60)
	s := manySetup(4)
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 25), 1).run(worldtest.AnyOrder)
	w.compareRestarts(t, func(i int, _ *Task) bool { return i%7 == 0 })
}

// TestColumnsAndBoundsChange continues from a checkpoint with a lower limit, then without the column. Nothing is
// refused, the limit holds from the next pane on, and firing alerts of slices that are gone are resolved.
func TestColumnsAndBoundsChange(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := manyValues(batchtest.Rows(153, batchtest.Options{N: 1500, MaxLag: 30 * second, Sharpness: 3, Regions: 1}),
		20)
	s := manySetup(8)
	w := newWorld(t, s, worldtest.Stream(t, rows, 1, 25), 1).run(worldtest.AnyOrder)
	half, saved := s.task(), []byte(nil)
	for i, r := range w.Panes {
		w.Must(half.Take(t.Context(), r))
		if i < len(w.Panes)/2 {
			continue
		}
		v := half.models["m"].versions["v1"]
		if slices.ContainsFunc(slices.Collect(maps.Values(v.keys)), func(k *keyState) bool {
			return k.Slice != "" &&
				firingAny(k)
		}) {
			c, err := pipeline.EncodeCheckpoint(half.Sections())
			w.Must(err)
			saved = c.Data
			break
		}
	}
	if saved == nil {
		t.Fatal("no slice fires: nothing tested")
	}
	lower := s
	lower.model.Slices.MaxKeys = 2
	task := lower.task()
	w.Must(pipeline.RestoreCheckpoint(saved, task.Sections(), nil))
	for _, r := range w.Panes {
		w.Must(task.Take(t.Context(), r))
	}
	if n := len(task.models["m"].versions["v1"].keys); n != 4 {
		t.Errorf("%d keys with a bound of 2, want 4", n)
	}
	none := s
	none.model.Slices.Columns = []string{}
	task = none.task()
	w.Must(pipeline.RestoreCheckpoint(saved, task.Sections(), nil))
	var ended []record.Alert
	for _, m := range task.Outputs() {
		var a record.Alert
		w.Must(json.Unmarshal(m.Value, &a))
		ended = append(ended, a)
	}
	if len(ended) == 0 || ended[0].State != stage.Resolved || !strings.Contains(ended[0].Message, "slices.columns") {
		t.Errorf("alerts %+v, want that of a slice, resolved", ended)
	}
	for _, r := range w.Panes {
		w.Must(task.Take(t.Context(), r))
	}
	if v := task.models["m"].versions["v1"]; len(v.keys) != 1 || len(v.pendingSlices)+len(v.heavy) != 0 {
		t.Errorf("%d keys, %d pending slices without slices", len(v.keys), len(v.pendingSlices))
	}
}

func firingAny(k *keyState) bool {
	_, any := k.FiringSince()
	return any
}

// TestLabelsBeforePredictions: labels that are older than their predictions come in label panes without predictions of
// their value. It has statistics of its own from them on while there are places, and no row is pooled; beyond the bound
// rows are. What is kept depends on no number of shards and no order.
func TestLabelsBeforePredictions(t *testing.T) {
	t.Parallel()
	for _, regions := range []int{1, 3} {
		rows := batchtest.Rows(156, batchtest.Options{N: 700, Step: second / 10, Regions: regions})
		for i := range rows {
			rows[i].LabelTS = rows[i].TS - 4*second
		}
		s := manySetup(2)
		s.lateness, s.model.Pane = 5*second, second
		var want *world
		for _, shards := range []int{1, 3} {
			w := newWorld(t, s, worldtest.Stream(t, rows, shards, 10), uint64(shards))
			w.Save, w.Crash = .05, .02
			w.run(worldtest.AnyOrder)
			v := w.Model.models["m"].versions["v1"]
			other := v.keys["region="+slicing.Other]
			if pooled := other != nil; pooled != (regions > 2) {
				t.Errorf("%d values, 2 places, %d shards: some are pooled: %t", regions, shards, pooled)
			}
			labelled := int64(0)
			for name, k := range v.keys {
				if name != "" {
					labelled += k.Labelled
				}
			}
			if labelled != int64(len(rows)) {
				t.Errorf("%d values: slices have %d labelled rows, want %d", regions, labelled, len(rows))
			}
			if want == nil {
				want = w
			} else if got := w.Hash(); got != want.Hash() {
				t.Errorf("%d values, %d shards: state hash %s, want %s", regions, shards, got, want.Hash())
			}
		}
	}
}
