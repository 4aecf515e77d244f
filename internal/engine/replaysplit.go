package engine

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// splitReplay is a replay of topics whose rows lie in partitions of several numbers: it splits them by id, as the live
// run does, and joins what lies in any two partitions.
type splitReplay struct {
	*Replay
	client  *kafka.Client
	plan    scale.Plan
	sources []*splitSource
	to      []chan pipeline.Record // by shard
	next    [2][]int64             // offsets of what shards are given, by input and shard
}

// splitSource is one partition of a topic that is split.
type splitSource struct {
	in   pipeline.Input
	name string // with its id, as the live run knows it
	src  *kafkaio.Source
	conv *repartition.Converter
	head *pipeline.Record // the record to be taken next; nil = the range has ended
}

// splitAhead is how many parts may wait for a shard.
const splitAhead = 64

func newSplitReplay(r *Replay, client *kafka.Client, plan scale.Plan) *splitReplay {
	s := &splitReplay{Replay: r, client: client, plan: plan}
	for range plan.Of {
		s.to = append(s.to, make(chan pipeline.Record, splitAhead))
	}
	for in := range s.next {
		s.next[in] = make([]int64, plan.Of)
	}
	return s
}

// run reads the topics to the end of the range, the oldest record first, so that few rows wait for each other.
func (s *splitReplay) run(ctx context.Context, of TopicRange) error {
	defer func() {
		for _, from := range s.sources {
			_ = from.src.Close()
		}
	}()
	total, err := s.open(ctx, of)
	if err != nil {
		return err
	}
	of.Begin(total)
	g, ctx := errgroup.WithContext(ctx)
	for p := range s.to {
		g.Go(func() error { return s.shard(ctx, p) })
	}
	g.Go(func() error {
		defer func() {
			for _, c := range s.to {
				close(c)
			}
		}()
		return s.read(ctx, of.Done)
	})
	return g.Wait()
}

// open opens the partitions of the topics, and returns how many messages there are.
func (s *splitReplay) open(ctx context.Context, of TopicRange) (total int64, err error) {
	split, _ := s.plan.Sources(&s.Config)
	for _, source := range split {
		n, err := kafkaio.Partitions(ctx, s.client, source.Topic)
		if err != nil {
			return 0, err
		}
		name, err := deployment.SourceName(ctx, s.client, source.Topic)
		if err != nil {
			return 0, err
		}
		for p := range n {
			lo, hi, err := of.offsets(ctx, s.client, source.Topic, p)
			if err != nil {
				return 0, err
			}
			total += max(hi-lo, 0)
			from, err := s.source(source, name, kafkaio.Spec{
				Client:    s.client,
				Topics:    map[pipeline.Input]string{source.Input: source.Topic},
				Partition: p,
				Next:      map[pipeline.Input]int64{source.Input: lo},
				Until:     map[pipeline.Input]int64{source.Input: hi},
				MaxBytes:  s.Config.Kafka.FetchMax,
				Log:       s.Log,
			}, int32(n))
			if err != nil {
				return 0, err
			}
			s.sources = append(s.sources, from)
		}
	}
	return total, nil
}

// source opens one of so many partitions of a topic.
func (s *splitReplay) source(of scale.Source, name string, spec kafkaio.Spec, partitions int32) (*splitSource, error) {
	counts := pipeline.NewCounts()
	cfg := repartition.Config{Input: of.Input, Topic: name, Partition: int32(spec.Partition), Of: partitions,
		Targets: s.plan.Of,
		Decode:  arrowio.Options{Slices: s.Config.Slices.Columns, MaxMessageBytes: s.Config.Kafka.MessageMax}}
	if err := s.translate(of.As, &cfg); err != nil {
		return nil, err
	}
	if len(s.skips.parts) > 0 { // each of several records that went together is found by itself
		cfg.Together = nil
	}
	return &splitSource{in: of.Input, name: name, src: kafkaio.NewSource(spec),
		conv: repartition.New(cfg, spec.Next[of.Input], pipeline.NewOut(counts), counts)}, nil
}

// read splits the records until the last source has ended.
func (s *splitReplay) read(ctx context.Context, done func(messages int64)) error {
	for _, from := range s.sources { // all are known before the first row
		if err := s.send(ctx, from, from.conv.Opening()); err != nil {
			return err
		}
	}
	for _, from := range s.sources {
		if err := s.advance(ctx, from); err != nil {
			return err
		}
	}
	swept := int64(0)
	for {
		var from *splitSource
		for _, other := range s.sources {
			if other.head != nil && (from == nil || other.head.Time < from.head.Time) {
				from = other
			}
		}
		if from == nil {
			return nil
		}
		if from.head.Time > swept+int64(time.Second) { // what is held waits for no record that comes much later
			swept = from.head.Time
			for _, other := range s.sources {
				if err := s.send(ctx, other, other.conv.Release()); err != nil {
					return err
				}
			}
		}
		if err := from.conv.Ready(ctx, from.head); err != nil {
			return err
		}
		if err := s.send(ctx, from, s.split(from)); err != nil {
			return err
		}
		done(1)
		if err := s.advance(ctx, from); err != nil {
			return err
		}
	}
}

// split is what becomes of a source's next record.
func (s *splitReplay) split(from *splitSource) []pipeline.Message {
	defer from.conv.Gather() // what it would tell replays
	s.skips.reads(from.name, from.head)
	if why, ok := s.skips.poison(from.head); ok {
		return from.conv.Skip(*from.head, why)
	}
	from.head.Ahead = s.skips.ahead(from.head)
	return from.conv.Take(*from.head)
}

// advance reads a source's next record. At its end the source holds nobody back.
func (s *splitReplay) advance(ctx context.Context, from *splitSource) error {
	r, err := from.src.Next(ctx)
	if errors.Is(err, io.EOF) {
		from.head = nil
		return s.send(ctx, from, from.conv.Take(pipeline.Record{Input: from.in, Idle: true}))
	}
	from.head = &r
	return err
}

// send gives the shards their parts.
func (s *splitReplay) send(ctx context.Context, from *splitSource, parts []pipeline.Message) error {
	for _, m := range parts {
		if m.Stream != pipeline.StreamLogits && m.Stream != pipeline.StreamLabels {
			continue
		}
		offset := &s.next[from.in][m.Partition]
		r := pipeline.Record{Input: from.in, Topic: "by id", Partition: m.Partition, Offset: *offset, Time: m.Time,
			Key: m.Key, Value: m.Value, Headers: m.Headers}
		*offset++
		select {
		case s.to[m.Partition] <- r:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// shard runs a shard over its parts.
func (s *splitReplay) shard(ctx context.Context, p int) error {
	for r := range s.to[p] {
		if err := s.take(ctx, p, r); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.drain(ctx, p, inputsOf(&s.Config))
}
