package parquet

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
)

// stream is the bytes of a column chunk. The library peeks at a page's header, discards it, and then takes memory for
// the lengths that the header claims; Discard refuses a header that claims too much. It panics, because the library
// does not look at its error; Records.Next recovers. So does Read of a page whose bytes have not the CRC that some
// writers put into its header.
type stream struct {
	r    *bufio.Reader
	end  int64 // of the chunk in the file
	left int64 // bytes of the chunk
	file *File
	head []byte // as peeked last

	page pageHeader // whose bytes are being read
	due  int64      // bytes of it
	sum  uint32     // of those before
}

// headerBytes is the longest page header; statistics are part of it.
const headerBytes = 64 << 10

func newStream(f *File, start, n int64) *stream {
	return &stream{r: bufio.NewReaderSize(io.NewSectionReader(f.in, start, n), headerBytes), end: start + n,
		left: n, file: f}
}

// Peek returns the next n bytes, or all that are left.
func (s *stream) Peek(n int) ([]byte, error) {
	b, err := s.r.Peek(min(n, headerBytes))
	s.head = b
	return b, err
}

// Discard passes over a page header.
func (s *stream) Discard(n int) (int, error) {
	h, err := pageHeaderOf(s.head[:n])
	if err == nil && (h.stored < 0 || h.stored > s.left-int64(n)) {
		err = fmt.Errorf("a page of %d bytes, %d remain", h.stored, s.left-int64(n))
	}
	if err == nil && h.inflated >= 0 {
		err = s.file.inflate(h.inflated)
	}
	if err != nil {
		panic(err)
	}
	s.page, s.due, s.sum = h, h.stored, 0
	n, err = s.r.Discard(n)
	s.left -= int64(n)
	return n, err
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.left -= int64(n)
	if s.page.checked && s.due > 0 {
		m := min(int64(n), s.due)
		s.due -= m
		if s.sum = crc32.Update(s.sum, crc32.IEEETable, b[:m]); s.due == 0 && s.sum != s.page.crc {
			panic(fmt.Errorf("the page at byte %d is damaged: its CRC is %08x, and its header says %08x",
				s.end-s.left-s.page.stored, s.sum, s.page.crc))
		}
	}
	return n, err
}
