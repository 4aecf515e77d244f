package kafkaio

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	fetchAPI "github.com/segmentio/kafka-go/protocol/fetch"

	"github.com/plumbline/plumbline/pipeline/kafkaio/recordset"
)

// readCommitted is the isolation level at which a broker answers up to the last stable offset and lists the aborted
// transactions.
const readCommitted = 1

// span is what one fetch request asks for: records of a partition from an offset.
type span struct {
	topic     string
	partition int
	offset    int64
	asked     int // bytes asked for; a batch that is larger still comes whole
	bytes     int // that limits follow from
}

func (s span) limits() recordset.Limits { return recordset.LimitsOf(s.bytes) }

// partitionAnswer is the answer for one partition.
type partitionAnswer struct {
	recordset.Set
	code   int16
	high   int64  // offset after the last record
	stable int64  // the last stable offset; negative = the broker does not know it
	open   []byte // that Room gave last
	slowed throttled
}

// throttled is how long a quota of the brokers wants a reader to wait, where their answer says nothing else (KIP-219).
type throttled time.Duration

func (throttled) Error() string {
	return "a quota of the brokers lets this client read no faster: consumer_byte_rate or request_percentage of its " +
		"user or client id"
}

// ApiKey implements protocol.Message.
func (f *partitionAnswer) ApiKey() protocol.ApiKey { return protocol.Fetch }

// settled returns the offset up to which records can be read: all transactions before it are finished.
func (f *partitionAnswer) settled() int64 {
	if f.stable < 0 {
		return f.high
	}
	return min(f.high, f.stable)
}

// fetchCommitted fetches the records of a span into the given memory; nil: into memory of their own. It returns the
// partition's error too.
func fetchCommitted(ctx context.Context, c *kafka.Client, s span, into *memory) (*partitionAnswer, error) {
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
		PartitionMaxBytes:  int32(s.asked),
	}
	topic := fetchAPI.RequestTopic{Topic: s.topic, Partitions: []fetchAPI.RequestPartition{partition}}
	m, err := transport.RoundTrip(ctx, c.Addr, &rawFetch{
		Request: &fetchAPI.Request{
			ReplicaID:      -1,
			MaxWaitTime:    int32(fetchWait.Milliseconds()),
			MinBytes:       1,
			MaxBytes:       math.MaxInt32, // one partition is asked for, so its limit is the one that counts
			IsolationLevel: readCommitted,
			SessionID:      -1,
			SessionEpoch:   -1,
			Topics:         []fetchAPI.RequestTopic{topic},
		},
		client: clientID(transport),
		most:   s.limits().Batch,
		into:   into,
	})
	if err != nil {
		return nil, fmt.Errorf("fetch from %s partition %d: %w", s.topic, s.partition, err)
	}
	res, ok := m.(*partitionAnswer)
	switch {
	case !ok:
		return nil, fmt.Errorf("fetch from %s partition %d: answer of type %T", s.topic, s.partition, m)
	case res.code != 0:
		return nil, kafka.Error(res.code)
	case res.slowed > 0:
		return nil, res.slowed
	}
	return res, nil
}

// clientID returns the client ID of a transport's connections.
func clientID(t kafka.RoundTripper) string {
	if c, ok := t.(*Clock); ok {
		t = c.transport
	}
	if k, ok := t.(*kafka.Transport); ok && k.ClientID != "" {
		return k.ClientID
	}
	return kafka.DefaultClientID
}

// rawFetch is a fetch request whose answer is parsed here. kafka-go would decompress all batches of the answer at
// once, even those that are dropped, and loses the list of aborted transactions.
type rawFetch struct {
	*fetchAPI.Request
	client  string
	most    int64 // bytes of records to read at most
	into    *memory
	version int16
}

// Required implements protocol.RawExchanger.
func (r *rawFetch) Required(versions map[protocol.ApiKey]int16) bool {
	r.version = versions[protocol.Fetch]
	return true
}

// correlation names the request; a connection has one at a time.
const correlation = 1

