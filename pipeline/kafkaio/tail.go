package kafkaio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
)

// TailSpec says where tails read.
type TailSpec struct {
	Client   *kafka.Client
	MaxBytes int
	Every    time.Duration // between questions whether a topic has changed; 0: some seconds
	Log      *slog.Logger
}

// Tailed is a topic and the function that takes its records; a record's memory is valid until Take returns.
type Tailed struct {
	Topic string // "" = none
	Take  func(r *pipeline.Record) error
	Anew  func() // the topic was deleted and made again, and is read from its start now; nil: nobody wants to know
}

// Tail reads topics from their start and for ever, in g. It uses no consumer group, because every process needs all of
// their records. If Take returns an error, it is logged with the record's place, and the next record follows. Topics
// may change (see EachPartition), and what retention has removed is passed over. caughtUp is called once, when all
// topics have been read to their end.
func Tail(ctx context.Context, g *errgroup.Group, spec TailSpec, topics []Tailed, caughtUp func()) error {
	var left atomic.Int32
	left.Store(1)
	reached := func() {
		if left.Add(-1) == 0 {
			caughtUp()
		}
	}
	for _, t := range topics {
		if t.Topic == "" {
			continue
		}
		n, err := Partitions(ctx, spec.Client, t.Topic)
		if err != nil {
			return err
		}
		left.Add(int32(n)) //nolint:gosec // a topic's partitions
		first := make([]sync.Once, n)
		var begun atomic.Bool
		g.Go(func() error {
			return EachPartition(ctx, spec, t.Topic, func(ctx context.Context, p int) error {
				if p == 0 && begun.Swap(true) && t.Anew != nil {
					t.Anew()
				}
				return spec.tail(ctx, t, p, func() {
					if p < n {
						first[p].Do(reached)
					}
				})
			})
		})
	}
	reached()
	return nil
}

// tail reads a partition from its start, and again from there where its log has lost the next record.
func (spec TailSpec) tail(ctx context.Context, t Tailed, p int, reached func()) error {
	for pause := retries(); ; pause.Wait(ctx) {
		log := NewLog(spec, t.Topic, p, Range{})
		err := log.tail(ctx, t.Take, reached)
		_ = log.Close()
		if !errors.Is(err, kafka.OffsetOutOfRange) {
			return err
		}
		spec.Log.Warn("the log does not have the next record any more (retention, or the topic was made anew): "+
			"going on at its start", "topic", t.Topic, "partition", p, faultlog.Err(err))
	}
}

