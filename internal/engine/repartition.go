package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// splitter runs the stage that splits topics by id.
type splitter struct {
	*host
	build *builder
	every time.Duration // between questions whether topics were made again
}

// run runs a consumer group for each topic that is split by id, because their numbers of partitions differ. While
// shards are being sealed no topic is split: nobody would read the result. always: also while the plan splits none.
func (s *splitter) run(ctx context.Context, always bool) error {
	return s.Book.ForEachNumber(ctx, func(ctx context.Context, plan scale.Plan) error {
		for (always || plan.Split) && ctx.Err() == nil {
			s.Book.Until(ctx, func(now scale.Plan) bool { return now.To == 0 })
			while, stop := s.Book.While(ctx, func(now scale.Plan) bool { return now.To == 0 })
			err := s.split(while, plan)
			if over := while.Err() != nil; !over { // as where a topic that was made a moment ago is not known yet
				s.Log.Warn("split topics by id, trying again", faultlog.Err(err))
				scale.Sleep(ctx)
			}
			stop()
		}
		return nil
	})
}

// split runs the groups of the topics that a plan splits, until ctx is done.
func (s *splitter) split(ctx context.Context, plan scale.Plan) error {
	due := &s.process.due
	in := plan.Inputs(s.Config)
	sources, _ := plan.Sources(s.Config)
	if len(sources) == 0 {
		<-ctx.Done()
		return nil
	}
	// Only what is written to: there may be no labels topic.
	to := map[pipeline.Stream]string{pipeline.StreamDeadLetter: s.Config.Topics.DeadLetter}
	streams := [...]pipeline.Stream{pipeline.Logits: pipeline.StreamLogits, pipeline.Labels: pipeline.StreamLabels}
	for _, from := range sources {
		to[streams[from.Input]] = in[from.Input]
	}
	if s.Config.Topics.Decisions != "" {
		to[pipeline.StreamHistory] = s.Config.Topics.Decisions
	}
	written, err := kafkaio.NewSink(ctx, s.Client, to, s.Config.Kafka.MessageMax, s.Log)
	if err != nil {
		return err
	}
	sink := decisionlog.Recorder{Sink: written}
	made, err := s.AskInputs(ctx, plan)
	if err != nil {
		return err
	}
	while, end := context.WithCancelCause(ctx)
	defer end(nil)
	g, ctx := errgroup.WithContext(while)
	g.Go(func() error {
		end(made.Watch(ctx, s.every)) // there may be no relay that asks
		return nil
	})
	for _, from := range sources {
		u := relayed{plan: plan, Source: from, task: deployment.SplitterOf(from), group: made.Group(from),
			topics: &s.Confirmed}
		if from.As != nil {
			if made.Absent(from.Topic) {
				due.leave(u.task)
				continue
			}
			u.input, u.name = &made.Confirmed, made.Name(from.Topic)
		}
		due.await(u.task)
		group := s.group(u.group, u.task, math.MaxInt, from.Topic)
		group.Watch = true // partitions that are added need nothing but to be read
		g.Go(func() error {
			defer due.leave(u.task)
			defer group.Silent(time.Time{}, nil)
			return group.Run(ctx, func(ctx context.Context, p int, commit kafkaio.CommitFunc) error {
				task := attempts.ID{Task: u.task, Partition: p}
				return s.process.attempts.Run(ctx, task, func(ctx context.Context, guard *attempts.Guard) error {
					u := u
					u.partition, u.guard = p, guard
					err := s.relay(ctx, u, sink, commit)
					if errors.Is(err, deployment.ErrMadeAgain) {
						end(err) // first: no task has failed
					}
					return err
				})
			})
		})
	}
	err = g.Wait()
	if cause := context.Cause(while); errors.Is(cause, deployment.ErrMadeAgain) {
		return cause
	}
	return err
}

// relayed is a partition of a topic that is split, with its group.
type relayed struct {
	scale.Source
	plan      scale.Plan
	task      string
	group     string
	partition int
	guard     pipeline.Guard

	// An input topic has a group for each of its ids: when it is deleted and made again, offsets of the old one must
	// not apply. So a relay keeps the topic's id from the start of its group to the end.
	input *deployment.Confirmer
	name  string // see deployment.SourceName

	topics *deployment.Confirmer // that those of the state are the same
}

