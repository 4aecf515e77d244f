package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/reset"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
)

// remains returns the topics in the form that package reset asks about lost state.
func remains(r *KafkaRun) reset.Topics {
	plan, _ := r.book.Now()
	return reset.Topics{Config: r.Config, Spec: r.tailSpec(), Inputs: plan.Inputs(&r.Config),
		Readers: r.Config.Group + "-shards" + plan.Suffix()}
}

// shardTask registers a shard. If it starts with an empty state for the first time, it gets an epoch.
func shardTask(r *KafkaRun, s *pipeline.Shard) pipeline.Registered {
	out := s.ForRun()
	out.Closing = func() {
		s.Closing()
		if plan, _ := r.book.Now(); plan.To != 0 {
			s.Seal()
		}
	}
	out.Begin = func(ctx context.Context) error {
		if err := remains(r).BeginShard(ctx, s.ID); err != nil {
			return err
		}
		s.Outbox.OwnEpoch().Begin(pipeline.NewEpoch(), nil)
		return nil
	}
	return out
}

// modelTask registers the model task of a partition. alerts is reminder.alerts.
func modelTask(r *KafkaRun, t *model.Task, p int, alerts *atomic.Bool) pipeline.Registered {
	task := inTurn{t, r.turns, &reminder{topic: &r.onTopic, log: r.Log, unread: &r.following,
		made: r.onTopic.again(), alerts: alerts}}
	return pipeline.Registered{
		Task:   task,
		Report: task.report,
		Waiter: task,
		Skip:   t.Skip,
		Begin:  func(ctx context.Context) error { return remains(r).BeginModel(ctx, p) },
	}
}

// inTurn is a model task that computes only when it has a turn. Panes of many models close at once, and the shards of
// the process must not wait until all of them are done.
type inTurn struct {
	*model.Task
	turns  chan struct{}
	remind *reminder
}

// report is the Report of the task.
func (t inTurn) report(caughtUp, active bool) func() {
	t.remind.caughtUp = t.remind.caughtUp || caughtUp
	show, fired := t.Task.Report(caughtUp, active), t.remind.fired
	return func() {
		if fired { // in the outputs of this checkpoint, or of one before it
			t.remind.alerts.Store(true)
		}
		show()
	}
}

// Take implements pipeline.Task.
func (t inTurn) Take(ctx context.Context, rec pipeline.Record) error {
	t.turns <- struct{}{}
	defer func() { <-t.turns }()
	return t.Task.Take(ctx, rec)
}

// Resume implements pipeline.Waiter.
func (t inTurn) Resume() error {
	t.turns <- struct{}{}
	defer func() { <-t.turns }()
	if err := t.remind.of(t.Task); err != nil {
		return err
	}
	return t.Task.Resume()
}

// gone adds advice to the error of a task whose records have left the log.
func gone(stage string, p int, err error) error {
	if err == nil || !errors.Is(err, kafka.OffsetOutOfRange) {
		return err
	}
	return fmt.Errorf("%w. %s", err, reset.Command(reset.Task(stage, p)))
}

// ResetState carries out a person's order to let tasks begin anew, or says what it would do.
func ResetState(ctx context.Context, cfg config.Config, log *slog.Logger, o reset.Order, accept bool) ([]*reset.Change,
	error) {
	if err := HasStateDir(&cfg); err != nil {
		return nil, fmt.Errorf("%w: %w. Where the directory itself is lost, make it first", reset.ErrOrder, err)
	}
	r := &KafkaRun{Engine: New(cfg, log)}
	var err error
	if r.Client, r.Dialer, err = kafkaclient.New(cfg.Kafka); err != nil {
		return nil, err
	}
	now, err := r.askTopology(ctx)
	if err != nil {
		return nil, err
	}
	if r.store, err = r.openStore(ctx); err != nil {
		return nil, err
	}
	stored, err := r.store.Load(ctx, topologyKey(cfg.Group))
	if err != nil {
		return nil, err
	}
	was, ok := r.storedTopology(stored)
	again := map[string]bool{}
	if ok {
		again = remade(was, now)
	}
	if ok && len(again) == 0 {
		now = now.known(was)
	}
	if err := r.openBook(ctx, now[0].partitions); err != nil {
		return nil, err
	}
	shards, _ := r.book.Now()
	if shards.Open() {
		return nil, fmt.Errorf("%w: the number of shards is being changed: %s", reset.ErrOrder, growth(ctx, r.book))
	}
	at := &reset.Reset{Topics: remains(r), Store: r.store, Shards: shards.Of, Models: now[2].partitions, Remade: again,
		Readable: func(stage string, data []byte) error { return Readable(r.Engine, stage, data) }}
	if at.Relays, err = relays(ctx, r); err != nil {
		return nil, err
	}
	plan, err := at.Plan(ctx, o)
	if err != nil || !accept {
		return plan, err
	}
	if err := at.Apply(ctx, plan); err != nil || len(at.Remade) == 0 {
		return plan, err
	}
	return plan, saveTopology(ctx, at.Store, topologyKey(cfg.Group), now, stored)
}

// Readable returns a pipeline.FormatError where this build cannot read a checkpoint of a stage, shards or models.
func Readable(rt *Engine, stage string, data []byte) error {
	if stage == "models" {
		return pipeline.CheckFormat(data, rt.NewModelTask(0, pipeline.NewCounts()).Sections())
	}
	s, err := rt.NewShard(0, 1, 1)
	if err != nil {
		return err
	}
	err = pipeline.CheckFormat(data, s.Sections())
	return errors.Join(err, s.Close())
}

// HasStateDir returns an error where there is no directory of checkpoints: a command that runs in another directory
// than the processes must not take a state that it does not see for lost.
func HasStateDir(c *config.Config) error {
	if c.Checkpoints.Store == pipeline.StoreTopic {
		return nil
	}
	dir, err := filepath.Abs(c.Checkpoints.Dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	todo := "is it mounted?"
	if !filepath.IsAbs(c.Checkpoints.Dir) {
		todo = "run this in the directory of plumbline run, or make checkpoints.dir absolute"
	}
	return fmt.Errorf("checkpoints.dir %s: %s does not exist: %s", c.Checkpoints.Dir, dir, todo)
}

// TopicsMoved notes that the deployment's topics, with their records and offsets, have been copied to the topics that
// the configuration now names.
func TopicsMoved(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	r, now, stored, err := topologies(ctx, cfg, log)
	if err != nil || len(stored) == 0 { // nothing has run yet
		return err
	}
	was, ok := r.storedTopology(stored)
	if ok {
		now = now.known(was)
	}
	return saveTopology(ctx, r.store, topologyKey(cfg.Group), now, stored)
}

// topologies connects to a deployment from outside. now is its topics' present state, stored what its processes have
// recorded; none = none has run yet.
func topologies(ctx context.Context, cfg config.Config, log *slog.Logger) (r *KafkaRun, now topology,
	stored []pipeline.Stored, err error) {
	r = &KafkaRun{Engine: New(cfg, log)}
	if r.Client, r.Dialer, err = kafkaclient.New(cfg.Kafka); err != nil {
		return nil, now, nil, err
	}
	if now, err = r.askTopology(ctx); err != nil {
		return nil, now, nil, err
	}
	if r.store, err = r.openStore(ctx); err != nil {
		return nil, now, nil, err
	}
	stored, err = r.store.Load(ctx, topologyKey(cfg.Group))
	return r, now, stored, err
}
