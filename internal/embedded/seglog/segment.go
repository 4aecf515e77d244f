package seglog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

// suffix ends the name of a segment file.
const suffix = ".log"

// markEvery is how many bytes of a segment lie between two marks of its index.
const markEvery = 64 << 10

// segment is a file of batches.
type segment struct {
	base    int64
	end     int64 // the offset after its last record
	size    int64
	maxTime int64
	newest  time.Time // when it was last appended to
	began   time.Time // when its first batch came
	marks   []mark
	f       *os.File
	path    string
}

type mark struct{ offset, at int64 }

func segmentName(base int64) string { return fmt.Sprintf("%020d%s", base, suffix) }

// createSegment makes an empty segment whose name outlives a crash. One that fails leaves no file, which would refuse
// the next try.
func createSegment(dir string, base int64, syncDir func(string) error) (*segment, error) {
	path := filepath.Join(dir, segmentName(base))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return &segment{base: base, end: base, f: f, path: path, newest: time.Now()}, nil
}

// bases are the offsets that the segments of a directory begin with. Files that a crash left unfinished are removed.
func bases(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []int64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		base, err := strconv.ParseInt(name, 10, 64)
		if err != nil || base < 0 {
			return nil, fmt.Errorf("%s: %s is no segment's name", dir, e.Name())
		}
		out = append(out, base)
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out, nil
}

// openSegment reads the headers of a segment. Of the last one it reads the batches, and cuts what is not whole.
func openSegment(dir string, base int64, last bool, seen func(*header)) (*segment, int64, error) {
	s := &segment{base: base, end: base, path: filepath.Join(dir, segmentName(base))}
	var err error
	if s.f, err = os.OpenFile(s.path, os.O_RDWR, 0); err != nil {
		return nil, 0, err
	}
	cut, err := s.scan(last, seen)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%s: %w", s.path, err), s.f.Close())
	}
	return s, cut, nil
}

// scan notes the batches of the file and returns how many bytes it cut from its end.
func (s *segment) scan(last bool, seen func(*header)) (cut int64, err error) {
	info, err := s.f.Stat()
	if err != nil {
		return 0, err
	}
	s.newest, s.began = info.ModTime(), info.ModTime()
	for s.size < info.Size() {
		h, err := s.batchAt(s.size, info.Size(), last)
		if err == nil && h.base < s.end {
			err = fmt.Errorf("%w: offset %d after %d", ErrBatch, h.base, s.end)
		}
		switch {
		case err == nil:
		case !errors.Is(err, ErrBatch):
			return 0, fmt.Errorf("byte %d: %w", s.size, err)
		case !last:
			return 0, s.damaged(err, "it was whole when it was written")
		default:
			next, failed := s.wholeAfter(info.Size())
			if failed != nil {
				return 0, failed
			}
			if next >= 0 {
				why := fmt.Sprintf("a whole batch is at byte %d, so this is no half-written end", next)
				return 0, s.damaged(err, why)
			}
			return info.Size() - s.size, errors.Join(s.f.Truncate(s.size), s.f.Sync())
		}
		s.add(&h)
		seen(&h)
	}
	return 0, nil
}

// damaged is the error of bytes that only a person may give up.
func (s *segment) damaged(err error, why string) error {
	return fmt.Errorf("byte %d: %w; %s: restore the file, or, to lose this batch and all after it in the file: "+
		"truncate -s %d %s", s.size, err, why, s.size, s.path)
}

// wholeAfter returns where from s.size on a whole batch of this segment is, at any byte since the lengths before it may
// be damaged; -1 where there is none.
func (s *segment) wholeAfter(size int64) (int64, error) {
	b := make([]byte, size-s.size)
	if _, err := s.f.ReadAt(b, s.size); err != nil {
		return 0, err
	}
	for i := 0; i+headerSize <= len(b); i++ {
		h, err := parseHeader(b[i:])
		if err != nil || h.base < s.base || h.size > int64(len(b)-i) || !counted(b[i:]) {
			continue // counted spares sums over megabytes for bytes that look like a header by chance
		}
		if whole(b[i:][:h.size]) == nil {
			return s.size + int64(i), nil
		}
	}
	return -1, nil
}

// batchAt reads the header of the batch at a position, and its bytes where they are to be checked.
func (s *segment) batchAt(at, size int64, check bool) (header, error) {
	if size-at < headerSize {
		return header{}, fmt.Errorf("%w: %d bytes", ErrBatch, size-at)
	}
	var b [headerSize]byte
	if _, err := s.f.ReadAt(b[:], at); err != nil {
		return header{}, err
	}
	h, err := parseHeader(b[:])
	switch {
	case err != nil:
		return h, err
	case at+h.size > size:
		return h, fmt.Errorf("%w: %d of %d bytes", ErrBatch, size-at, h.size)
	case !check:
		return h, nil
	}
	batch := make([]byte, h.size)
	if _, err := s.f.ReadAt(batch, at); err != nil {
		return h, err
	}
	return h, whole(batch)
}

// add notes a batch at the end of the file.
func (s *segment) add(h *header) {
	if len(s.marks) == 0 || s.size-s.marks[len(s.marks)-1].at >= markEvery {
		s.marks = append(s.marks, mark{h.base, s.size})
	}
	s.size += h.size
	s.end = h.last + 1
	s.maxTime = max(s.maxTime, h.maxTime)
}

// find returns the position of the first batch that satisfies ok, from the last mark at or before an offset; the size
// of the file where there is none.
func (s *segment) find(from int64, ok func(*header) bool) (int64, error) {
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].offset > from })
	if i == 0 && len(s.marks) == 0 {
		return s.size, nil
	}
	at := s.marks[max(i-1, 0)].at
	for at < s.size {
		h, err := s.batchAt(at, s.size, false)
		if err != nil {
			return 0, fmt.Errorf("%s: byte %d: %w", s.path, at, err)
		}
		if ok(&h) {
			return at, nil
		}
		at += h.size
	}
	return at, nil
}

// read returns whole batches from a position: at most max bytes, but one batch at least, and none from offset end on.
func (s *segment) read(at int64, limit int, end int64) ([]byte, error) {
	h, err := s.batchAt(at, s.size, false)
	if err != nil {
		return nil, fmt.Errorf("%s: byte %d: %w", s.path, at, err)
	}
	if h.base >= end {
		return nil, nil
	}
	b := make([]byte, min(max(int64(limit), h.size), s.size-at))
	if _, err := s.f.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	n := int64(0)
	for n+headerSize <= int64(len(b)) {
		h, err := parseHeader(b[n:])
		if err != nil {
			return nil, fmt.Errorf("%s: byte %d: %w", s.path, at+n, err)
		}
		if h.base >= end || n+h.size > int64(len(b)) {
			break
		}
		n += h.size
	}
	return b[:n], nil
}
