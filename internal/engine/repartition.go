package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// unkeyed is a topic whose messages the repartition stage splits by id.
type unkeyed struct {
	input         pipeline.Input
	topic, target string
}

// unkeyedTopics lists the topics that are configured.
func (rt *Engine) unkeyedTopics() []unkeyed {
	var out []unkeyed
	t := rt.Config.Topics
	if t.LogitsUnkeyed != "" {
		out = append(out, unkeyed{pipeline.Logits, t.LogitsUnkeyed, t.Logits})
	}
	if t.LabelsUnkeyed != "" {
		out = append(out, unkeyed{pipeline.Labels, t.LabelsUnkeyed, t.Labels})
	}
	return out
}

// runRepartition runs a consumer group for each unkeyed topic: their numbers of partitions are their own.
func (r *KafkaRun) runRepartition(ctx context.Context, g *errgroup.Group) error {
	topics := map[pipeline.Stream]string{
		pipeline.StreamLogits:     r.Config.Topics.Logits,
		pipeline.StreamLabels:     r.Config.Topics.Labels,
		pipeline.StreamDeadLetter: r.Config.Topics.DeadLetter,
	}
	if r.Config.Topics.Decisions != "" {
		topics[pipeline.StreamHistory] = r.Config.Topics.Decisions
	}
	to, err := kafkaio.NewSink(ctx, r.Client, topics, r.Config.Kafka.MessageMax, r.Log)
	if err != nil {
		return err
	}
	sink := decisionlog.Recorder{Sink: to}
	for _, u := range r.unkeyedTopics() {
		id := r.Config.Group + "-repartition-" + u.input.String()
		// Partitions that are added need nothing but to be read.
		group := kafkaio.Group{ID: id, Brokers: r.Config.Kafka.Brokers, Dialer: r.Dialer, Topics: []string{u.topic},
			Watch: true, Log: r.Log,
			Client: r.Client, Session: r.Config.Kafka.Session, Members: filepath.Join(r.workDir(), "members")}
		g.Go(func() error {
			return group.Run(ctx, func(ctx context.Context, p int, commit kafkaio.CommitFunc) error {
				task := attempts.ID{Task: "repartition-" + u.input.String(), Partition: p}
				return r.attempts.Run(ctx, task, func(ctx context.Context, guard *attempts.Guard) error {
					return r.repartition(ctx, relayed{u, id, p, guard}, sink, commit)
				})
			})
		})
	}
	return nil
}

// relayed is a partition of an unkeyed topic, and the group that reads it.
type relayed struct {
	unkeyed
	group     string
	partition int
	guard     pipeline.Guard
}

// repartition works on one partition until ctx is done.
func (r *KafkaRun) repartition(ctx context.Context, u relayed, sink pipeline.Sink, commit kafkaio.CommitFunc) error {
	p := u.partition
	next, err := kafkaio.Committed(ctx, r.Client, u.group, u.topic, p)
	if err != nil {
		return err
	}
	of, err := kafkaio.Partitions(ctx, r.Client, u.topic)
	if err != nil {
		return err
	}
	src := kafkaio.NewSource(kafkaio.Spec{
		Client:      r.Client,
		Topics:      map[pipeline.Input]string{u.input: u.topic},
		Partition:   p,
		Next:        map[pipeline.Input]int64{u.input: next},
		MaxBytes:    r.Config.Kafka.FetchMax,
		IdleTimeout: r.Config.EventTime.IdleTimeout,
		Commit:      fencedCommit(commit),
		Gate:        &r.gate,
		ReportPause: true,
		Log:         r.Log,
	})
	defer src.Close()
	counts := pipeline.NewCounts()
	split := repartition.Config{Input: u.input, Topic: u.topic, Partition: int32(p), Of: int32(max(of, p+1)),
		Targets: r.shards, Keyed: true,
		Decode: arrowio.Options{Slices: r.Config.Slices.Columns, MaxMessageBytes: r.Config.Kafka.MessageMax}}
	hashed, err := idKey(r.Config.Privacy.IDKeyFile)
	if err != nil {
		return err
	}
	convert := repartition.New(split, next, newOut(r.Engine, counts, hashed), counts)
	status := &pipeline.RelayStatus{Partition: p}
	name := taskName("repartition-"+u.input.String(), p)
	r.add(name, status)
	r.reads(name, src)
	defer r.remove(name)
	relay := pipeline.Relay{Name: name, Source: src, Convert: convert, Sink: sink, Input: u.input, Next: next,
		Interval: r.Config.Checkpoints.Interval, Log: r.Log, Counts: counts, Status: status,
		Guard: u.guard}
	return lasting(relay.Run(ctx))
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
