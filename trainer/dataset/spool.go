package dataset

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
)

// spool holds features that do not lie in their file as numbers one after the other (Parquet, CSV, compressed arrays):
// a few in memory, more in an unlinked temporary file in the system's directory for those (TMPDIR). They are copied
// into memory afterwards where they fit (Source.hold), so they should not take it twice. Only where there can be no
// temporary file does the spool keep them in memory, up to the bound.
type spool struct {
	memory int64
	bound  string // the setting that memory is, for errors
	size   int64
	buf    []byte
	file   *os.File
}

// floats appends numbers.
func (s *spool) floats(v []float32) error {
	const run = 4096
	var raw [4 * run]byte
	for len(v) > 0 {
		n := min(run, len(v))
		for i, x := range v[:n] {
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
		}
		if err := s.write(raw[:4*n]); err != nil {
			return err
		}
		v = v[n:]
	}
	return nil
}

// spoolBuffer is how many bytes a spool holds before it has a file.
const spoolBuffer = 16 << 20

func (s *spool) write(b []byte) error {
	size := int64(len(s.buf) + len(b))
	if s.file == nil && size <= min(s.memory, spoolBuffer) {
		s.buf = append(s.buf, b...)
		s.size += int64(len(b))
		return nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "plumbline-features-*")
		if err != nil && size <= s.memory {
			s.buf = append(s.buf, b...)
			s.size = size
			return nil
		}
		if err != nil {
			return s.noRoom(err)
		}
		_ = os.Remove(f.Name()) // the open file stays; where it does not, Close removes it
		s.file = f
		if _, err := f.Write(s.buf); err != nil {
			return s.noRoom(err)
		}
		s.buf = nil
	}
	if _, err := s.file.Write(b); err != nil {
		return s.noRoom(err)
	}
	s.size += int64(len(b))
	return nil
}

func (s *spool) noRoom(err error) error {
	return fmt.Errorf("features of Parquet, CSV and compressed files are unpacked to %s (TMPDIR), "+
		"those that fit into %s too: %w", os.TempDir(), s.bound, err)
}

// ReadAt implements io.ReaderAt.
func (s *spool) ReadAt(p []byte, off int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, off)
	}
	if off < 0 || off >= int64(len(s.buf)) {
		return 0, io.EOF
	}
	n := copy(p, s.buf[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Close implements io.Closer.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	_ = os.Remove(s.file.Name()) // gone already, where open files may be
	return err
}