// EachPartition calls do for each partition of a topic, until ctx is done or one returns an error. Partitions may be
// added. When the topic was deleted and made again, the context of all ends, and do is called anew for what there is.
func EachPartition(ctx context.Context, spec TailSpec, topic string, do func(ctx context.Context, p int) error) error {
	for ctx.Err() == nil {
		made, cancel := context.WithCancel(ctx)
		g, each := errgroup.WithContext(made)
		g.Go(func() error {
			defer cancel()
			return spec.watch(each, topic, func(p int) { g.Go(func() error { return do(each, p) }) })
		})
		if err := g.Wait(); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// watch tells of each partition of a topic once. It returns when the topic was made again.
func (spec TailSpec) watch(ctx context.Context, topic string, add func(p int)) error {
	tick := time.NewTicker(cmp.Or(spec.Every, watchInterval))
	defer tick.Stop()
	var was TopicID
	for has := 0; ; {
		ids, err := KnownTopicIDs(ctx, spec.Client, topic)
		if err == nil && was == (TopicID{}) {
			was = ids[0]
		}
		if err == nil && ids[0] != was && ids[0] != (TopicID{}) {
			spec.Log.Warn("a topic was made again: it is read from its start", "topic", topic)
			return nil
		}
		n, err := Partitions(ctx, spec.Client, topic)
		if err != nil && ctx.Err() == nil {
			spec.Log.Warn("the partitions of a topic cannot be known: asking again", "topic", topic, faultlog.Err(err))
		}
		for ; has < n; has++ {
			add(has)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// ReadTopic hands over the records that a topic has now, one partition after the other.
func ReadTopic(ctx context.Context, spec TailSpec, topic string, take func(*pipeline.Record)) error {
	n, err := Partitions(ctx, spec.Client, topic)
	if err != nil {
		return err
	}
	for p := range n {
		if err := ReadPartition(ctx, spec, topic, p, take); err != nil {
			return err
		}
	}
	return nil
}

// ReadPartition hands over the records that a partition has now.
func ReadPartition(ctx context.Context, spec TailSpec, topic string, p int, take func(*pipeline.Record)) error {
	return Latest{Topic: topic, Partition: p, Offsets: math.MaxInt64}.Read(ctx, spec, take)
}

// Latest is the end of a partition: its last Offsets offsets, some of which may hold no record.
type Latest struct {
	Topic     string
	Partition int
	Offsets   int64
}

// Read hands over the records that there are now.
func (l Latest) Read(ctx context.Context, spec TailSpec, take func(*pipeline.Record)) error {
	lo, hi, err := Bounds(ctx, spec.Client, l.Topic, l.Partition)
	if err != nil || lo == hi {
		return err
	}
	log := NewLog(spec, l.Topic, l.Partition, Range{Next: max(lo, hi-l.Offsets), Until: hi})
	defer log.Close()
	for {
		r, err := log.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !r.Idle {
			take(&r)
		}
	}
}

// Range is a part of a partition.
type Range struct {
	Next  int64 // first offset; 0 = where the log begins, whatever its first offset is
	Until int64 // first offset that is not read; 0 = the log is read for ever
}

// Log reads one partition by itself, without merging.
type Log struct {
	in     *input
	cancel context.CancelFunc
	idled  bool // the last record was the notice that the end is reached
}

// NewLog starts reading.
func NewLog(spec TailSpec, topic string, partition int, of Range) *Log {
	next, until := of.Next, of.Until
	if next == 0 {
		next = -1
	}
	if until == 0 {
		until = -1
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Log{in: newInput(&fetcher{
		client:    spec.Client,
		topic:     topic,
		partition: partition,
		maxBytes:  spec.MaxBytes,
		asks:      spec.MaxBytes,
		until:     until,
		next:      next,
		log:       spec.Log,
		news:      newNews(),
	}), cancel: cancel}
	go l.in.f.run(ctx)
	return l
}

// Next blocks for the next record, whose memory is valid until the call after; a record that is too large is logged
// and skipped. Each time the log's end is reached it returns one record with Idle set. io.EOF ends a range.
func (l *Log) Next(ctx context.Context) (pipeline.Record, error) {
	for {
		l.in.fill()
		switch {
		case len(l.in.queue) > 0:
			l.idled = false
			r := l.in.hand()
			if r.Unread != nil {
				l.in.f.log.Error("record cannot be used", "topic", r.Topic, "partition", r.Partition,
					"offset", r.Offset, "reason", r.Unread.Reason, "detail", r.Unread.Detail)
				continue
			}
			return r, nil
		case l.in.ended:
			return pipeline.Record{}, l.in.f.err
		case !l.idled && l.in.caughtUp():
			l.idled = true
			return pipeline.Record{Idle: true}, nil
		}
		if err := l.wait(ctx); err != nil {
			return pipeline.Record{}, err
		}
	}
}

// wait blocks until there are records or the end is reached.
func (l *Log) wait(ctx context.Context) error {
	select {
	case p, ok := <-l.in.f.out:
		l.in.take(p, ok)
	case <-l.in.f.news:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Behind returns the number of offsets from next to the log's end; false while the end is not known. Offsets without a
// record no longer count when they have been passed. Any goroutine may call it.
func (l *Log) Behind(next int64) (offsets int64, ok bool) {
	lag, ok := l.in.lag()
	return lag.Offsets + max(0, l.in.handed.Load()-next), ok
}

// Close ends reading.
func (l *Log) Close() error {
	l.cancel()
	for range l.in.f.out { // until the fetcher has gone
	}
	return nil
}

func (l *Log) tail(ctx context.Context, take func(*pipeline.Record) error, reached func()) error {
	for first := true; ; {
		r, err := l.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("tail of %s: %w", l.in.f.topic, err)
		}
		if r.Idle {
			if first {
				reached()
				first = false
			}
			continue
		}
		if err := caught(take, &r); err != nil {
			l.in.f.log.Error("record cannot be used", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset,
				"err", err)
		}
	}
}

// caught turns a panic of take into an error: every process reads such a topic from its start, and one record must not
// end all of them at every start.
func caught(take func(*pipeline.Record) error, r *pipeline.Record) (err error) {
	defer pipeline.Caught(&err)
	return take(r)
}
