package reset

import (
	"context"
	"fmt"
	"os"

	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
)

// Branch lets the tasks of a backup that has been put in place go on beside what they published after it was made.
// Shards read again what they had read since, but not all that they then decide is as it was: the idle timeout goes by
// the clock, and a restart sends punctuations. Messages of theirs would have numbers that the panes topic has with
// another content, and would be taken for repeats. So every shard begins another life, and for the model tasks the one
// before ends where the backup has it.
func Branch(ctx context.Context, store pipeline.CheckpointStore, group string) error {
	ends := [][]model.End{} // by panes partition
	for shard := 0; ; shard++ {
		st, err := newestOf(ctx, store, fmt.Sprintf("%s/shards/shard-%05d", group, shard))
		if st == nil {
			if err != nil {
				return err
			}
			break
		}
		data, err := st.Read()
		if err != nil {
			return err
		}
		d, err := pipeline.NumberedBy(data)
		if err != nil {
			return fmt.Errorf("shards/%d: %w", shard, err)
		}
		for len(ends) < len(d.Seq) {
			ends = append(ends, nil)
		}
		for p, seq := range d.Seq {
			ends[p] = append(ends[p], model.End{Shard: shard, Epoch: d.Epoch, Seq: seq})
		}
		if err := amend(ctx, store, st, pipeline.Branching()); err != nil {
			return fmt.Errorf("shards/%d: %w", shard, err)
		}
	}
	for p := range ends {
		st, err := newestOf(ctx, store, fmt.Sprintf("%s/models/model-%05d", group, p))
		if err == nil && st != nil {
			err = amend(ctx, store, st, model.Undoing(ends[p]))
		}
		if err != nil {
			return fmt.Errorf("models/%d: %w", p, err)
		}
	}
	return nil
}

// keyed is a checkpoint with the key that it is stored under.
type keyed struct {
	pipeline.Stored
	key string
}

// newestOf is the newest checkpoint of a key; nil = there is none.
func newestOf(ctx context.Context, store pipeline.CheckpointStore, key string) (*keyed, error) {
	stored, err := store.Load(ctx, key)
	if err != nil || len(stored) == 0 {
		return nil, err
	}
	return &keyed{stored[0], key}, nil
}

// amend saves a changed copy of a checkpoint after it.
func amend(ctx context.Context, store pipeline.CheckpointStore, st *keyed, edits map[string]pipeline.Edit) error {
	dir, err := os.MkdirTemp("", "plumbline-restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := pipeline.Amend(st.Stored, edits, dir)
	if err != nil {
		return err
	}
	return store.Save(ctx, st.key, st.Number+1, c)
}
