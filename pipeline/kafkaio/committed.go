package kafkaio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	fetchAPI "github.com/segmentio/kafka-go/protocol/fetch"
)

// readCommitted is the isolation level at which the broker answers up to the last stable offset and lists the
// transactions that were aborted. kafka-go's own Fetch drops that list and hands out aborted records.
const readCommitted = 1

// abortMarker is the type of a control record that ends an aborted transaction; 1 ends a committed one.
const abortMarker = 0

// span is what one request asks for: about so many bytes of a partition from an offset.
type span struct {
	topic     string
	partition int
	offset    int64
	bytes     int
}

// fetchCommitted asks for the records of a span. The error of the partition is returned too.
func fetchCommitted(ctx context.Context, c *kafka.Client, s span) (*fetchAPI.ResponsePartition, error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	transport := c.Transport
	if transport == nil {
		transport = kafka.DefaultTransport
	}
	partition := fetchAPI.RequestPartition{
		Partition:          int32(s.partition),
		CurrentLeaderEpoch: -1,
		FetchOffset:        s.offset,
		LogStartOffset:     -1,
		PartitionMaxBytes:  int32(s.bytes),
	}
	m, err := transport.RoundTrip(ctx, c.Addr, &fetchAPI.Request{
		ReplicaID:      -1,
		MaxWaitTime:    int32(fetchWait.Milliseconds()),
		MinBytes:       1,
		MaxBytes:       math.MaxInt32, // one partition is asked for, so its limit is the one that counts
		IsolationLevel: readCommitted,
		SessionID:      -1,
		SessionEpoch:   -1,
		Topics:         []fetchAPI.RequestTopic{{Topic: s.topic, Partitions: []fetchAPI.RequestPartition{partition}}},
	})
	if err != nil {
		return nil, fmt.Errorf("fetch from %s partition %d: %w", s.topic, s.partition, err)
	}
	res, ok := m.(*fetchAPI.Response)
	switch {
	case !ok:
		return nil, fmt.Errorf("fetch from %s partition %d: answer of type %T", s.topic, s.partition, m)
	case res.ErrorCode != 0:
		return nil, kafka.Error(res.ErrorCode)
	case len(res.Topics) == 0 || len(res.Topics[0].Partitions) == 0:
		return nil, fmt.Errorf("fetch from %s partition %d: the answer has no such partition", s.topic, s.partition)
	}
	p := &res.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return nil, kafka.Error(p.ErrorCode)
	}
	return p, nil
}

// committed calls yield for the records that belong to no aborted transaction, in order of offset, and returns the
// offset after everything that was read, markers and aborted records included; -1 where nothing was.
func committed(p *fetchAPI.ResponsePartition, yield func(*protocol.Record) error) (after int64, err error) {
	t := newAborted(p.AbortedTransactions)
	after = -1
	for _, b := range batches(p.RecordSet.Records) {
		if c, ok := b.(*protocol.ControlBatch); ok {
			after = max(after, c.Offset()+1)
			if err := t.end(c); err != nil {
				return after, err
			}
			continue
		}
		skip := false
		if r, ok := b.(*protocol.RecordBatch); ok && r.Attributes.Transactional() {
			skip = t.covers(r.ProducerID, r.BaseOffset)
		}
		for {
			rec, err := b.ReadRecord()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return after, fmt.Errorf("read records: %w", err)
			}
			after = max(after, rec.Offset+1)
			if skip {
				continue
			}
			if err := yield(rec); err != nil {
				return after, err
			}
		}
	}
	return after, nil
}

// batches are the parts of a response's records that say whose they are.
func batches(r protocol.RecordReader) []protocol.RecordReader {
	switch r := r.(type) {
	case nil:
		return nil
	case *protocol.RecordStream:
		return r.Records
	default:
		return []protocol.RecordReader{r}
	}
}

// aborted knows which transactions of a response were aborted: from its first offset to its marker, the records of
// a producer do not count.
type aborted struct {
	coming []fetchAPI.ResponseTransaction // by first offset
	open   map[int64]bool                 // by producer
}

func newAborted(ts []fetchAPI.ResponseTransaction) *aborted {
	coming := slices.Clone(ts)
	slices.SortFunc(coming, func(a, b fetchAPI.ResponseTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	return &aborted{coming: coming, open: map[int64]bool{}}
}

// covers reports whether a transactional batch at an offset was aborted.
func (a *aborted) covers(producer, offset int64) bool {
	for len(a.coming) > 0 && a.coming[0].FirstOffset <= offset {
		a.open[a.coming[0].ProducerID] = true
		a.coming = a.coming[1:]
	}
	return a.open[producer]
}

// end takes a marker.
func (a *aborted) end(c *protocol.ControlBatch) error {
	a.covers(c.ProducerID, c.BaseOffset) // a transaction may have begun before this response
	rec, err := c.ReadControlRecord()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the control record at offset %d: %w", c.BaseOffset, err)
	}
	if rec.Type == abortMarker {
		delete(a.open, c.ProducerID)
	}
	return nil
}
