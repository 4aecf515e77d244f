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

	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
)

// Limits of one fetch.
const (
	fetchWait  = 500 * time.Millisecond
	fetchQueue = 2 // parts of responses read ahead
)

// fetcher reads one partition ahead of its consumer, by a bounded number of parts of responses.
type fetcher struct {
	client    *kafka.Client
	input     pipeline.Input
	topic     string
	partition int
	maxBytes  int
	asks      int   // bytes that a request asks for
	until     int64 // stop before this offset; -1 = never
	gate      *Gate
	doubt     func() // see Spec
	news      news   // told when an answer has been handed over
	log       *slog.Logger

	memory *memory // reused once records were taken; nil: records get memory of their own
	part   *part   // that will be handed over next
	out    chan *part
	next   int64        // offset to fetch
	done   atomic.Int64 // next, for the consumer; every record before it is in out or was handed out
	end    atomic.Int64 // the log's end as last reported; -1 = not yet
	err    error        // set before out is closed

	quiet   time.Duration // an answer that took so long means that no broker answered meanwhile
	heard   atomic.Int64  // when the last answer came, as the clock that never jumps has it (sinceStart)
	resumed atomic.Int64  // when the last answer came that took so long

	refused atomic.Pointer[refusal] // nil = brokers do not refuse to read
	held    held
}

// news wakes a consumer that waits: a fetcher has moved, or the gate has closed.
type news chan struct{}

func newNews() news { return make(news, 1) }

// tell never blocks: one that waits to be seen stands for all.
func (n news) tell() {
	select {
	case n <- struct{}{}:
	default:
	}
}

var start = time.Now()

func sinceStart(t time.Time) int64 { return int64(t.Sub(start)) }

// run fetches until ctx is done, the end offset, or an error that retrying cannot mend.
func (f *fetcher) run(ctx context.Context) {
	defer close(f.out)
	defer pipeline.Caught(&f.err) // the task's error, not the end of the process
	pause, asked := retries(), time.Time{}
	for {
		if f.until >= 0 && f.next >= f.until {
			f.err = io.EOF
			return
		}
		f.waitOpen(ctx)
		if asked.IsZero() {
			asked = time.Now()
		}
		err := f.fetch(ctx, asked)
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
			var slow throttled
			if errors.As(err, &slow) {
				f.slowed(ctx, slow)
				continue
			}
			if f.until >= 0 && permanent(err) { // who waits for an end would wait for ever
				f.err = fmt.Errorf("read %s partition %d: %w", f.topic, f.partition, err)
				return
			}
			if f.doubt != nil {
				f.doubt()
			}
			f.fails(err)
			pause.Wait(ctx)
			continue
		}
		f.works()
		pause.Reset()
		asked = time.Time{}
	}
}

// longestSlowed bounds a wait for a quota.
const longestSlowed = time.Minute

// slowed waits as long as a quota of the brokers wants. Meanwhile the log's end is not known: a reader that is slowed
// down must not pass for caught up. It is asked for, but brokers read nothing from a connection that they slow down.
func (f *fetcher) slowed(ctx context.Context, by throttled) {
	f.log.Warn("fetch, slowed down", "topic", f.topic, "partition", f.partition, "offset", f.next, "for",
		time.Duration(by), faultlog.Err(by))
	f.end.Store(-1)
	pause, cancel := context.WithTimeout(ctx, min(time.Duration(by), longestSlowed))
	defer cancel()
	if _, end, err := Bounds(pause, f.client, f.topic, f.partition); err == nil {
		f.end.Store(end)
		f.news.tell()
	}
	<-pause.Done()
}

// answered notes the arrival of an answer to a request that was first sent at asked.
func (f *fetcher) answered(asked, now time.Time) {
	if now.Sub(asked) >= f.quiet {
		f.resumed.Store(sinceStart(now))
	}
	f.heard.Store(sinceStart(now))
}

// quietFor is the shortest wait for an answer that counts as a time without brokers: longer than slow answers take,
// and a small part of the idle timeout.
func quietFor(idleTimeout time.Duration) time.Duration { return max(3*fetchWait, idleTimeout/4) }

