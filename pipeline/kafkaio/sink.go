package kafkaio

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// Sink writes messages to topics with acks from all in-sync replicas. A stream without a topic is dropped.
type Sink struct {
	client   *kafka.Client
	topics   map[pipeline.Stream]string
	maxBytes int
	log      *slog.Logger

	mu         sync.Mutex
	partitions map[string]int       // of topics
	absent     map[string]time.Time // since when a topic is unknown to the brokers
}

// NewSink returns a sink, once the brokers have told the number of partitions of every topic.
func NewSink(ctx context.Context, c *kafka.Client, topics map[pipeline.Stream]string, maxBytes int,
	log *slog.Logger) (*Sink, error) {
	s := &Sink{
		client:     c,
		topics:     topics,
		partitions: map[string]int{},
		maxBytes:   maxBytes,
		log:        log,
		absent:     map[string]time.Time{},
	}
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

// lane is a partition to which a stream's messages go.
type lane struct {
	stream pipeline.Stream
	topicPartition
}

// Write implements pipeline.Sink. It tries again until ctx is done: while a broker is away the shard stalls, which is
// the back pressure, and nothing is lost. Messages that a broker refuses for good are dropped, all others are written,
// and the error is a pipeline.RefusedError.
func (s *Sink) Write(ctx context.Context, ms []pipeline.Message) error {
	by := map[lane][]kafka.Record{}
	size := map[lane]int{}
	var order []lane
	var refused refusals
	for i := range ms {
		m := &ms[i]
		topic, ok := s.topics[m.Stream]
		if !ok {
			continue
		}
		l := lane{m.Stream, topicPartition{topic, s.place(topic, m)}}
		if m.Size() > max(2*s.maxBytes, maxRequest) { // a broker would cut the connection
			s.drop(l, 1, m.Size(), kafka.MessageSizeTooLarge, &refused)
			continue
		}
		if len(by[l]) == 0 {
			order = append(order, l)
		} else if size[l]+m.Size() > s.maxBytes/2 {
			if err := s.produce(ctx, l, by[l], &refused); err != nil {
				return err
			}
			by[l], size[l] = by[l][:0], 0
		}
		by[l] = append(by[l], record(m))
		size[l] += m.Size()
	}
	for _, l := range order {
		if len(by[l]) > 0 {
			if err := s.produce(ctx, l, by[l], &refused); err != nil {
				return err
			}
		}
	}
	return refused.err()
}

func (s *Sink) place(topic string, m *pipeline.Message) int {
	s.mu.Lock()
	n := s.partitions[topic]
	s.mu.Unlock()
	if m.Partition >= 0 {
		return int(m.Partition) % n
	}
	return murmur.PartitionOf(m.Key, n)
}

// recount reports whether a topic has another number of partitions than before, as one that was deleted and made again:
// its messages need other places.
func (s *Sink) recount(ctx context.Context, topic string) bool {
	n, err := Partitions(ctx, s.client, topic)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || n == 0 || n == s.partitions[topic] {
		return false
	}
	s.partitions[topic] = n
	return true
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

// produce writes records to one partition. If the broker refuses one of them for its content, the others are written
// without it.
func (s *Sink) produce(ctx context.Context, l lane, rs []kafka.Record, refused *refusals) error {
	pause := retries()
	for dated := true; ; {
		err := s.try(ctx, l.topicPartition, rs)
		switch {
		case err == nil:
			s.known(l.topic)
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("produce to %s partition %d: %w", l.topic, l.partition, err)
		case dated && errors.Is(err, kafka.InvalidTimestamp): // times are those of producers
			dated = false
			undate(rs)
			continue
		case s.hopeless(l, err), len(rs) == 1 && s.lost(l, &rs[0], err), ofRecord(err) && refused.many(l.stream):
			s.drop(l, len(rs), bytesOf(rs), err, refused)
			return nil
		case separable(l, err) && len(rs) > 1:
			half := len(rs) / 2
			if err := s.produce(ctx, l, rs[:half], refused); err != nil {
				return err
			}
			return s.produce(ctx, l, rs[half:], refused)
		case ofRecord(err), permanent(err), unknownTopic(err) && s.recount(ctx, l.topic):
			return unwritten(l, len(rs), err)
		}
		s.log.Warn("produce, trying again", "topic", l.topic, "partition", l.partition, faultlog.Err(err))
		pause.Wait(ctx)
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
