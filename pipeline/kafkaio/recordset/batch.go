package recordset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"
	"unsafe"

	"github.com/plumbline/plumbline/pipeline"
)

// The head of a record batch, format 2.
const (
	headV2    = 61
	crcAt     = 17
	checkedAt = 21 // where what the checksum covers begins
)

// Attributes of a batch.
const (
	codecBits     = 7
	appendTime    = 1 << 3 // the broker's clock has dated all records alike
	transactional = 1 << 4
	control       = 1 << 5
)

// abortMarker is the type of a control record that ends an aborted transaction; 1 ends a committed one.
const abortMarker = 0

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type head struct {
	base, last int64 // offsets
	attributes uint16
	first      int64 // timestamp
	newest     int64 // timestamp
	producer   int64
	count      int32
}

//nolint:gosec // signed in the protocol
func parseHead(b []byte) head {
	be := binary.BigEndian
	h := head{
		base:       int64(be.Uint64(b)),
		attributes: be.Uint16(b[21:]),
		first:      int64(be.Uint64(b[27:])),
		newest:     int64(be.Uint64(b[35:])),
		producer:   int64(be.Uint64(b[43:])),
		count:      int32(be.Uint32(b[57:])),
	}
	h.last = h.base + max(0, int64(int32(be.Uint32(b[23:]))))
	return h
}

func (w *walk) batchV2(b []byte) error {
	if len(b) < headV2 {
		return fmt.Errorf("record batch of %d bytes, its head has %d", len(b), headV2)
	}
	h := parseHead(b)
	if got, want := crc32.Checksum(b[checkedAt:], castagnoli), binary.BigEndian.Uint32(b[crcAt:]); got != want {
		return fmt.Errorf("batch at offset %d: CRC32C %08x, written %08x", h.base, got, want)
	}
	var err error
	switch {
	case h.attributes&control != 0:
		err = w.marker(h, b[headV2:])
	case h.attributes&transactional != 0 && w.aborted.covers(h.producer, h.base):
	case h.last < w.from:
	default:
		err = w.records(h, b[headV2:])
	}
	if err == nil {
		w.after = max(w.after, h.last+1)
	}
	return err
}

// open returns the content of a batch.
func (w *walk) open(codec uint16, body []byte) (*source, error) {
	src, err := open(codec, body, w.limits.Batch)
	if err == nil {
		src.room = &w.room
	}
	return src, err
}

// marker takes a control batch.
func (w *walk) marker(h head, body []byte) error {
	w.aborted.covers(h.producer, h.base) // a transaction may have begun before this response
	if h.count <= 0 {
		return nil
	}
	r, err := w.record(h, flat(body))
	if err == nil && len(r.Key) < 4 {
		err = errEnd
	}
	if err != nil {
		return fmt.Errorf("control batch at offset %d: %w", h.base, err)
	}
	if binary.BigEndian.Uint16(r.Key[2:]) == abortMarker {
		delete(w.aborted.open, h.producer)
	}
	return nil
}

// records hands out the records of a batch. What cannot be read is refused, from the record on where that was seen.
func (w *walk) records(h head, body []byte) error {
	next, err := w.eachRecord(h, body)
	return w.refuseFor(next, h.last, err)
}

// eachRecord returns the offset after the last record that was read.
func (w *walk) eachRecord(h head, body []byte) (next int64, err error) {
	next = h.base
	src, err := w.open(h.attributes&codecBits, body)
	if err != nil {
		return next, err
	}
	defer src.close()
	for i := range h.count {
		r, err := w.record(h, src)
		if errors.Is(err, io.EOF) {
			return next, fmt.Errorf("%d records, its head says %d", i, h.count)
		}
		if err != nil {
			return next, err
		}
		if r.Offset < next || r.Offset > h.last {
			return next, fmt.Errorf("offset %d in a batch of %d to %d, after %d", r.Offset, h.base, h.last, next-1)
		}
		if r.Offset >= w.from {
			if err := w.take(r, cost(r)); err != nil {
				return next, takeError{err}
			}
		}
		next = r.Offset + 1
	}
	return next, nil
}

