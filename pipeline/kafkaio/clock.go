package kafkaio

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
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
	heard     atomic.Pointer[brokerTime] // nil: never
	told      atomic.Pointer[time.Time]  // when the log last said that the own clock is behind
}

// brokerTime is a time of a broker, and when it was heard by a clock that goes on as it did when the own one is set.
type brokerTime struct {
	at, heard time.Time
}

// How far behind the brokers a clock is that the log tells of, and how often it does.
const (
	slowClock = time.Minute
	tellSlow  = time.Hour
)

// NewClock returns a clock that has heard of no broker: it is the process's own.
func NewClock(t *kafka.Transport, log *slog.Logger) *Clock { return &Clock{transport: t, log: log} }

// Now is the time of the process, or that of the brokers where it is later. The clock may be nil.
func (c *Clock) Now() time.Time {
	now := time.Now()
	if c == nil {
		return now
	}
	if b := c.heard.Load(); b != nil {
		if theirs := b.at.Add(time.Since(b.heard)); theirs.After(now) {
			return theirs
		}
	}
	return now
}

// RoundTrip implements kafka.RoundTripper.
func (c *Clock) RoundTrip(ctx context.Context, addr net.Addr, req kafka.Request) (kafka.Response, error) {
	res, err := c.transport.RoundTrip(ctx, addr, req)
	if written, ok := res.(*produceAPI.Response); ok && err == nil {
		for _, t := range written.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 && p.LogAppendTime > 0 {
					c.hear(time.UnixMilli(p.LogAppendTime))
				}
			}
		}
	}
	return res, err
}

func (c *Clock) hear(at time.Time) {
	now := time.Now()
	c.heard.Store(&brokerTime{at, now})
	behind := at.Sub(now)
	if told := c.told.Load(); behind > slowClock && (told == nil || now.Sub(*told) > tellSlow) &&
		c.told.CompareAndSwap(told, &now) {
		c.log.Warn("the clock of this machine is behind that of the brokers, which counts for timestamps ahead: set it",
			"by", behind.Round(time.Second).String())
	}
}
