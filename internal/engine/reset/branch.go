package reset

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
)

// Branch prepares the tasks of a restored backup to go on although they published more after it was made. Shards read
// again what they had read since, but may decide otherwise: the idle timeout goes by the clock, and a restart sends
// punctuations. Their new messages would have numbers that the panes topic has already, with other content, and would
// be taken for repeats. So Branch starts another epoch of every shard, and notes in the model tasks' checkpoints that
// the one before ends with the backup.
func Branch(ctx context.Context, store pipeline.CheckpointStore, group string) error {
	b := &branch{store: store, group: group}
	for shard := 0; ; shard++ {
		if there, err := b.shard(ctx, shard); err != nil {
			return fmt.Errorf("%s: %w", Task("shards", shard), err)
		} else if !there {
			break
		}
	}
	for p, ends := range b.ends {
		ends = append(ends, b.silent...)
		if _, err := b.amend(ctx, "models", p, func(pipeline.Stored) (map[string]pipeline.Edit, error) {
			return model.Undoing(ends), nil
		}); err != nil {
			return fmt.Errorf("%s: %w", Task("models", p), err)
		}
	}
	return nil
}

type branch struct {
	store pipeline.CheckpointStore
	group string
	ends  [][]model.End // by panes partition
	// silent has the ends, for all partitions, of shards that had sent nothing yet.
	silent []model.End
}

// shard starts another epoch of a shard and notes where the one before ends. false: there is no such shard.
func (b *branch) shard(ctx context.Context, shard int) (there bool, err error) {
	return b.amend(ctx, "shards", shard, func(st pipeline.Stored) (map[string]pipeline.Edit, error) {
		data, err := st.Read()
		if err != nil {
			return nil, err
		}
		n, err := pipeline.NumberedBy(data)
		if err != nil {
			return nil, err
		}
		if n.Seq == nil {
			b.silent = append(b.silent, model.End{Shard: shard, Epoch: n.Epoch})
		}
		for p, seq := range n.Seq {
			if p == len(b.ends) {
				b.ends = append(b.ends, nil)
			}
			b.ends[p] = append(b.ends[p], model.End{Shard: shard, Epoch: n.Epoch, Seq: seq})
		}
		return pipeline.Branching(), nil
	})
}

// amend changes the newest checkpoint of a task that can be read, where it has one.
func (b *branch) amend(ctx context.Context, stage string, partition int,
	edits func(pipeline.Stored) (map[string]pipeline.Edit, error)) (there bool, err error) {
	key := Key(b.group, stage, partition)
	stored, err := b.store.Load(ctx, key)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, st := range stored {
		changes, err := edits(st)
		if err == nil {
			err = slot{b.store, key, stored[0].Number + 1}.amended(ctx, st, changes)
		}
		if err == nil {
			return true, nil
		}
		errs = append(errs, err)
	}
	return len(stored) > 0, errors.Join(errs...)
}
