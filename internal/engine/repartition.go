package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// runSplitters runs a consumer group for each topic that is split by id: their numbers of partitions are their own. No
// topic is split while shards end, for nobody would read what comes of it.
func (r *KafkaRun) runSplitters(ctx context.Context, which Stages) error {
	return r.book.ForEachNumber(ctx, func(ctx context.Context, plan scale.Plan) error {
		for (which.Repartition || plan.Split) && ctx.Err() == nil {
			r.book.Until(ctx, func(now scale.Plan) bool { return now.To == 0 })
			while, stop := r.book.While(ctx, func(now scale.Plan) bool { return now.To == 0 })
			err := r.split(while, plan)
			if over := while.Err() != nil; !over { // as where a topic that was made a moment ago is not known yet
				r.Log.Warn("split topics by id, trying again", faultlog.Err(err))
				scale.Sleep(ctx)
			}
			stop()
		}
		return nil
	})
}

// split runs the groups of the topics that a plan splits, until ctx is done.
func (r *KafkaRun) split(ctx context.Context, plan scale.Plan) error {
	in := plan.Inputs(&r.Config)
	sources, _ := plan.Sources(&r.Config)
	if len(sources) == 0 {
		<-ctx.Done()
		return nil
	}
	// Only what is written to: there may be no labels topic.
	to := map[pipeline.Stream]string{pipeline.StreamDeadLetter: r.Config.Topics.DeadLetter}
	streams := [...]pipeline.Stream{pipeline.Logits: pipeline.StreamLogits, pipeline.Labels: pipeline.StreamLabels}
	for _, s := range sources {
		to[streams[s.Input]] = in[s.Input]
	}
	if r.Config.Topics.Decisions != "" {
		to[pipeline.StreamHistory] = r.Config.Topics.Decisions
	}
	written, err := kafkaio.NewSink(ctx, r.Client, to, r.Config.Kafka.MessageMax, r.Log)
	if err != nil {
		return err
	}
	sink := decisionlog.Recorder{Sink: written}
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range sources {
		u := relayed{plan: plan, Source: s}
		if u.task, u.group, err = u.names(ctx, r); err != nil {
			return err
		}
		// Partitions that are added need nothing but to be read.
		group := kafkaio.Group{ID: u.group, Brokers: r.Config.Kafka.Brokers, Dialer: r.Dialer,
			Topics: []string{s.Topic}, Watch: true, Log: r.Log,
			Client: r.Client, Session: r.Config.Kafka.Session, Members: filepath.Join(r.workDir(), "members")}
		r.due.await(u.task)
		group.Has = r.due.has(u.task, math.MaxInt)
		g.Go(func() error {
			defer r.due.leave(u.task)
			return group.Run(ctx, func(ctx context.Context, p int, commit kafkaio.CommitFunc) error {
				task := attempts.ID{Task: u.task, Partition: p}
				return r.attempts.Run(ctx, task, func(ctx context.Context, guard *attempts.Guard) error {
					u := u
					u.partition, u.guard = p, guard
					return r.repartition(ctx, u, sink, commit)
				})
			})
		})
	}
	return g.Wait()
}

// relayed is a partition of a topic that is split, and the group that reads it.
type relayed struct {
	scale.Source
	plan      scale.Plan
	task      string
	group     string
	partition int
	guard     pipeline.Guard
}

// names are those of the task and the group. A topic of inputs has a group of its own, and another one where it was
// made again: what was read of it then is not what is there.
func (u *relayed) names(ctx context.Context, r *KafkaRun) (task, group string, err error) {
	if u.As == nil {
		return splitterOf(u.Source), repartitionGroup(r, u.Source, u.plan), nil
	}
	name, err := sourceName(ctx, r.Client, u.Topic)
	return splitterOf(u.Source), r.Config.Group + "-input-" + name + u.plan.Suffix(), err
}

func repartitionGroup(r *KafkaRun, s scale.Source, plan scale.Plan) string {
	return r.Config.Group + "-" + splitterOf(s) + plan.Suffix()
}

// translate lets the repartition stage make messages in Arrow of the records of an input, where they are none.
func translate(rt *Engine, as *inputs.Config, cfg *repartition.Config) error {
	if as == nil {
		return nil
	}
	o := inputs.Options{Slices: rt.Config.Slices.Columns, MaxBytes: rt.Config.Kafka.MessageMax}
	if as.Registered() {
		registry, err := rt.registry()
		if err != nil {
			return err
		}
		o.Schemas = registry
	}
	d, err := inputs.New(*as, o)
	if err != nil {
		return fmt.Errorf("input %s: %w", as.Topic, err)
	}
	of := func(r *pipeline.Record) *inputs.Record {
		return &inputs.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, Time: r.Time}
	}
	cfg.Translate = func(r *pipeline.Record) ([][]byte, error) { return d.Decode(of(r)) }
	cfg.Ready = func(ctx context.Context, r *pipeline.Record) error {
		for {
			err := d.Ready(ctx, of(r))
			if err == nil || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			rt.troubles.Waits(r, err)
			scale.Sleep(ctx)
		}
	}
	return nil
}

