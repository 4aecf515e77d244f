package operators

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/joinstore"
	"github.com/plumbline/plumbline/pipeline"
)

// upgradeRows are the rows of which the shards' checkpoints in testdata have seen some.
func upgradeRows() []batchtest.Row {
	return batchtest.Rows(41, batchtest.Options{N: 120, MaxLag: 50 * second, Unlabelled: .1, Sharpness: 2, Regions: 3, Weights: true, Served: true})
}

// checkpointV2 is testdata/checkpoint-v2, with the files that it names.
func checkpointV2(t *testing.T) (data []byte, fetch pipeline.Fetch) {
	t.Helper()
	data, err := os.ReadFile("testdata/checkpoint-v2/checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	return data, func(name, path string) error {
		b, err := os.ReadFile("testdata/checkpoint-v2/files/" + name)
		if err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o644)
	}
}

// TestCheckpointVersion1 goes on from a shard's checkpoint of the version before (testdata/checkpoint-v1, taken after
// 14 messages): everything that follows is as if there had been one version only, and the counts add up.
func TestCheckpointVersion1(t *testing.T) {
	data, err := os.ReadFile("testdata/checkpoint-v1")
	if err != nil {
		t.Fatal(err)
	}
	info, err := pipeline.InspectCheckpoint(data)
	if err != nil || info.Version != 1 {
		t.Fatalf("version %+v, %v, want 1", info, err)
	}
	rows := upgradeRows()
	for _, inMemory := range []int{-1, 0} {
		t.Run(fmt.Sprint(inMemory), func(t *testing.T) {
			s := defaultSetup()
			s.slices = []string{"region"}
			if inMemory >= 0 {
				s.join = onDisk(t, s.join, inMemory)
			}
			in := stream(t, rows, 1, 8)
			want := newWorld(t, s, in, 1).run(inTurn)
			w := newWorld(t, s, in, 1)
			for range 14 {
				w.step(inTurn)
			}
			next, n := w.shards[0].Next(), w.counts()
			if n["joined"] == 0 || n["waiting"] == 0 || n["waiting_labels"] == 0 {
				t.Fatalf("counts %v: want rows of every kind", n)
			}
			w.must(w.shards[0].Close())
			w.shards[0] = s.shard(0, 1)
			w.must(pipeline.RestoreCheckpoint(data, w.shards[0].Sections(), nil))
			if got := w.shards[0].Next(); fmt.Sprint(got) != fmt.Sprint(next) {
				t.Fatalf("it goes on at %v, want %v", got, next)
			}
			if ok, detail := pipeline.Conservation(w.shards[0].Counts.All()); !ok {
				t.Error(detail)
			}
			w.run(inTurn).compare(want)
		})
	}
}

// TestCheckpointVersion2 does the same with version 2 (testdata/checkpoint-v2, taken after 22 messages), in which the rows that
// had joined were among those that wait, in memory and in files: their repeats must be known still, and they alone.
func TestCheckpointVersion2(t *testing.T) {
	data, fetch := checkpointV2(t)
	info, err := pipeline.InspectCheckpoint(data)
	if err != nil || info.Version != 2 {
		t.Fatalf("version %+v, %v, want 2", info, err)
	}
	rows := upgradeRows()
	for _, inMemory := range []int{-1, 0, 12} {
		t.Run(fmt.Sprint(inMemory), func(t *testing.T) {
			s := defaultSetup()
			s.slices = []string{"region"}
			s.join = onDisk(t, s.join, max(inMemory, 0))
			if inMemory < 0 {
				s.join.MemoryBytes = 0
			}
			s.join.Remember = 1000
			in := stream(t, rows, 1, 8)
			want := newWorld(t, s, in, 1).run(inTurn)
			w := newWorld(t, s, in, 1)
			for range 22 {
				w.step(inTurn)
			}
			next, n := w.shards[0].Next(), w.counts()
			joined := w.shards[0].Stages[1].Operator.(*Join).w.met
			if n["joined"] == 0 || n["waiting"] == 0 || n["waiting_labels"] == 0 {
				t.Fatalf("counts %v: want rows of every kind", n)
			}
			w.must(w.shards[0].Close())
			w.shards[0] = s.shard(0, 1)
			w.must(pipeline.RestoreCheckpoint(data, w.shards[0].Sections(), fetch))
			if got := w.shards[0].Next(); fmt.Sprint(got) != fmt.Sprint(next) {
				t.Fatalf("it goes on at %v, want %v", got, next)
			}
			if got := w.counts(); fmt.Sprint(got) != fmt.Sprint(n) {
				t.Errorf("counts %v, want %v", got, n)
			}
			restored := w.shards[0].Stages[1].Operator.(*Join).w.met
			if joined.Len() != int(n["joined"]) || restored.Len() != joined.Len() {
				t.Errorf("%d rows are remembered, want %d of %d", restored.Len(), joined.Len(), n["joined"])
			}
			for i := range rows {
				id := arrowio.HashID(rows[i].ID)
				if got, want := len(restored.Find((*joinstore.ID)(&id))), len(joined.Find((*joinstore.ID)(&id))); got != want {
					t.Errorf("row %s: remembered %d times, want %d", rows[i].ID, got, want)
				}
			}
			w.run(inTurn).compare(want)
		})
	}
}

// inTurn takes the topic of which more is left.
func inTurn(_ *rand.Rand, left [2]int) int {
	if left[0] >= left[1] && left[0] > 0 {
		return 0
	}
	return 1
}

// TestModelStateVersion1 goes on from a model task's checkpoint of the version before (testdata/model-checkpoint-v1, taken
// after 32 messages of this panes log, when one calibrator was in force): it has no refit under way, no pin and no test of
// the calibrator in force. All of that begins; nothing that was there is lost.
func TestModelStateVersion1(t *testing.T) {
	data, err := os.ReadFile("testdata/model-checkpoint-v1")
	if err != nil {
		t.Fatal(err)
	}
	rows := batchtest.Rows(91, batchtest.Options{N: 1200, MaxLag: 10 * second, Sharpness: 2.5})
	s := defaultSetup()
	s.model.Windows = s.model.Windows[:1]
	s.model.SampleRows = 400
	s.model.Acc.SampleRows = 40
	s.model.Refit.MinRows, s.model.Refit.FreshRows, s.model.Refit.MaxRows = 100, 100, 400
	w := newWorld(t, s, stream(t, rows, 2, 10), 1).run(anyOrder)
	task := s.task()
	w.must(pipeline.RestoreCheckpoint(data, task.Sections(), nil))
	v := task.models["m"].versions["v1"]
	if task.next != 32 || v.refit.revision != 1 || len(v.calibrators) != 1 || v.keys[""].labelled != 540 || v.refit.guard == nil {
		t.Fatalf("next message %d, revision %d, %d calibrators, %d labelled rows, guard %v; want 32, 1, 1, 540 and a guard", task.next, v.refit.revision, len(v.calibrators), v.keys[""].labelled, v.refit.guard)
	}
	for _, r := range w.panes[32:] {
		w.must(task.Take(t.Context(), r))
	}
	w.must(task.Settle(t.Context()))
	if got, want := v.keys[""].labelled, w.model.models["m"].versions["v1"].keys[""].labelled; got != want || v.refit.revision < 1 {
		t.Errorf("%d labelled rows in the end, revision %d; want %d, 1 or more", got, v.refit.revision, want)
	}
	saved, err := pipeline.EncodeCheckpoint(task.Sections())
	w.must(err)
	w.must(pipeline.RestoreCheckpoint(saved.Data, s.task().Sections(), nil))
}
