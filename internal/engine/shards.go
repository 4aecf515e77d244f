package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// shardStage runs the shards of this process, as many as the plan says. A scale order changes their number: then they
// seal their states, and others begin with what they take of those.
type shardStage struct {
	*host
	build     *builder
	beginning sync.Mutex // of a shard's first state: others' states take memory
}

// run runs the shards until ctx is done.
func (s *shardStage) run(ctx context.Context) error {
	return s.Book.ForEachNumber(ctx, func(ctx context.Context, plan scale.Plan) error {
		topics := plan.Inputs(s.Config)
		var names []string
		for _, in := range slices.Sorted(maps.Keys(topics)) {
			names = append(names, topics[in])
		}
		g := s.group(s.Config.Group+"-shards"+plan.Suffix(), stageShards, plan.Of, names...)
		return g.Run(ctx, func(ctx context.Context, p int, commit kafkaio.CommitFunc) error {
			return s.inPlan(ctx, p, s.source(taskName(stageShards, p), topics, p, commit))
		})
	})
}

// shard runs one shard until ctx is done or an error. If the number of shards is changing, it seals the shard's state.
func (s *shardStage) shard(ctx context.Context, guard *attempts.Guard, p int, open pipeline.Open) error {
	name := taskName(stageShards, p)
	defer s.process.remove(name)
	plan := s.Plan()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var task *pipeline.Shard
	trace := s.laneOf(stageShards, s.Config.Group+"-shards"+plan.Suffix())
	err := pipeline.Run(ctx, s.runner("shards", guard, trace), func() (pipeline.Registered, error) {
		var err error
		if task, err = s.build.NewShard(p, plan.Of, s.Panes()); err != nil {
			return pipeline.Registered{}, err
		}
		task.Follow(trace)
		s.process.add(name, task)
		out := s.register(task)
		if plan.To != 0 {
			out.Waiter = sealing{stop}
		}
		return out, nil
	}, func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
		if err := task.Usable(); err != nil {
			return pipeline.Opened{}, err
		}
		return open(next)
	})
	return lasting(gone("shards", p, err))
}

// inPlan runs a shard, or lets it seal its state, until ctx is done.
func (s *shardStage) inPlan(ctx context.Context, p int, open pipeline.Open) error {
	for ctx.Err() == nil {
		plan := s.Plan()
		if p >= plan.Of { // topicsWatch names it
			<-ctx.Done()
			return nil
		}
		while, stop := s.Book.While(ctx, func(now scale.Plan) bool { return now.Of == plan.Of && now.To == plan.To })
		err := s.process.attempts.Run(while, attempts.ID{Task: "shard", Partition: p},
			func(ctx context.Context, guard *attempts.Guard) error {
				if plan.To != 0 {
					return s.seal(ctx, guard, p, open)
				}
				if err := s.begin(ctx, plan, p); err != nil {
					return err
				}
				return s.shard(ctx, guard, p, open)
			})
		ended := while.Err() != nil
		stop()
		if err != nil || !ended {
			return err
		}
	}
	return nil
}

// begin makes a shard's first state after the number of shards has changed.
func (s *shardStage) begin(ctx context.Context, plan scale.Plan, p int) error {
	if plan.From == 0 {
		return nil
	}
	s.beginning.Lock()
	defer s.beginning.Unlock()
	began := time.Now()
	err := s.Book.Begin(ctx, plan, p, func(p, of int) (*pipeline.Shard, error) {
		return s.build.NewShard(p, of, s.Panes())
	})
	if err == nil {
		s.Log.Info("a shard has its first state", "shard", p, "of", plan.Of, "took", time.Since(began))
	}
	return err
}

// seal has a shard make its last checkpoint and copies what other shards take from it. It returns when ctx is done.
func (s *shardStage) seal(ctx context.Context, guard *attempts.Guard, p int, open pipeline.Open) error {
	plan := s.Plan()
	if plan.To == 0 {
		return nil
	}
	empty, err := s.build.NewShard(p, plan.Of, s.Panes())
	if err != nil {
		return err
	}
	defer empty.Close()
	copied, err := s.Book.Copy(ctx, plan, empty)
	if err == nil && !copied {
		if err = s.shard(ctx, guard, p, open); err == nil {
			copied, err = s.Book.Copy(ctx, plan, empty)
		}
	}
	if err == nil && !copied && ctx.Err() == nil {
		err = fmt.Errorf("shard %d has not sealed its state", p)
	}
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// sealing ends a shard before it reads anything, so that it only makes its last checkpoint.
type sealing struct{ stop context.CancelFunc }

// Resume implements pipeline.Waiter.
func (s sealing) Resume() error { s.stop(); return nil }

// Wake implements pipeline.Waiter.
func (s sealing) Wake() <-chan struct{} { return nil }

// Settle implements pipeline.Waiter.
func (s sealing) Settle(context.Context) error { return nil }

// steps carries out the steps of a scale order that belong to no single shard. Every process tries; one succeeds.
func (s *shardStage) steps(ctx context.Context) error {
	for ctx.Err() == nil {
		plan, changed := s.Book.Now()
		if !plan.Open() {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		ready, err := s.Book.Await(ctx, changed, func() (bool, error) {
			missing, err := s.Book.Waiting(ctx, plan)
			return len(missing) == 0, err
		})
		if err == nil && ready {
			err = s.step(ctx, plan)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, pipeline.ErrFenced) {
			s.Log.Error("the change of the number of shards cannot go on, trying again", faultlog.Err(err))
			scale.Sleep(ctx)
		}
	}
	return nil
}

// step carries out the step that follows when all shards have taken theirs.
func (s *shardStage) step(ctx context.Context, plan scale.Plan) error {
	if plan.To == 0 {
		s.Log.Info("all shards have begun", "of", plan.Of, "before", plan.From)
		return s.Book.Done(ctx, plan, s.Config.Checkpoints.Keep)
	}
	split, direct, err := s.sources(ctx, plan)
	if err != nil {
		return err
	}
	shards, err := s.Book.SealedShards(ctx, plan, func(p int) (*pipeline.Shard, error) {
		return s.build.NewShard(p, plan.Of, s.Panes())
	})
	if err != nil {
		return err
	}
	next := plan.Next(shards, split, direct)
	s.Log.Info("all shards have sealed their states", "of", plan.Of, "next", plan.To)
	return s.Book.Save(ctx, next)
}

// sources returns the topics that shards get their rows from, by the names that shards use.
func (s *shardStage) sources(ctx context.Context, plan scale.Plan) (split []scale.Source,
	direct map[pipeline.Input]string, err error) {
	split, direct = plan.Sources(s.Config)
	for i := range split {
		if split[i].Topic, err = deployment.SourceName(ctx, s.Client, split[i].Topic); err != nil {
			return nil, nil, err
		}
	}
	for in, topic := range direct {
		if direct[in], err = deployment.SourceName(ctx, s.Client, topic); err != nil {
			return nil, nil, err
		}
	}
	return split, direct, nil
}

// register registers a shard. If it starts with an empty state for the first time, it gets an epoch.
func (s *shardStage) register(task *pipeline.Shard) pipeline.Registered {
	out := task.ForRun()
	out.Closing = func() {
		task.Closing()
		if s.Plan().To != 0 {
			task.Seal()
		}
	}
	out.Begin = func(ctx context.Context) error {
		if err := s.Remains().BeginShard(ctx, task.ID); err != nil {
			return err
		}
		task.Outbox.OwnEpoch().Begin(pipeline.NewEpoch(), nil)
		return nil
	}
	return out
}
