package seglog

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/plumbline/plumbline/internal/durable"
)

// Retention says what a log may forget; 0 is no bound.
type Retention struct {
	Age   time.Duration // since it was written
	Bytes int64
}

// rollAfter is the part of the retention that a segment covers, so that it is forgotten not much later than it may be.
const rollAfter = 8

// Retain removes the segments that are too old or too many.
func (l *Log) Retain(r Retention, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	active := l.parts[len(l.parts)-1]
	if r.Age > 0 && active.size > 0 && now.Sub(active.began) > r.Age/rollAfter {
		if _, err := l.roll(); err != nil {
			return err
		}
	}
	total := int64(0)
	for _, s := range l.parts {
		total += s.size
	}
	for len(l.parts) > 1 {
		first := l.parts[0]
		old := r.Age > 0 && now.Sub(first.newest) > r.Age
		if !old && (r.Bytes <= 0 || total-first.size < r.Bytes) {
			return nil
		}
		if err := os.Remove(first.path); err != nil {
			return err
		}
		total -= first.size
		l.parts = l.parts[1:]
		if err := first.f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Compact rewrites the segments before the last without the batches of which every record has a successor with the same
// key. keys returns the keys of a batch; a record without one stays. It does so once for each last segment, since it
// reads the whole log while nobody else can.
func (l *Log) Compact(keys func(batch []byte) ([][]byte, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	active := l.parts[len(l.parts)-1]
	if active.base == l.compacted {
		return nil
	}
	newest := map[string]int64{} // by key: the batch that has its last record
	for _, s := range l.parts {
		if err := s.each(func(h *header, batch []byte) error {
			ks, err := keys(batch)
			for _, k := range ks {
				newest[string(k)] = h.base
			}
			return err
		}); err != nil {
			return err
		}
	}
	for _, s := range l.parts[:len(l.parts)-1] {
		if err := l.rewrite(s, func(h *header, batch []byte) (bool, error) {
			ks, err := keys(batch)
			return slices.ContainsFunc(ks, func(k []byte) bool { return k == nil || newest[string(k)] == h.base }), err
		}); err != nil {
			return err
		}
	}
	l.compacted = active.base
	return nil
}

// each calls f for every batch.
func (s *segment) each(f func(h *header, batch []byte) error) error {
	for at := int64(0); at < s.size; {
		h, err := s.batchAt(at, s.size, false)
		if err != nil {
			return err
		}
		b := make([]byte, h.size)
		if _, err := s.f.ReadAt(b, at); err != nil {
			return err
		}
		if err := f(&h, b); err != nil {
			return err
		}
		at += h.size
	}
	return nil
}

// rewrite replaces a segment by one with fewer batches: whole beside it, then in its place.
func (l *Log) rewrite(s *segment, keep func(*header, []byte) (bool, error)) error {
	out := &segment{base: s.base, end: s.base, path: s.path, newest: s.newest, began: s.began}
	f, err := os.OpenFile(s.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	out.f = f
	drop := func(err error) error { return errors.Join(err, f.Close(), os.Remove(f.Name())) }
	if err := s.each(func(h *header, b []byte) error {
		ok, err := keep(h, b)
		if !ok || err != nil {
			return err
		}
		if _, err = f.WriteAt(b, out.size); err == nil {
			out.add(h)
		}
		return err
	}); err != nil {
		return drop(err)
	}
	if out.size == s.size {
		return drop(nil)
	}
	if err := f.Sync(); err != nil {
		return drop(err)
	}
	if err := os.Rename(f.Name(), s.path); err != nil {
		return drop(err)
	}
	old := s.f
	*s = *out
	return errors.Join(durable.SyncDir(l.dir), old.Close())
}
