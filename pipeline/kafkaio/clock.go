package kafkaio

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	produceAPI "github.com/segmentio/kafka-go/protocol/produce"
)

// Clock is the transport of a client that learns from answers what time it is at the brokers: they tell when they
// appended what was written to a topic with message.timestamp.type=LogAppendTime. A process whose own clock is behind
// would else take the records of all producers for records of the future.
type Clock struct {
	transport *kafka.Transport
	log       *slog.Logger

	mu    sync.Mutex
	heard map[topicPartition]brokerTime // the latest of each leader
	told  time.Time                     // when the log last said that the own clock is behind
}

// brokerTime is a time of a broker, and when it was heard by a clock that goes on as it did when the own one is set.
type brokerTime struct {
	at, heard time.Time
}

func (b brokerTime) now() time.Time { return b.at.Add(time.Since(b.heard)) }

// How far behind the brokers a clock is that the log tells of, and how often it does.
const (
	slowClock = time.Minute
	tellSlow  = time.Hour
)

// NewClock returns a clock that has heard of no broker: it is the process's own.
func NewClock(t *kafka.Transport, log *slog.Logger) *Clock {
	return &Clock{transport: t, log: log, heard: map[topicPartition]brokerTime{}}
}

// Now is the time of the process, or that of the brokers where it is later. The clock may be nil.
func (c *Clock) Now() time.Time {
	now := time.Now()
	if c == nil {
		return now
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if theirs := c.theirs(); theirs.After(now) {
		return theirs
	}
	return now
}

// theirs is the earliest time of a leader: one whose clock is ahead does not count where another one's is not.
func (c *Clock) theirs() (t time.Time) {
	for _, b := range c.heard {
		if now := b.now(); t.IsZero() || now.Before(t) {
			t = now
		}
	}
	return t
}

// RoundTrip implements kafka.RoundTripper.
func (c *Clock) RoundTrip(ctx context.Context, addr net.Addr, req kafka.Request) (kafka.Response, error) {
	res, err := c.transport.RoundTrip(ctx, addr, req)
	if written, ok := res.(*produceAPI.Response); ok && err == nil {
		for _, t := range written.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 && p.LogAppendTime > 0 {
					c.hear(topicPartition{t.Topic, int(p.Partition)}, time.UnixMilli(p.LogAppendTime))
				}
			}
		}
	}
	return res, err
}

func (c *Clock) hear(leader topicPartition, at time.Time) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard[leader] = brokerTime{at, now}
	if at.Sub(now) <= slowClock || !c.told.IsZero() && now.Sub(c.told) <= tellSlow {
		return
	}
	if behind := c.theirs().Sub(now); behind > slowClock {
		c.told = now
		c.log.Warn("the clock of this machine is behind that of the brokers, which counts for timestamps ahead: "+
			"set the one that is wrong", "by", behind.Round(time.Second).String())
	}
}
