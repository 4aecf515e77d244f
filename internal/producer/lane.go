package producer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"golang.org/x/sync/errgroup"
)

const (
	// laneQueue is how many records wait for one partition; it bounds how far one partition runs ahead of another.
	laneQueue = 64
	// requestBytes is where a produce request is full: below the broker's default limit of 1 MB for a record batch.
	requestBytes = 512 << 10
	// retryFor bounds how long one request is tried again: a broker that restarts is back by then.
	retryFor   = time.Minute
	retryPause = 200 * time.Millisecond
)

// message is a record to be; a nil Value is a tombstone.
type message struct {
	Row     int64 // as of feed.Message
	Time    time.Time
	Key     []byte
	Value   []byte
	Headers []kafka.Header
}

// producer writes records to explicit partitions, acknowledged by all replicas and in order by partition. Several
// partitions are written at a time: each has a lane, which sends what waits in one request and awaits the answer.
// One goroutine calls send and close.
type producer struct {
	client *kafka.Client
	log    *slog.Logger
	lanes  map[lane]chan message
	group  *errgroup.Group
	ctx    context.Context // ends with the first error of a lane
	owed   atomic.Int64    // the lowest row of a message that is not acknowledged, once a lane has ended with an error
	again  atomic.Int64    // messages sent again although they may be there
}

// lane is one partition of one topic.
type lane struct {
	topic     string
	partition int
}

// newProducer returns a producer; close it to wait for what it holds.
func newProducer(ctx context.Context, client *kafka.Client, log *slog.Logger) *producer {
	group, ctx := errgroup.WithContext(ctx)
	p := &producer{client: client, log: log, lanes: map[lane]chan message{}, group: group, ctx: ctx}
	p.owed.Store(math.MaxInt64)
	return p
}

// send hands r to its lane; it blocks while the lane is full. An error says only that a lane has stopped: close
// returns why.
func (p *producer) send(topic string, partition int, r message) error {
	l := lane{topic, partition}
	queue, ok := p.lanes[l]
	if !ok {
		queue = make(chan message, laneQueue)
		p.lanes[l] = queue
		p.group.Go(func() error { return p.run(l, queue) })
	}
	select {
	case queue <- r:
		return nil
	case <-p.ctx.Done():
		p.owe(r)
		return p.ctx.Err()
	}
}

// owe notes messages that are not acknowledged.
func (p *producer) owe(messages ...message) {
	for _, m := range messages {
		for n := p.owed.Load(); m.Row < n && !p.owed.CompareAndSwap(n, m.Row); n = p.owed.Load() {
		}
	}
}

// close waits until everything is acknowledged, and returns the first error of a lane.
func (p *producer) close() error {
	for _, queue := range p.lanes {
		close(queue)
	}
	err := p.group.Wait()
	for _, queue := range p.lanes {
		for r := range queue { // of a lane that ended with an error
			p.owe(r)
		}
	}
	return err
}

// run sends the records of one lane until its queue is closed.
func (p *producer) run(l lane, queue <-chan message) error {
	var held []message // did not fit into the last request
	for {
		if held == nil {
			r, ok := <-queue
			if !ok {
				return nil
			}
			held = []message{r}
		}
		var batch []message
		batch, held = gather(held, queue)
		if err := p.write(l, batch); err != nil {
			p.owe(batch...)
			p.owe(held...)
			return fmt.Errorf("produce %d records to %s/%d: %w", len(batch), l.topic, l.partition, err)
		}
	}
}

// gather adds to batch what waits in the queue as far as it fits into one request; held is what did not.
func gather(batch []message, queue <-chan message) (full, held []message) {
	size := 0
	for _, r := range batch {
		size += r.size()
	}
	for {
		select {
		case r, ok := <-queue:
			if !ok {
				return batch, nil
			}
			if size += r.size(); size > requestBytes {
				return batch, []message{r}
			}
			batch = append(batch, r)
		default:
			return batch, nil
		}
	}
}

func (r message) size() int { return len(r.Key) + len(r.Value) }

// unwritten are the errors that say that nothing was written, and that it may be tried again.
var unwritten = []error{
	protocol.ErrNoLeader, // no broker was asked
	kafka.LeaderNotAvailable, kafka.NotLeaderForPartition, kafka.UnknownTopicOrPartition, kafka.NotEnoughReplicas,
	kafka.ReplicaNotAvailable,
}

// open are the answers that leave it open whether the records are there, as a lost connection does: they are sent
// again, and are there twice then, with the same ids.
var open = []error{kafka.RequestTimedOut, kafka.NetworkException, kafka.NotEnoughReplicasAfterAppend}

// worth reports whether a request is worth another try, and whether it may have been written.
func worth(err error) (again, written bool) {
	is := func(e error) bool { return errors.Is(err, e) }
	if slices.ContainsFunc(unwritten, is) {
		return true, false
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return true, false
	}
	var answer kafka.Error
	return !errors.As(err, &answer) || slices.ContainsFunc(open, is), true
}

func (p *producer) write(l lane, batch []message) error {
	end, told, twice := time.Now().Add(retryFor), false, false
	for {
		err := p.try(l, batch)
		if err == nil || p.ctx.Err() != nil {
			return err
		}
		again, written := worth(err)
		if !again || time.Now().After(end) {
			return err
		}
		if written && !twice {
			twice = true
			p.again.Add(int64(len(batch)))
		}
		if !told {
			told = true
			p.log.Warn("records are sent again", "topic", l.topic, "partition", l.partition, "for", retryFor,
				"err", err)
		}
		select {
		case <-time.After(retryPause):
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}
}

func (p *producer) try(l lane, batch []message) error {
	records := make([]kafka.Record, len(batch))
	for i, r := range batch {
		records[i] = kafka.Record{Time: r.Time, Key: kafka.NewBytes(r.Key), Value: kafka.NewBytes(r.Value),
			Headers: r.Headers}
	}
	resp, err := p.client.Produce(p.ctx, &kafka.ProduceRequest{
		Topic: l.topic, Partition: l.partition, RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(records...),
	})
	if err == nil {
		err = resp.Error
	}
	return err
}
