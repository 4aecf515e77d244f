package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// retryFor bounds how long a partition without a leader is tried again.
	retryFor   = 30 * time.Second
	retryPause = 200 * time.Millisecond
)

// message is a record to be; a nil Value is a tombstone.
type message struct {
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
	lanes  map[lane]chan message
	group  *errgroup.Group
	ctx    context.Context // ends with the first error of a lane
}

// lane is one partition of one topic.
type lane struct {
	topic     string
	partition int
}

// newProducer returns a producer; close it to wait for what it holds.
func newProducer(ctx context.Context, client *kafka.Client) *producer {
	group, ctx := errgroup.WithContext(ctx)
	return &producer{client: client, lanes: map[lane]chan message{}, group: group, ctx: ctx}
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
		return p.ctx.Err()
	}
}

// close waits until everything is acknowledged, and returns the first error of a lane.
func (p *producer) close() error {
	for _, queue := range p.lanes {
		close(queue)
	}
	return p.group.Wait()
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

// unwritten are the errors that say that nothing was written, and that it may be tried again. Others (a timeout, a
// lost connection) leave it open whether the records are there, and a second try could write them twice.
var unwritten = []error{
	protocol.ErrNoLeader, // no broker was asked
	kafka.LeaderNotAvailable, kafka.NotLeaderForPartition, kafka.UnknownTopicOrPartition, kafka.NotEnoughReplicas,
	kafka.ReplicaNotAvailable,
}

func (p *producer) write(l lane, batch []message) error {
	end := time.Now().Add(retryFor)
	for {
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
		again := slices.ContainsFunc(unwritten, func(e error) bool { return errors.Is(err, e) })
		if err == nil || !again || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(retryPause):
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}
}
