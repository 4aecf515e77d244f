package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Fields of a record batch of version 2.
const (
	atLength     = 8
	atMagic      = 16
	atCRC        = 17
	atAttributes = 21
	atLastDelta  = 23
	atFirstTime  = 27
	atMaxTime    = 35
	atProducer   = 43
	atEpoch      = 51
	atSequence   = 53
	atCount      = 57
	headerSize   = 61
	lengthAfter  = 12 // what the length does not count
)

// Bits of the attributes.
const (
	bitsCodec     = 0x07
	bitAppendTime = 0x08
	bitTxn        = 0x10
	bitControl    = 0x20
	magic         = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrBatch means that bytes are no batch that a log takes.
var ErrBatch = errors.New("not a record batch")

// header is what the log reads of a batch.
type header struct {
	base, last       int64
	size             int64
	maxTime          int64
	producer         int64
	epoch            int16
	firstSeq, lstSeq int32
}

// parseHeader reads the first headerSize bytes of a batch.
func parseHeader(b []byte) (header, error) {
	size := int64(int32(binary.BigEndian.Uint32(b[atLength:]))) + lengthAfter //nolint:gosec // signed on the wire
	delta := int32(binary.BigEndian.Uint32(b[atLastDelta:]))                  //nolint:gosec // signed on the wire
	base := int64(binary.BigEndian.Uint64(b))                                 //nolint:gosec // signed on the wire
	if size < headerSize || delta < 0 || base < 0 || b[atMagic] != magic {
		return header{}, fmt.Errorf("%w: length %d, version %d, offsets %d and %d more", ErrBatch, size, b[atMagic],
			base, delta)
	}
	h := header{base: base, last: base + int64(delta), size: size}
	h.maxTime = int64(binary.BigEndian.Uint64(b[atMaxTime:]))        //nolint:gosec // signed on the wire
	h.producer = int64(binary.BigEndian.Uint64(b[atProducer:]))      //nolint:gosec // signed on the wire
	h.epoch = int16(binary.BigEndian.Uint16(b[atEpoch:]))            //nolint:gosec // signed on the wire
	h.firstSeq = int32(binary.BigEndian.Uint32(b[atSequence:]))      //nolint:gosec // signed on the wire
	h.lstSeq = int32(uint32(h.firstSeq)+uint32(delta)) & (1<<31 - 1) //nolint:gosec // wraps as sequences do
	return h, nil
}

// whole reports whether b is one batch with the right checksum.
func whole(b []byte) error {
	if len(b) < headerSize {
		return fmt.Errorf("%w: %d bytes", ErrBatch, len(b))
	}
	h, err := parseHeader(b)
	if err != nil {
		return err
	}
	if h.size != int64(len(b)) {
		return fmt.Errorf("%w: length %d in %d bytes", ErrBatch, h.size, len(b))
	}
	if sum := crc32.Checksum(b[atAttributes:], castagnoli); sum != binary.BigEndian.Uint32(b[atCRC:]) {
		return fmt.Errorf("%w: checksum %08x, its bytes have %08x", ErrBatch, binary.BigEndian.Uint32(b[atCRC:]), sum)
	}
	return nil
}

// Check returns an error where b is not one batch as a producer may send it.
func Check(b []byte) error {
	if err := whole(b); err != nil {
		return err
	}
	attributes := binary.BigEndian.Uint16(b[atAttributes:])
	switch {
	case attributes&(bitTxn|bitControl) != 0:
		return fmt.Errorf("%w: of a transaction, which this log has not", ErrBatch)
	case attributes&bitsCodec > 4:
		return fmt.Errorf("%w: compression %d", ErrBatch, attributes&bitsCodec)
	case !counted(b):
		return fmt.Errorf("%w: %d records", ErrBatch, binary.BigEndian.Uint32(b[atCount:]))
	}
	return nil
}

// counted reports whether the number of records is that of the offsets, as in every batch that Check passes.
func counted(b []byte) bool {
	count := binary.BigEndian.Uint32(b[atCount:])
	return count > 0 && binary.BigEndian.Uint32(b[atLastDelta:])+1 == count
}

// Stamp gives the records of a batch the time of their arrival, in Unix milliseconds.
func Stamp(b []byte, now int64) {
	attributes := binary.BigEndian.Uint16(b[atAttributes:]) | bitAppendTime
	binary.BigEndian.PutUint16(b[atAttributes:], attributes)
	binary.BigEndian.PutUint64(b[atMaxTime:], uint64(now)) //nolint:gosec // bits
	binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:], castagnoli))
}

// Batches calls f for each batch in what Read has returned.
func Batches(b []byte, f func(base int64, records int, batch []byte) error) error {
	for len(b) >= headerSize {
		h, err := parseHeader(b)
		if err == nil {
			err = f(h.base, int(binary.BigEndian.Uint32(b[atCount:])), b[:h.size])
		}
		if err != nil {
			return err
		}
		b = b[h.size:]
	}
	return nil
}

// Anonymous makes a batch one that any producer may send to another log.
func Anonymous(b []byte) {
	clear(b[:atLength])
	binary.BigEndian.PutUint16(b[atAttributes:], binary.BigEndian.Uint16(b[atAttributes:])&^bitAppendTime)
	for i := atProducer; i < atCount; i++ { // -1, the number of nobody
		b[i] = 0xff
	}
	Seal(b)
}

// Seal gives a batch its length and its checksum.
func Seal(b []byte) {
	binary.BigEndian.PutUint32(b[atLength:], uint32(len(b)-lengthAfter)) //nolint:gosec // a message
	binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:], castagnoli))
}
