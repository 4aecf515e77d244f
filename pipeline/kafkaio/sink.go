package kafkaio

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
)

// Sink writes messages to topics with acks from all in-sync replicas. A stream without a topic is dropped.
type Sink struct {
	client     *kafka.Client
	topics     map[pipeline.Stream]string
	partitions map[string]int
	maxBytes   int
	log        *slog.Logger
}

// NewSink returns a sink; it asks for the number of partitions of every topic.
func NewSink(ctx context.Context, c *kafka.Client, topics map[pipeline.Stream]string, maxBytes int,
	log *slog.Logger) (*Sink, error) {
	s := &Sink{client: c, topics: topics, partitions: map[string]int{}, maxBytes: maxBytes, log: log}
	for _, t := range topics {
		n, err := Partitions(ctx, c, t)
		if err != nil {
			return nil, err
		}
		s.partitions[t] = n
	}
	return s, nil
}

type topicPartition struct {
	topic     string
	partition int
}

// Write implements pipeline.Sink. It tries again until ctx is done: a broker that is away stalls the shard, which
// is the back pressure, and loses nothing.
func (s *Sink) Write(ctx context.Context, ms []pipeline.Message) error {
	by := map[topicPartition][]kafka.Record{}
	size := map[topicPartition]int{}
	var order []topicPartition
	for i := range ms {
		m := &ms[i]
		topic, ok := s.topics[m.Stream]
		if !ok {
			continue
		}
		tp := topicPartition{topic, s.place(topic, m)}
		if len(by[tp]) == 0 {
			order = append(order, tp)
		} else if size[tp]+len(m.Value) > s.maxBytes/2 {
			if err := s.produce(ctx, tp, by[tp]); err != nil {
				return err
			}
			by[tp], size[tp] = by[tp][:0], 0
		}
		by[tp] = append(by[tp], record(m))
		size[tp] += len(m.Value) + len(m.Key)
	}
	for _, tp := range order {
		if len(by[tp]) > 0 {
			if err := s.produce(ctx, tp, by[tp]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sink) place(topic string, m *pipeline.Message) int {
	n := s.partitions[topic]
	if m.Partition >= 0 {
		return int(m.Partition) % n
	}
	return pipeline.PartitionOf(m.Key, n)
}

func record(m *pipeline.Message) kafka.Record {
	r := kafka.Record{Value: kafka.NewBytes(m.Value)}
	if m.Key != nil {
		r.Key = kafka.NewBytes(m.Key)
	}
	if m.Time > 0 {
		r.Time = time.Unix(0, m.Time)
	}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, kafka.Header{Key: h.Key, Value: h.Value})
	}
	return r
}

func (s *Sink) produce(ctx context.Context, tp topicPartition, rs []kafka.Record) error {
	backoff := retryBackoff
	for {
		err := s.try(ctx, tp, rs)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("produce to %s partition %d: %w", tp.topic, tp.partition, err)
		}
		if permanent(err) {
			return fmt.Errorf("produce %d records to %s partition %d: %w", len(rs), tp.topic, tp.partition, err)
		}
		s.log.Warn("produce, trying again", "topic", tp.topic, "partition", tp.partition, faultlog.Err(err))
		sleep(ctx, backoff)
		backoff = min(2*backoff, maxBackoff)
	}
}

func (s *Sink) try(ctx context.Context, tp topicPartition, rs []kafka.Record) error {
	for i := range rs { // an attempt that failed has consumed the readers
		rewind(&rs[i])
	}
	res, err := s.client.Produce(ctx, &kafka.ProduceRequest{Topic: tp.topic, Partition: tp.partition,
		RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(rs...)})
	if err != nil {
		return err
	}
	return res.Error
}

// Close implements pipeline.Sink.
func (s *Sink) Close() error { return nil }