// record reads one record, valid until the next; io.EOF where there is none. One that takes too much comes as a
// refusal.
func (w *walk) record(h head, src *source) (*pipeline.Record, error) {
	size, err := src.varint()
	if err != nil {
		return nil, err
	}
	if size < 0 {
		return nil, fmt.Errorf("record of %d bytes", size)
	}
	if size > int64(w.limits.Record) {
		return w.skip(h, src, size)
	}
	body, err := src.take(int(size))
	if err != nil {
		return nil, err
	}
	f := fields{b: body}
	f.skip(1) // attributes, which no version uses
	stamp, offset := h.first+f.varint(), f.varint()
	if h.attributes&appendTime != 0 {
		stamp = h.newest // the broker leaves those of the producer as they were
	}
	r := &w.at
	*r = pipeline.Record{Offset: h.base + offset, Time: nanoseconds(stamp)}
	r.Key = f.bytes()
	if value := f.bytes(); len(value) < leastMoved {
		r.Value = w.copied(value)
	} else {
		r.Key, r.Value = bytes.Clone(r.Key), moved(body, len(body)-len(f.b)-len(value), len(value))
	}
	n := f.varint()
	if n < 0 || n > int64(len(f.b))/2 {
		f.bad = true
	}
	if !f.bad && size+headerCost*n > int64(w.limits.Record) {
		return w.large(r.Offset, src.reason(), fmt.Sprintf("%d bytes and %d headers", size, n)), nil
	}
	if !f.bad && n > 0 {
		r.Headers = make([]pipeline.Header, n)
		for i := range r.Headers {
			r.Headers[i] = pipeline.Header{Key: string(f.bytes()), Value: f.bytes()}
		}
	}
	if f.bad || len(f.b) > 0 {
		return nil, fmt.Errorf("record of %d bytes: its fields do not fill it", size)
	}
	return r, nil
}

// A value begins aligned, so that most columns need no copy of their own. Small ones are copied: that keeps the rest of
// the response out of memory. A large one moves to the next aligned place before it, which is in the same cache lines:
// the fields before it, of 7 bytes at least, have been read.
const leastMoved = 8 << 10

// copied returns a copy of a small value, aligned; nil of nil.
func (w *walk) copied(value []byte) []byte {
	if len(value) == 0 {
		return value
	}
	out := w.room.take(len(value))
	copy(out, value)
	return out
}

// moved returns the n bytes of b from an offset on, aligned. What is before them is lost.
func moved(b []byte, at, n int) []byte {
	const word = 8
	to := at - int(uintptr(unsafe.Pointer(&b[at]))%word)
	copy(b[to:], b[at:at+n])
	return b[to : to+n : to+n]
}

// skip leaves out a record that is too large to be held.
func (w *walk) skip(h head, src *source, size int64) (*pipeline.Record, error) {
	before := src.read
	if _, err := src.take(1); err != nil {
		return nil, err
	}
	_, err := src.varint()
	if err != nil {
		return nil, err
	}
	offset, err := src.varint()
	if err != nil {
		return nil, err
	}
	if err := src.discard(size - (src.read - before)); err != nil {
		return nil, err
	}
	return w.large(h.base+offset, src.reason(), fmt.Sprintf("%d bytes", size)), nil
}

func (w *walk) large(offset int64, reason, has string) *pipeline.Record {
	return &pipeline.Record{Offset: offset, Unread: &pipeline.Unread{
		Reason: reason,
		Detail: fmt.Sprintf("offset %d: the record takes %s, allowed are %d: raise kafka.fetch_max_bytes, which is "+
			"1 MiB less, and for its value kafka.message_max_bytes", offset, has, w.limits.Record),
		First: offset,
	}}
}

// cost is about how much memory a record holds.
func cost(r *pipeline.Record) int {
	n := recordCost + len(r.Key) + len(r.Value) + headerCost*len(r.Headers)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// nanoseconds is a timestamp in milliseconds as the pipeline has it. One that is beyond what nanoseconds tell, as of
// a producer that counts in microseconds, is their end, not whatever its product comes to; one that is before is none.
func nanoseconds(ms int64) pipeline.Time {
	const each = int64(time.Millisecond)
	switch {
	case ms > math.MaxInt64/each:
		return math.MaxInt64
	case ms < math.MinInt64/each:
		return 0
	}
	return ms * each
}
