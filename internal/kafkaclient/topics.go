package kafkaclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// Followed is a topic and who takes its records; errors are logged, with the record's place.
type Followed struct {
	Topic string
	Take  func(value []byte) error
}

// Follow reads topics from their start and for ever; caughtUp is called once, when all have been read to their end.
func Follow(ctx context.Context, g *errgroup.Group, client *kafka.Client, fetchMax int, log *slog.Logger, topics []Followed, caughtUp func()) error {
	var left atomic.Int32
	left.Store(1)
	end := func() {
		if left.Add(-1) == 0 {
			caughtUp()
		}
	}
	for _, f := range topics {
		if f.Topic == "" {
			continue
		}
		n, err := kafkaio.Partitions(ctx, client, f.Topic)
		if err != nil {
			return NoTopic(err)
		}
		left.Add(int32(n)) //nolint:gosec // a topic's partitions
		for p := range n {
			src := kafkaio.NewSource(kafkaio.Spec{Client: client, Topics: map[pipeline.Input]string{pipeline.Panes: f.Topic}, Partition: p,
				Next: map[pipeline.Input]int64{pipeline.Panes: -1}, MaxBytes: fetchMax, IdleTimeout: time.Millisecond, Log: log})
			g.Go(func() error {
				defer src.Close()
				return followOne(ctx, src, f.Take, log, end)
			})
		}
	}
	end()
	return nil
}

func followOne(ctx context.Context, src pipeline.Source, take func([]byte) error, log *slog.Logger, end func()) error {
	for first := true; ; {
		rec, err := src.Next(ctx)
		if ctx.Err() != nil || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Idle {
			if first {
				end()
				first = false
			}
			continue
		}
		if err := take(rec.Value); err != nil {
			log.Error("record cannot be used", "topic", rec.Topic, "partition", rec.Partition, "offset", rec.Offset, "err", err)
		}
	}
}

// Read hands over all records that a topic has now. What cannot be used is left out, as it is by all others.
func Read(ctx context.Context, client *kafka.Client, cfg config.Config, f Followed) error {
	n, err := kafkaio.Partitions(ctx, client, f.Topic)
	if err != nil {
		return err
	}
	for p := range n {
		if err := ReadPartition(ctx, client, cfg, f.Topic, p, func(rec *pipeline.Record) { _ = f.Take(rec.Value) }); err != nil {
			return err
		}
	}
	return nil
}

// ReadPartition hands over all records that a partition has now; their memory is valid until take returns.
func ReadPartition(ctx context.Context, client *kafka.Client, cfg config.Config, topic string, p int, take func(*pipeline.Record)) error {
	lo, hi, err := kafkaio.Bounds(ctx, client, topic, p)
	if err != nil || lo == hi {
		return err
	}
	src := kafkaio.NewSource(kafkaio.Spec{Client: client, Topics: map[pipeline.Input]string{pipeline.Panes: topic}, Partition: p, Next: map[pipeline.Input]int64{pipeline.Panes: lo},
		Until: map[pipeline.Input]int64{pipeline.Panes: hi}, MaxBytes: cfg.Kafka.FetchMax, Log: slog.New(slog.DiscardHandler)})
	for err == nil {
		var rec pipeline.Record
		if rec, err = src.Next(ctx); err == nil {
			take(&rec)
		}
	}
	if cerr := src.Close(); !errors.Is(err, io.EOF) {
		return errors.Join(err, cerr)
	}
	return nil
}

// Partitions asks for the number of partitions of a topic that exists.
func Partitions(ctx context.Context, client *kafka.Client, topic string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, MetadataWait)
	defer cancel()
	for {
		meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil {
			return 0, fmt.Errorf("metadata of topic %s: %w", topic, err)
		}
		if len(meta.Topics) == 1 && meta.Topics[0].Error == nil && len(meta.Topics[0].Partitions) > 0 {
			return len(meta.Topics[0].Partitions), nil
		}
		select {
		case <-ctx.Done():
			if len(meta.Topics) == 1 && meta.Topics[0].Error != nil {
				return 0, fmt.Errorf("metadata of topic %s: %w", topic, meta.Topics[0].Error)
			}
			return 0, fmt.Errorf("metadata of topic %s: %w", topic, kafka.UnknownTopicOrPartition)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// InputPartitions is the number of partitions of the logits topic, which the labels topic must have too.
func InputPartitions(ctx context.Context, client *kafka.Client, t config.Topics) (int, error) {
	n, err := Partitions(ctx, client, t.Logits)
	if err != nil || t.Labels == "" {
		return n, err
	}
	m, err := Partitions(ctx, client, t.Labels)
	if err == nil && m != n {
		err = fmt.Errorf("topics %s with %d partitions and %s with %d: must have the same number", t.Logits, n, t.Labels, m)
	}
	return n, err
}

// MetadataWait bounds how long a topic that was just made may be unknown to the broker that is asked.
const MetadataWait = 10 * time.Second