// repartition works on one partition until ctx is done.
func (r *KafkaRun) repartition(ctx context.Context, u relayed, sink pipeline.Sink, commit kafkaio.CommitFunc) error {
	p := u.partition
	next, err := kafkaio.Committed(ctx, r.Client, u.group, u.Topic, p)
	if err != nil {
		return err
	}
	source, err := sourceName(ctx, r.Client, u.Topic)
	if err != nil {
		return err
	}
	fence := pipeline.FenceOf(u.plan.Fences, u.Input, source, p)
	if next < 0 && fence != nil {
		next = fence.From
	}
	of, err := kafkaio.Partitions(ctx, r.Client, u.Topic)
	if err != nil {
		return err
	}
	src := kafkaio.NewSource(kafkaio.Spec{
		Client:      r.Client,
		Topics:      map[pipeline.Input]string{u.Input: u.Topic},
		Partition:   p,
		Next:        map[pipeline.Input]int64{u.Input: next},
		MaxBytes:    r.Config.Kafka.FetchMax,
		IdleTimeout: r.Config.EventTime.IdleTimeout,
		MaxAhead:    r.Config.EventTime.MaxAhead,
		Commit:      fencedCommit(commit),
		Gate:        &r.gate,
		ReportPause: true,
		Log:         r.Log,
	})
	defer src.Close()
	counts := pipeline.NewCounts()
	split := repartition.Config{Input: u.Input, Topic: source, Partition: int32(p), Of: int32(max(of, p+1)),
		Targets: u.plan.Of, Keyed: !u.plan.Split, Fence: fence,
		Decode: arrowio.Options{Slices: r.Config.Slices.Columns, MaxMessageBytes: r.Config.Kafka.MessageMax}}
	if err := translate(r.Engine, u.As, &split); err != nil {
		return err
	}
	hashed, err := idKey(r.Config.Privacy.IDKeyFile)
	if err != nil {
		return err
	}
	convert := repartition.New(split, next, newOut(r.Engine, counts, hashed), counts)
	status := &pipeline.RelayStatus{Task: u.task, Partition: p}
	name := taskName(u.task, p)
	r.add(name, status)
	r.reads(name, src)
	defer r.remove(name)
	relay := pipeline.Relay{Name: name, Source: src, Convert: convert, Sink: sink, Input: u.Input, Next: next,
		Interval: r.Config.Checkpoints.Interval, Log: r.Log, Counts: counts, Status: status,
		Guard: u.guard, Confirm: r.confirmed.lately, Trace: splitterLane(r, u)}
	return lasting(relay.Run(ctx))
}

// sourceName is what shards know an unkeyed topic by: its name and its id.
func sourceName(ctx context.Context, client *kafka.Client, topic string) (string, error) {
	ids, err := kafkaio.TopicIDs(ctx, client, topic)
	if err != nil || ids[0] == (kafkaio.TopicID{}) {
		return topic, err
	}
	return topic + "@" + hex.EncodeToString(ids[0][:]), nil
}

// rewind lets the repartition stage read topics that were made again from their start, whatever it has
// committed of them before anyone knew.
func rewind(ctx context.Context, r *KafkaRun, remade map[string]bool) error {
	plan, _ := r.book.Now()
	split, _ := plan.Sources(&r.Config)
	for _, s := range split {
		topic := s.Topic
		if !remade[topic] || s.As != nil {
			continue
		}
		n, err := kafkaio.Partitions(ctx, r.Client, topic)
		if err != nil {
			return err
		}
		group := repartitionGroup(r, s, plan)
		req := &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{}}
		for p := range n {
			lo, _, err := kafkaio.Bounds(ctx, r.Client, topic, p)
			if err != nil {
				return err
			}
			req.Topics[topic] = append(req.Topics[topic], kafka.OffsetCommit{Partition: p, Offset: lo})
		}
		res, err := r.Client.OffsetCommit(ctx, req)
		if err == nil {
			for _, p := range res.Topics[topic] {
				err = errors.Join(err, p.Error)
			}
		}
		if err != nil {
			return fmt.Errorf("offsets of group %s: %w", group, err)
		}
	}
	return nil
}

// fencedCommit is commit that tells by ErrFenced that the group has gone on without this process.
func fencedCommit(commit kafkaio.CommitFunc) kafkaio.CommitFunc {
	return func(ctx context.Context, next map[string]int64) error {
		err := commit(ctx, next)
		for _, gone := range []kafka.Error{kafka.UnknownMemberId, kafka.IllegalGeneration, kafka.FencedInstanceID} {
			if errors.Is(err, gone) {
				return fmt.Errorf("%w: %w", pipeline.ErrFenced, err)
			}
		}
		return err
	}
}