// confirm returns an error if the topic, or one that the state depends on, was made again. Shortly after an answer it
// does not ask again.
func (u *relayed) confirm(ctx context.Context) error {
	err := u.topics.Lately(ctx)
	if err == nil && u.input != nil {
		err = u.input.Lately(ctx)
	}
	return err
}

// doubt makes confirm ask again.
func (u *relayed) doubt() {
	u.topics.Doubt()
	if u.input != nil {
		u.input.Doubt()
	}
}

// ended returns the error with which a relay ends. Records missing from a log that was made again do not count as
// lost.
func (u *relayed) ended(ctx context.Context, err error) error {
	if errors.Is(err, kafka.OffsetOutOfRange) {
		u.doubt()
		err = cmp.Or(u.confirm(ctx), err)
	}
	return lasting(gone(u.task, u.partition, err))
}

// relay splits one partition until ctx is done.
func (s *splitter) relay(ctx context.Context, u relayed, sink pipeline.Sink, commit kafkaio.CommitFunc) error {
	p := u.partition
	next, err := kafkaio.Committed(ctx, s.Client, u.group, u.Topic, p)
	if err != nil {
		return err
	}
	u.doubt() // the topic may be another one than that of the last attempt
	source := u.name
	if source == "" {
		if source, err = deployment.SourceName(ctx, s.Client, u.Topic); err != nil {
			return err
		}
	}
	fence := pipeline.FenceOf(u.plan.Fences, u.Input, source, p)
	if next < 0 && fence != nil {
		next = fence.From
	}
	of, err := kafkaio.Partitions(ctx, s.Client, u.Topic)
	if err != nil {
		return err
	}
	src := kafkaio.NewSource(kafkaio.Spec{
		Client:      s.Client,
		Topics:      map[pipeline.Input]string{u.Input: u.Topic},
		Partition:   p,
		Next:        map[pipeline.Input]int64{u.Input: next},
		MaxBytes:    s.Config.Kafka.FetchMax,
		IdleTimeout: s.Config.EventTime.IdleTimeout,
		MaxAhead:    s.Config.EventTime.MaxAhead,
		Clock:       s.Clock,
		Commit:      fencedCommit(commit),
		Gate:        &s.process.gate,
		ReportPause: true,
		Doubt:       u.doubt,
		Log:         s.Log,
	})
	defer src.Close()
	counts := pipeline.NewCounts()
	split := repartition.Config{Input: u.Input, Topic: source, Partition: int32(p), Of: int32(max(of, p+1)),
		Targets: u.plan.Of, Keyed: !u.plan.Split, Fence: fence,
		Decode: arrowio.Options{Slices: s.Config.Slices.Columns, MaxMessageBytes: s.Config.Kafka.MessageMax}}
	if err := s.build.translate(u.As, &split); err != nil {
		return err
	}
	hashed, err := idKey(s.Config.Privacy.IDKeyFile)
	if err != nil {
		return err
	}
	convert := repartition.New(split, next, s.build.newOut(counts, hashed), counts)
	status := &pipeline.RelayStatus{Task: u.task, Partition: p}
	name := taskName(u.task, p)
	s.process.add(name, status)
	s.process.reads(name, src)
	defer s.process.remove(name)
	relay := pipeline.Relay{Name: name, Source: src, Convert: convert, Sink: sink, Input: u.Input, Next: next,
		Interval: s.Config.Checkpoints.Interval, Log: s.Log, Counts: counts, Status: status,
		Guard: u.guard, Trace: s.relayLane(u), Confirm: u.confirm}
	return u.ended(ctx, relay.Run(ctx))
}

// relayLane returns the tracer's lane for a topic that is split by id.
func (s *splitter) relayLane(u relayed) *tracing.Lane {
	l := s.laneOf("repartition", u.group)
	in := u.plan.Inputs(s.Config)
	to := map[string]string{
		string(pipeline.StreamLogits): in[pipeline.Logits],
		string(pipeline.StreamLabels): in[pipeline.Labels],
	}
	l.Topic = func(stream string) string { return to[stream] }
	return l
}

// fencedCommit wraps commit: it returns ErrFenced if the group has gone on without this process.
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
