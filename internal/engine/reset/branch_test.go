package reset

import (
	"testing"

	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/dirstore"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestBranch: every shard of a backup gets another epoch, even one that has sent nothing yet, and the checkpoint of
// every model task says where the epochs before end. A checkpoint that cannot be read falls back to the one before.
func TestBranch(t *testing.T) {
	store := &dirstore.Store{Dir: t.TempDir(), Keep: 2}
	save := func(key string, number uint64, cp pipeline.Checkpoint, err error) {
		t.Helper()
		if err == nil {
			err = store.Save(t.Context(), key, number, cp)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	begun := func(epoch uint64) (pipeline.Checkpoint, error) {
		return pipeline.Begun([]int64{1, 2}, &pipeline.Epoch{ID: epoch})
	}
	newest := func(key string) (number uint64, data []byte) {
		t.Helper()
		stored, err := store.Load(t.Context(), key)
		if err != nil || len(stored) == 0 {
			t.Fatalf("%s: %d checkpoints, %v", key, len(stored), err)
		}
		if data, err = stored[0].Read(); err != nil {
			t.Fatal(err)
		}
		return stored[0].Number, data
	}
	out := pipeline.NewOutbox(0, 2, 10, 1)
	out.Punctuate(pipeline.Punctuation{Closed: 3})
	numbered, err := pipeline.EncodeCheckpoint([]pipeline.Section{
		(&pipeline.Epoch{ID: 5}).CheckpointSection(), {Name: "outbox", Version: 1, State: out}})
	save("g/shards/shard-00000", 1, numbered, err)
	save("g/shards/shard-00000", 2, pipeline.Checkpoint{Data: []byte("damaged")}, nil)
	silent, err := begun(7)
	save("g/shards/shard-00001", 1, silent, err)
	task, err := model.Begun(4, nil, &record.Loss{Task: "models/0"})
	save("g/models/model-00000", 3, task, err)
	_, before := newest("g/models/model-00000")
	if err := Branch(t.Context(), store, "g"); err != nil {
		t.Fatal(err)
	}
	for shard, was := range map[string]struct{ epoch, number, seqs uint64 }{
		"g/shards/shard-00000": {5, 3, 1}, "g/shards/shard-00001": {7, 2, 0}} {
		number, data := newest(shard)
		n, err := pipeline.NumberedBy(data)
		if err != nil || number != was.number || n.Epoch == was.epoch || uint64(len(n.Seq)) != was.seqs {
			t.Errorf("%s: checkpoint %d of %+v, %v; was of %+v", shard, number, n, err, was)
		}
		for _, seq := range n.Seq {
			if seq != 0 {
				t.Errorf("%s goes on at %d", shard, seq)
			}
		}
	}
	number, after := newest("g/models/model-00000")
	if number != 4 || len(after) <= len(before) {
		t.Errorf("model task: checkpoint %d of %d bytes, before %d", number, len(after), len(before))
	}
}
