package kafkaio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
)

// Limits of one fetch.
const (
	fetchWait    = 500 * time.Millisecond
	fetchQueue   = 2 // responses read ahead
	retryBackoff = 500 * time.Millisecond
	maxBackoff   = 10 * time.Second
)

// fetcher reads one partition ahead of its consumer, a bounded number of responses.
type fetcher struct {
	client    *kafka.Client
	input     pipeline.Input
	topic     string
	partition int
	maxBytes  int
	until     int64 // stop before this offset; -1 = never
	gate      *Gate
	log       *slog.Logger

	out  chan []pipeline.Record
	next int64        // offset to fetch
	done atomic.Int64 // next, for the consumer; every record before it is in out or was handed out
	end  atomic.Int64 // the log's end as last reported; -1 = not yet
	high int64        // end, until the records are in out
	err  error        // set before out is closed
}

// run fetches until ctx is done, the end offset, or an error that retrying cannot mend.
func (f *fetcher) run(ctx context.Context) {
	defer close(f.out)
	defer pipeline.Caught(&f.err) // the task's error, not the end of the process
	backoff := retryBackoff
	for {
		if f.until >= 0 && f.next >= f.until {
			f.err = io.EOF
			return
		}
		f.waitOpen(ctx)
		rs, err := f.fetch(ctx)
		if ctx.Err() != nil {
			f.err = ctx.Err()
			return
		}
		if err != nil {
			if errors.Is(err, kafka.OffsetOutOfRange) {
				f.err = fmt.Errorf("%s partition %d: offset %d is not in the log "+
					"(retention has removed it, or the topic was made anew): records were lost: %w",
					f.topic, f.partition, f.next, err)
				return
			}
			f.log.Warn("fetch, trying again", "topic", f.topic, "partition", f.partition, "offset", f.next,
				faultlog.Err(err))
			sleep(ctx, backoff)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		backoff = retryBackoff
		if len(rs) > 0 {
			select {
			case f.out <- rs:
			case <-ctx.Done():
				f.err = ctx.Err()
				return
			}
		}
		// In this order: who sees position = end finds the records before it in out.
		f.done.Store(f.next)
		f.end.Store(f.high)
	}
}

// fetch reads one response. Transaction markers and records of aborted transactions are no records; the position
// moves past them. The end is the last stable offset: what an open transaction has written may yet be aborted.
func (f *fetcher) fetch(ctx context.Context) ([]pipeline.Record, error) {
	if f.next < 0 {
		first, _, err := Bounds(ctx, f.client, f.topic, f.partition)
		if err != nil {
			return nil, err
		}
		f.next = first
	}
	res, err := fetchCommitted(ctx, f.client, span{f.topic, f.partition, f.next, f.maxBytes})
	if err != nil {
		return nil, err
	}
	var out []pipeline.Record
	after, err := committed(res, func(rec *protocol.Record) error {
		if rec.Offset < f.next || f.until >= 0 && rec.Offset >= f.until {
			return nil
		}
		r, err := f.record(rec)
		if err != nil {
			return err
		}
		out = append(out, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.next = max(f.next, after)
	f.high = res.HighWatermark
	if res.LastStableOffset >= 0 {
		f.high = min(f.high, res.LastStableOffset)
	}
	return out, nil
}

func (f *fetcher) record(rec *protocol.Record) (pipeline.Record, error) {
	r := pipeline.Record{Input: f.input, Topic: f.topic, Partition: int32(f.partition), Offset: rec.Offset}
	if !rec.Time.IsZero() {
		r.Time = rec.Time.UnixNano()
	}
	var err error
	if r.Key, err = kafka.ReadAll(rec.Key); err != nil {
		return r, fmt.Errorf("read key at offset %d: %w", rec.Offset, err)
	}
	if r.Value, err = kafka.ReadAll(rec.Value); err != nil {
		return r, fmt.Errorf("read value at offset %d: %w", rec.Offset, err)
	}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, pipeline.Header{Key: h.Key, Value: h.Value})
	}
	return r, nil
}

// Bounds returns the first offset of a partition and the one after its last that is settled: the last stable offset
// where a transaction is open.
func Bounds(ctx context.Context, c *kafka.Client, topic string, partition int) (first, end int64, err error) {
	ends := []kafka.OffsetRequest{kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition)}
	res, err := c.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		IsolationLevel: kafka.ReadCommitted,
		Topics:         map[string][]kafka.OffsetRequest{topic: ends},
	})
	if err != nil {
		return 0, 0, fmt.Errorf("list offsets of %s partition %d: %w", topic, partition, err)
	}
	for _, p := range res.Topics[topic] {
		if p.Partition == partition {
			return p.FirstOffset, p.LastOffset, p.Error
		}
	}
	return 0, 0, fmt.Errorf("list offsets of %s: no partition %d", topic, partition)
}

// Partitions returns the number of partitions of a topic.
func Partitions(ctx context.Context, c *kafka.Client, topic string) (int, error) {
	res, err := c.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return 0, fmt.Errorf("metadata of topic %s: %w", topic, err)
	}
	for _, t := range res.Topics {
		if t.Name == topic {
			if t.Error != nil {
				return 0, fmt.Errorf("topic %s: %w", topic, t.Error)
			}
			return len(t.Partitions), nil
		}
	}
	return 0, fmt.Errorf("topic %s: %w", topic, kafka.UnknownTopicOrPartition)
}

func (f *fetcher) position() int64 { return f.done.Load() }

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