// RawExchange implements protocol.RawExchanger.
func (r *rawFetch) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if err := protocol.WriteRequest(rw, r.version, correlation, r.client, r.Request); err != nil {
		return nil, err
	}
	a := &answer{r: rw, left: 4}
	a.left = int64(a.int32())
	if got := a.int32(); a.err == nil && got != correlation {
		return nil, fmt.Errorf("answer with correlation id %d, asked was with %d", got, correlation)
	}
	f := a.partition(r)
	if a.err == nil {
		_, a.err = io.CopyN(io.Discard, rw, a.left)
	}
	if a.err != nil {
		return nil, fmt.Errorf("read the answer to a fetch: %w", a.err)
	}
	return f, nil
}

// answer reads a fetch response and keeps the first error.
type answer struct {
	r    io.Reader
	left int64
	err  error
}

func (a *answer) bytes(n int64) []byte {
	if a.err == nil && (n < 0 || n > a.left) {
		a.err = fmt.Errorf("a field of %d bytes in %d: %w", n, a.left, io.ErrUnexpectedEOF)
	}
	if a.err != nil {
		return make([]byte, 8) // of the widest number
	}
	return a.read(make([]byte, n))
}

// read fills b.
func (a *answer) read(b []byte) []byte {
	if a.err == nil {
		_, a.err = io.ReadFull(a.r, b)
		a.left -= int64(len(b))
	}
	return b
}

//nolint:gosec // signed in the protocol
func (a *answer) int16() int16 { return int16(binary.BigEndian.Uint16(a.bytes(2))) }

//nolint:gosec // signed in the protocol
func (a *answer) int32() int32 { return int32(binary.BigEndian.Uint32(a.bytes(4))) }

//nolint:gosec // signed in the protocol
func (a *answer) int64() int64 { return int64(binary.BigEndian.Uint64(a.bytes(8))) }

// partition reads the answer for one topic and partition, in the versions 0 to 11 of the protocol.
func (a *answer) partition(r *rawFetch) *partitionAnswer {
	f, version := &partitionAnswer{stable: -1}, r.version
	var pause int32 // that a quota wants, in milliseconds
	if version >= 1 {
		pause = a.int32()
	}
	if version >= 7 {
		f.code = a.int16()
		a.int32() // session
	}
	if topics := a.int32(); topics == 0 && pause > 0 && a.err == nil {
		f.slowed = throttled(time.Duration(pause) * time.Millisecond)
		return f
	} else if topics != 1 {
		return a.without(f)
	}
	a.bytes(int64(a.int16())) // topic
	if a.int32() != 1 {
		return a.without(f)
	}
	a.int32() // partition
	if code := a.int16(); f.code == 0 {
		f.code = code
	}
	f.high = a.int64()
	if version >= 4 {
		f.stable = a.int64()
		if version >= 5 {
			a.int64() // where the log begins
		}
		f.Aborted = a.transactions()
	}
	if version >= 11 {
		a.int32() // preferred replica
	}
	f.Size = max(0, int(a.int32()))
	size := int64(f.Size)
	if size > a.left {
		return a.without(f)
	}
	if size > r.most { // then it is one batch
		const head = 61
		size = head
	}
	if r.into == nil {
		f.Data = a.bytes(size)
	} else {
		f.Data = a.read(r.into.forAnswer(int(size)))
	}
	return f
}

func (a *answer) transactions() []recordset.Transaction {
	const size = 16
	n := max(0, int64(a.int32()))
	if a.err != nil || n > a.left/size {
		a.without(nil)
		return nil
	}
	out := make([]recordset.Transaction, n)
	for i := range out {
		out[i] = recordset.Transaction{Producer: a.int64(), First: a.int64()}
	}
	return out
}

// without returns an answer without the requested records.
func (a *answer) without(f *partitionAnswer) *partitionAnswer {
	if a.err == nil && (f == nil || f.code == 0) {
		a.err = fmt.Errorf("it does not hold the partition: %w", io.ErrUnexpectedEOF)
	}
	return f
}
