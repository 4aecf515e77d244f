package recordset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/plumbline/plumbline/pipeline"
)

// A message of formats 0 and 1, as topics from before Kafka 0.11 still hold: offset, size, CRC32, magic, attributes,
// from format 1 on the timestamp, key, value. In a compressed one the value holds messages.
type message struct {
	offset   int64
	magic    byte
	codec    uint16
	appended bool // the stamp is of the broker's clock
	stamp    int64
	key      []byte
	value    []byte
}

var errMessage = errors.New("message with fields that do not fill it")

// parseMessage reads a message that lies in memory, without its offset and size.
//
//nolint:gosec // signed in the protocol
func parseMessage(offset int64, b []byte) (message, error) {
	const least = 4 + 2 // CRC32, magic, attributes
	if len(b) < least {
		return message{}, errMessage
	}
	be := binary.BigEndian
	if got, want := crc32.ChecksumIEEE(b[4:]), be.Uint32(b); got != want {
		return message{}, fmt.Errorf("message at offset %d: CRC32 %08x, written %08x", offset, got, want)
	}
	m := message{offset: offset, magic: b[4], codec: uint16(b[5]) & codecBits, appended: b[5]&appendTime != 0}
	b = b[least:]
	if m.magic > 0 {
		if len(b) < 8 {
			return m, errMessage
		}
		m.stamp = int64(be.Uint64(b))
		b = b[8:]
	}
	for _, field := range []*[]byte{&m.key, &m.value} {
		if len(b) < 4 {
			return m, errMessage
		}
		n := int64(int32(be.Uint32(b)))
		b = b[4:]
		if n < 0 {
			continue
		}
		if n > int64(len(b)) {
			return m, errMessage
		}
		*field, b = b[:n:n], b[n:]
	}
	return m, nil
}

// readMessage takes one message, or those that it wraps.
//
//nolint:gosec // signed in the protocol
func (w *walk) readMessage(b []byte) error {
	m, err := parseMessage(int64(binary.BigEndian.Uint64(b)), b[batchHead:])
	if err != nil {
		return err
	}
	switch {
	case m.offset < w.from:
	case m.codec == 0:
		err = w.single(m, m.offset, TooLarge)
		var taken takeError
		if errors.As(err, &taken) {
			err = taken.error
		}
	default:
		next, werr := w.wrapped(m)
		err = w.refuseFor(next, m.offset, werr)
	}
	if err == nil {
		w.after = max(w.after, m.offset+1)
	}
	return err
}

// single takes a message; reason is that of one that is too large.
func (w *walk) single(m message, offset int64, reason string) error {
	if offset < w.from {
		return nil
	}
	r := &pipeline.Record{Offset: offset, Time: nanoseconds(m.stamp), Key: m.key, Value: bytes.Clone(m.value)}
	if len(m.key)+len(m.value) > w.limits.Record {
		r = w.large(offset, reason, fmt.Sprintf("%d bytes", len(m.key)+len(m.value)))
	}
	if err := w.take(r, cost(r)); err != nil {
		return takeError{err}
	}
	return nil
}

// wrapped hands out the messages in a compressed one. In format 1 their offsets count from the first, and the wrapper
// has that of the last: it takes a first pass to know them.
func (w *walk) wrapped(outer message) (next int64, err error) {
	shift := int64(0)
	if outer.magic > 0 {
		last := int64(0)
		if err := w.inner(outer, func(offset int64, _ *source, _ int) error {
			last = offset
			return nil
		}); err != nil {
			return 0, err
		}
		shift = outer.offset - last
	}
	err = w.inner(outer, func(offset int64, src *source, size int) error {
		offset += shift
		if offset < next || offset > outer.offset {
			return fmt.Errorf("offset %d in messages up to %d, after %d", offset, outer.offset, next-1)
		}
		if size > w.limits.Record {
			r := w.large(offset, Inflates, fmt.Sprintf("%d bytes", size))
			next = offset + 1
			if offset < w.from {
				return nil
			}
			if err := w.take(r, cost(r)); err != nil {
				return takeError{err}
			}
			return nil
		}
		b, err := src.take(size)
		if err != nil {
			return err
		}
		m, err := parseMessage(offset, b)
		if err == nil && m.codec != 0 {
			err = errors.New("compressed messages in compressed messages")
		}
		if outer.appended {
			m.stamp = outer.stamp
		}
		if err == nil {
			err = w.single(m, offset, Inflates)
		}
		if err == nil {
			next = offset + 1
		}
		return err
	})
	return next, err
}

// inner calls each with the offset and size of the messages that a compressed one holds; what it does not read is
// skipped.
//
//nolint:gosec // signed in the protocol
func (w *walk) inner(outer message, each func(offset int64, src *source, size int) error) error {
	src, err := w.open(outer.codec, outer.value)
	if err != nil {
		return err
	}
	defer src.close()
	for {
		var b [batchHead]byte
		for i := range b {
			if b[i], err = src.ReadByte(); err != nil {
				break
			}
		}
		if errors.Is(err, io.EOF) {
			return nil // the last one may be cut
		}
		if err != nil {
			return err
		}
		size := int64(int32(binary.BigEndian.Uint32(b[sizeAt:])))
		if size < 0 {
			return errMessage
		}
		before := src.read
		if err := each(int64(binary.BigEndian.Uint64(b[:])), src, int(size)); err != nil {
			return err
		}
		if err := src.discard(size - (src.read - before)); err != nil {
			return err
		}
	}
}
