package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/plumbline/plumbline/internal/durable"
)

// Options of a log.
type Options struct {
	SegmentBytes int64
	Log          *slog.Logger

	syncFile func(*os.File) error // nil is Sync: for tests
	syncDir  func(string) error   // nil is durable.SyncDir: for tests
}

// ErrRange means that an offset is not, or not any more, in the log.
var ErrRange = errors.New("offset is not in the log")

// Log is one partition. Its methods may be called at the same time.
type Log struct {
	Options
	dir string

	syncing sync.Mutex // held by who syncs
	mu      sync.RWMutex
	parts   []*segment // the last one is appended to
	next    int64      // offset of the next record
	durable int64      // offsets below it are synced
	who     producers

	compacted int64 // base of the last segment when the log was compacted

	broken  error
	changed chan struct{} // closed when durable grows
}

// Open opens the log in a directory, or makes an empty one.
func Open(dir string, o Options) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if o.syncFile == nil {
		o.syncFile = (*os.File).Sync
	}
	if o.syncDir == nil {
		o.syncDir = durable.SyncDir
	}
	l := &Log{Options: o, dir: dir, who: producers{}, changed: make(chan struct{})}
	found, err := bases(dir)
	if err != nil {
		return nil, err
	}
	for i, base := range found {
		if base < l.next {
			err := fmt.Errorf("%s: segment %d begins below offset %d, where the one before ends", dir, base, l.next)
			return nil, errors.Join(err, l.Close())
		}
		s, cut, err := openSegment(dir, base, i == len(found)-1, l.who.note)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		if cut > 0 {
			o.Log.Warn("the end of a segment held no whole batch and was cut off; if the process ended in the "+
				"middle of a write, nothing acknowledged was in it", "file", s.path, "at", s.size, "bytes", cut)
		}
		l.parts, l.next = append(l.parts, s), s.end
	}
	if len(l.parts) == 0 {
		s, err := createSegment(dir, 0, o.syncDir)
		if err != nil {
			return nil, err
		}
		l.parts = append(l.parts, s)
	}
	l.durable = l.next
	return l, nil
}

// Close closes the files.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, s := range l.parts {
		errs = append(errs, s.f.Close())
	}
	l.parts, l.broken = nil, os.ErrClosed
	return errors.Join(errs...)
}

// Bounds are the offsets of the first record and of the next one.
func (l *Log) Bounds() (start, end int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.parts) == 0 {
		return 0, 0
	}
	return l.parts[0].base, l.durable
}

// Changed is closed when there are more records than at the call.
func (l *Log) Changed() <-chan struct{} {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.changed
}

// Append writes a batch that Check has passed, and returns the offset of its first record when it is synced. The offset
// of a batch that its producer sends again is that of the first time.
func (l *Log) Append(batch []byte) (int64, error) {
	h, err := parseHeader(batch)
	if err != nil {
		return 0, err
	}
	base, end, err := l.write(batch, &h)
	if err != nil {
		return 0, err
	}
	return base, l.sync(end)
}

// write puts a batch at the end of the last segment.
func (l *Log) write(batch []byte, h *header) (base, end int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return 0, 0, l.broken
	}
	if base, err = l.who.known(h); err != nil || base >= 0 {
		return base, l.next, err
	}
	active := l.parts[len(l.parts)-1]
	if active.size > 0 && active.size+h.size > l.SegmentBytes {
		if active, err = l.roll(); err != nil {
			return 0, 0, err
		}
	}
	h.last += l.next - h.base
	h.base = l.next
	binary.BigEndian.PutUint64(batch, uint64(h.base)) //nolint:gosec // not negative
	clear(batch[lengthAfter:atMagic])                 // the leader's epoch, which is 0
	if _, err := active.f.WriteAt(batch, active.size); err != nil {
		if cut := active.f.Truncate(active.size); cut != nil {
			l.broken = fmt.Errorf("%s cannot be cut to its %d bytes: %w", active.path, active.size, cut)
		}
		return 0, 0, err
	}
	if active.newest = time.Now(); active.size == 0 {
		active.began = active.newest
	}
	active.add(h)
	l.who.note(h)
	l.next = active.end
	return h.base, l.next, nil
}

// roll begins a new segment; the caller holds mu.
func (l *Log) roll() (*segment, error) {
	if err := l.syncFile(l.parts[len(l.parts)-1].f); err != nil {
		l.broken = fmt.Errorf("sync: %w", err)
		return nil, l.broken
	}
	s, err := createSegment(l.dir, l.next, l.syncDir)
	if err != nil {
		return nil, err
	}
	l.parts = append(l.parts, s)
	return s, nil
}

// sync returns when everything below an offset is on disk. Those who wait for a sync share the next one.
func (l *Log) sync(end int64) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.RLock()
	durable, broken, to := l.durable, l.broken, l.next
	var f *os.File
	if len(l.parts) > 0 {
		f = l.parts[len(l.parts)-1].f
	}
	l.mu.RUnlock()
	if durable >= end {
		return nil
	}
	if broken != nil {
		return broken
	}
	err := l.syncFile(f) // the segments before it were synced when they were left
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.parts); errors.Is(err, os.ErrClosed) && n > 0 && l.parts[n-1].f != f {
		err = nil // it was left, and so synced, and then compacted or forgotten
	}
	if err != nil {
		l.broken = fmt.Errorf("sync: %w", err)
		return l.broken
	}
	l.durable = to
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// Read returns batches from the one that has offset from on: at most limit bytes of one segment, but one batch at
// least; none at the end of the log.
func (l *Log) Read(from int64, limit int) ([]byte, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.parts) == 0 || from < l.parts[0].base || from > l.durable {
		return nil, ErrRange
	}
	i := sort.Search(len(l.parts), func(i int) bool { return l.parts[i].base > from }) - 1
	for ; i < len(l.parts); i++ {
		s := l.parts[i]
		at, err := s.find(from, func(h *header) bool { return h.last >= from })
		if err != nil {
			return nil, err
		}
		if at < s.size {
			return s.read(at, limit, l.durable)
		}
	}
	return nil, nil
}

// At returns the offset of the first batch with a record at or after a time, in Unix milliseconds; -1 where there is
// none.
func (l *Log) At(t int64) (int64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.parts {
		if s.maxTime < t {
			continue
		}
		found := int64(-1)
		_, err := s.find(s.base, func(h *header) bool {
			if found < 0 && h.maxTime >= t && h.base < l.durable {
				found = h.base
			}
			return found >= 0
		})
		if err != nil || found >= 0 {
			return found, err
		}
	}
	return -1, nil
}
