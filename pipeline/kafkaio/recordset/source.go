package recordset

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

var (
	errVarint = errors.New("a number of more than 64 bits")
	errEnd    = errors.New("the bytes end within a record")
)

// source reads the content of a batch: bytes of the response, or their decompression.
type source struct {
	flat  []byte
	codec *bufio.Reader // nil: flat
	free  func()
	room  *room // for what is decompressed
	read  int64 // bytes so far
	limit int64
}

func flat(b []byte) *source { return &source{flat: b, limit: math.MaxInt64} }

// buffers are those of sources that were closed: a batch may be one small record.
var buffers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// inflated reads what a codec gives; free lets go of the codec.
func inflated(codec io.Reader, free func(), limit int64) *source {
	b := buffers.Get().(*bufio.Reader) //nolint:errcheck // the pool has nothing else
	b.Reset(codec)
	return &source{codec: b, free: free, limit: limit}
}

// reason is the one for which what takes too much is refused.
func (s *source) reason() string {
	if s.codec == nil {
		return TooLarge
	}
	return Inflates
}

func (s *source) close() {
	if s.free != nil {
		s.free()
	}
	if s.codec != nil {
		s.codec.Reset(nil)
		buffers.Put(s.codec)
		s.codec = nil
	}
}

// ReadByte implements io.ByteReader.
func (s *source) ReadByte() (byte, error) {
	if err := s.count(1); err != nil {
		return 0, err
	}
	if s.codec != nil {
		return s.codec.ReadByte()
	}
	if len(s.flat) == 0 {
		return 0, io.EOF
	}
	b := s.flat[0]
	s.flat = s.flat[1:]
	return b, nil
}

func (s *source) count(n int64) error {
	if n > s.limit-s.read {
		return fmt.Errorf("the batch %w to more than %d bytes", errInflates, s.limit)
	}
	s.read += n
	return nil
}

// varint reads a zigzag number; io.EOF where there is no byte of it.
func (s *source) varint() (int64, error) {
	var u uint64
	for shift := 0; shift < 70; shift += 7 {
		b, err := s.ReadByte()
		if errors.Is(err, io.EOF) && shift > 0 {
			err = errEnd
		}
		if err != nil {
			return 0, err
		}
		u |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return int64(u>>1) ^ -int64(u&1), nil //nolint:gosec // zigzag
		}
	}
	return 0, errVarint
}

// take returns the next n bytes, which stay valid.
func (s *source) take(n int) ([]byte, error) {
	if err := s.count(int64(n)); err != nil {
		return nil, err
	}
	if s.codec == nil {
		if n > len(s.flat) {
			return nil, errEnd
		}
		b := s.flat[:n:n]
		s.flat = s.flat[n:]
		return b, nil
	}
	b := s.room.take(n)
	if _, err := io.ReadFull(s.codec, b); err != nil {
		return nil, within(err)
	}
	return b, nil
}

func (s *source) discard(n int64) error {
	if n < 0 {
		return errEnd
	}
	if err := s.count(n); err != nil {
		return err
	}
	if s.codec == nil {
		if n > int64(len(s.flat)) {
			return errEnd
		}
		s.flat = s.flat[n:]
		return nil
	}
	_, err := io.CopyN(io.Discard, s.codec, n)
	return within(err)
}

// within is an error in the middle of a record.
func within(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEnd
	}
	return err
}

// fields reads the fields of a record that lies in memory. bad says that one of them cannot be.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) skip(n int) {
	if f.bad = f.bad || n > len(f.b); !f.bad {
		f.b = f.b[n:]
	}
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.b)
	if f.bad = f.bad || n <= 0; f.bad {
		return 0
	}
	f.b = f.b[n:]
	return v
}

// bytes reads a length and so many bytes; nil where the length is negative.
func (f *fields) bytes() []byte {
	n := f.varint()
	if n < 0 || f.bad {
		return nil
	}
	if f.bad = n > int64(len(f.b)); f.bad {
		return nil
	}
	b := f.b[:n:n]
	f.b = f.b[n:]
	return b
}
