package engine

import (
	"context"
	"encoding/hex"
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
	sources := r.unkeyedTopics()
	if len(sources) == 0 {
		return nil
	}
	// Only what is written to: there may be no labels topic.
	topics := map[pipeline.Stream]string{pipeline.StreamDeadLetter: r.Config.Topics.DeadLetter}
	streams := [...]pipeline.Stream{pipeline.Logits: pipeline.StreamLogits, pipeline.Labels: pipeline.StreamLabels}
	for _, u := range sources {
		topics[streams[u.input]] = u.target
	}
	if r.Config.Topics.Decisions != "" {
		topics[pipeline.StreamHistory] = r.Config.Topics.Decisions
	}
	to, err := kafkaio.NewSink(ctx, r.Client, topics, r.Config.Kafka.MessageMax, r.Log)
	if err != nil {
		return err
	}
	sink := decisionlog.Recorder{Sink: to}
	for _, u := range sources {
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
	source, err := sourceName(ctx, r, u.topic)
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
	split := repartition.Config{Input: u.input, Topic: source, Partition: int32(p), Of: int32(max(of, p+1)),
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
		Guard: u.guard, Confirm: func(ctx context.Context) error { return unchanged(ctx, r) }}
	return lasting(relay.Run(ctx))
}

// sourceName is what shards know an unkeyed topic by: its name and its id.
func sourceName(ctx context.Context, r *KafkaRun, topic string) (string, error) {
	ids, err := kafkaio.TopicIDs(ctx, r.Client, topic)
	if err != nil || ids[0] == (kafkaio.TopicID{}) {
		return topic, err
	}
	return topic + "@" + hex.EncodeToString(ids[0][:]), nil
}

// rewind lets the repartition stage read unkeyed topics that were made again from their start, whatever it has
// committed of them before anyone knew.
func rewind(ctx context.Context, r *KafkaRun, remade map[string]bool) error {
	for _, u := range r.unkeyedTopics() {
		if !remade[u.topic] {
			continue
		}
		n, err := kafkaio.Partitions(ctx, r.Client, u.topic)
		if err != nil {
			return err
		}
		group := r.Config.Group + "-repartition-" + u.input.String()
		req := &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{}}
		for p := range n {
			lo, _, err := kafkaio.Bounds(ctx, r.Client, u.topic, p)
			if err != nil {
				return err
			}
			req.Topics[u.topic] = append(req.Topics[u.topic], kafka.OffsetCommit{Partition: p, Offset: lo})
		}
		res, err := r.Client.OffsetCommit(ctx, req)
		if err == nil {
			for _, p := range res.Topics[u.topic] {
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