// fetch reads one response and emits its records in parts of about maxBytes, so that a decompressed batch is never in
// memory as a whole. The position moves past transaction markers and records of aborted transactions. The end of the
// log is the last stable offset, because an open transaction may still be aborted.
func (f *fetcher) fetch(ctx context.Context, asked time.Time) error {
	if f.next < 0 {
		first, _, err := Bounds(ctx, f.client, f.topic, f.partition)
		if err != nil {
			return err
		}
		f.next = first
	}
	at := span{f.topic, f.partition, f.next, f.asks, f.maxBytes}
	res, err := fetchCommitted(ctx, f.client, at, f.memory)
	if err != nil {
		return err
	}
	f.answered(asked, time.Now())
	f.lend(res)
	size := 0
	after, err := res.Each(f.next, at.limits(), func(r *pipeline.Record, cost int) error {
		if f.until >= 0 && r.Offset >= f.until {
			return nil
		}
		r.Input, r.Topic, r.Partition = f.input, f.topic, int32(f.partition)
		f.part.records, size = append(f.part.records, *r), size+cost
		f.next = r.Offset + 1
		if size < max(f.maxBytes, leastPart) {
			return nil
		}
		size = 0
		return f.hand(ctx, res.settled())
	})
	f.next = max(f.next, after)
	f.ended(res)
	f.behindTransaction(res, asked)
	if herr := f.hand(ctx, res.settled()); herr != nil {
		return herr
	}
	return err
}

// held is what waits behind a transaction that stays open.
type held struct {
	at          int64     // offset of its first record
	since, told time.Time // told: when the log was
}

// behindTransaction logs that records have waited for a minute behind an open transaction: they are no lag, and an
// input that has nothing else looks silent. An answer to a request that was first sent at now comes soon.
func (f *fetcher) behindTransaction(res *partitionAnswer, now time.Time) {
	const first, again = time.Minute, 10 * time.Minute
	end := res.settled()
	switch {
	case end == res.high:
		f.held = held{}
	case f.held.since.IsZero() || f.held.at != end:
		f.held = held{at: end, since: now}
	case now.Sub(f.held.since) >= first && now.Sub(f.held.told) >= again:
		f.held.told = now
		f.log.Warn("records wait until a producer ends its transaction; nobody can read them before",
			"topic", f.topic, "partition", f.partition, "offset", end, "behind", res.high-end,
			"for", now.Sub(f.held.since).Round(time.Second),
			"mend", "kafka-transactions.sh --bootstrap-server HOST:PORT list, then abort")
	}
}

// leastPart keeps small fetches from making a part of each record.
const leastPart = 64 << 10

// lend makes an answer's records use the fetcher's memory for what they need beside the answer's own bytes.
func (f *fetcher) lend(res *partitionAnswer) {
	if f.part == nil {
		f.part = f.newPart()
	}
	if f.memory == nil {
		return
	}
	res.Room = func(n int) []byte {
		b := f.memory.bytes(n)
		if res.open != nil { // the records of this part or before have it all
			f.part.memory = append(f.part.memory, res.open)
		}
		res.open = b
		return b
	}
}

func (f *fetcher) newPart() *part {
	if f.memory == nil {
		return new(part)
	}
	return f.memory.another()
}

// ended hands an answer's memory over with the last of its records, to be freed with them. If these have been handed
// over already, it goes with the next records: records are taken in order.
func (f *fetcher) ended(res *partitionAnswer) {
	switch {
	case f.memory == nil:
	case res.Size == 0 && len(f.part.records) == 0:
		f.memory.idle()
		f.part.memory = nil
	default:
		for _, b := range [][]byte{res.open, res.Data} {
			if cap(b) > 0 {
				f.part.memory = append(f.part.memory, b)
			}
		}
	}
}

// hand gives records to the consumer, then publishes the position behind them and the log's end.
func (f *fetcher) hand(ctx context.Context, end int64) error {
	if n := len(f.part.records); n > 0 {
		select {
		case f.out <- f.part:
			f.part = f.newPart()
			if f.part.records == nil {
				f.part.records = make([]pipeline.Record, 0, n) // the next one is often as long
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// In this order: a reader that sees position = end finds the records before it in out.
	f.done.Store(f.next)
	f.end.Store(end)
	f.news.tell()
	return nil
}

// Bounds returns the first offset of a partition and the offset after its last readable record: the last stable offset
// if a transaction is open.
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
