package standalone

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/plumbline/plumbline/internal/embedded"
	"github.com/plumbline/plumbline/internal/embedded/seglog"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// readAtOnce is how much of a log is read at a time.
const readAtOnce = 4 << 20

// fillAtOnce is how many empty records go into one batch.
const fillAtOnce = 50_000

// topic copies a topic and compares what is there then.
func (m *mover) topic(ctx context.Context, t embedded.Topic) error {
	records := int64(0)
	for p, l := range t.Logs {
		n, err := m.partition(ctx, &t, p, l)
		if err != nil {
			return err
		}
		records += n
	}
	m.Tell("%-28s %d records in %d partitions\n", t.Name, records, len(t.Logs))
	return nil
}

// partition copies one, and returns how many records it has.
func (m *mover) partition(ctx context.Context, t *embedded.Topic, p int, l *seglog.Log) (int64, error) {
	c := &copying{client: m.client, topic: t.Name, partition: p, exact: m.exact[t.Name] && !t.Compact}
	start, end := l.Bounds()
	_, at, err := kafkaio.Bounds(ctx, m.client, t.Name, p)
	if err != nil {
		return 0, err
	}
	if c.next = at; c.exact {
		if err := c.fill(ctx, start); err != nil {
			return 0, err
		}
	}
	if err := c.copy(ctx, l, start, end); err != nil {
		return 0, err
	}
	if c.exact && start > 0 {
		if err := kafkaclient.DeleteRecords(ctx, m.client, t.Name, p, start); err != nil {
			return 0, err
		}
	}
	lo, hi, err := kafkaio.Bounds(ctx, m.client, t.Name, p)
	switch {
	case err != nil:
		return 0, err
	case c.exact && (lo != start || hi != end), !c.exact && hi != c.seen:
		return 0, fmt.Errorf("topic %s partition %d has offsets %d to %d at the brokers, %d records of %d to %d here: "+
			"somebody else writes to it", t.Name, p, lo, hi, c.seen, start, end)
	}
	return c.seen, nil
}

// copying is a partition on its way.
type copying struct {
	client    *kafka.Client
	topic     string
	partition int
	exact     bool  // offsets stay the same
	next      int64 // offset at the brokers
	seen      int64 // records here
}

// fill writes empty records up to the offset that the log begins with, which are deleted when all is copied.
func (c *copying) fill(ctx context.Context, start int64) error {
	for c.next < start {
		n := min(start-c.next, fillAtOnce)
		if err := c.send(ctx, c.next, emptyBatch(int(n)), n); err != nil {
			return err
		}
		c.next += n
	}
	return nil
}

// emptyBatch has n records without key and value.
func emptyBatch(n int) []byte {
	var records []byte
	for i := range n {
		r := kmsg.Record{OffsetDelta: int32(i)}    //nolint:gosec // at most fillAtOnce
		r.Length = int32(len(r.AppendTo(nil)) - 1) //nolint:gosec // short
		records = r.AppendTo(records)
	}
	now := time.Now().UnixMilli()
	count := int32(n) //nolint:gosec // at most fillAtOnce
	b := kmsg.RecordBatch{Magic: 2, LastOffsetDelta: count - 1, FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: count, Records: records}
	raw := b.AppendTo(nil)
	seglog.Seal(raw)
	return raw
}

// copy sends the batches that are not there yet.
func (c *copying) copy(ctx context.Context, l *seglog.Log, from, end int64) error {
	for from < end {
		b, err := l.Read(from, readAtOnce)
		if err != nil {
			return err
		}
		if len(b) == 0 { // after the last batch of a compacted log
			return nil
		}
		if err := seglog.Batches(b, func(base int64, records int, batch []byte) error {
			from = base + int64(records)
			return c.batch(ctx, base, records, batch)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) batch(ctx context.Context, base int64, records int, batch []byte) error {
	at := c.seen // where offsets mean nothing, records are copied without gaps
	if c.exact {
		at = base
	}
	c.seen += int64(records)
	if at+int64(records) <= c.next {
		return nil
	}
	seglog.Anonymous(batch)
	if err := c.send(ctx, at, batch, int64(records)); err != nil {
		return err
	}
	c.next = at + int64(records)
	return nil
}

// patience bounds how long brokers may be away while topics are copied.
const patience = time.Minute

// send writes a batch, which must get the offset that it is meant for. Where there is no answer, the end of the topic
// says whether it has come.
func (c *copying) send(ctx context.Context, at int64, batch []byte, records int64) error {
	for until := time.Now().Add(patience); ; {
		got, err := kafkaclient.ProduceBatch(ctx, c.client, c.topic, c.partition, batch)
		var refused kafka.Error
		switch {
		case err == nil && got == at:
			return nil
		case err == nil:
			return fmt.Errorf("topic %s partition %d: a batch got offset %d instead of %d: somebody else writes to it",
				c.topic, c.partition, got, at)
		case ctx.Err() != nil || time.Now().After(until) || errors.As(err, &refused) && !refused.Temporary():
			return err
		}
		time.Sleep(time.Second)
		if _, end, asked := kafkaio.Bounds(ctx, c.client, c.topic, c.partition); asked == nil && end == at+records {
			return nil
		}
	}
}
