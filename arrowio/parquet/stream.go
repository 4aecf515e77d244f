package parquet

import (
	"bufio"
	"fmt"
	"io"
)

// stream is the bytes of a column chunk. The library peeks at a page's header, discards it, and then takes memory for
// the lengths that the header claims; Discard refuses a header that claims too much. It panics, because the library
// does not look at its error; Records.Next recovers.
type stream struct {
	r    *bufio.Reader
	left int64 // bytes of the chunk
	file *File
	head []byte // as peeked last
}

// headerBytes is the longest page header; statistics are part of it.
const headerBytes = 64 << 10

func newStream(f *File, start, n int64) *stream {
	return &stream{r: bufio.NewReaderSize(io.NewSectionReader(f.in, start, n), headerBytes), left: n, file: f}
}

// Peek returns the next n bytes, or all that are left.
func (s *stream) Peek(n int) ([]byte, error) {
	b, err := s.r.Peek(min(n, headerBytes))
	s.head = b
	return b, err
}

// Discard passes over a page header.
func (s *stream) Discard(n int) (int, error) {
	stored, inflated, err := pageSizes(s.head[:n])
	if err == nil && (stored < 0 || stored > s.left-int64(n)) {
		err = fmt.Errorf("a page of %d bytes, %d remain", stored, s.left-int64(n))
	}
	if err == nil && inflated >= 0 {
		err = s.file.inflate(inflated)
	}
	if err != nil {
		panic(err)
	}
	n, err = s.r.Discard(n)
	s.left -= int64(n)
	return n, err
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.left -= int64(n)
	return n, err
}
