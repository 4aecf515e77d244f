package archive

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/pipeline"
)

// publishQueue holds the complete files until they are published and no checkpoint needs them. The shard adds files.
// Those that a checkpoint has are published beside the shard, in order, each until it succeeds.
type publishQueue struct {
	cfg    *Options
	counts *pipeline.Counts
	log    *slog.Logger

	mu    sync.Mutex
	rows  int64 // of all files that were published, as counted, those of the state that was restored included
	files []*queuedFile
	saved int // of files: in the latest state
	// durable is how many of files are in a state that a saved checkpoint has. A published one is let go with the next
	// checkpoint: a crash before that publishes it again.
	durable int
	running bool
	changed chan struct{} // closed and replaced when a file has been published
	stop    context.CancelFunc
	ctx     context.Context
	done    sync.WaitGroup
}

type queuedFile struct {
	file      *archivefile.File
	published bool // or given up
	damaged   bool // given up: its rows are lost
	counted   bool // the shard does so between records, so that a state and the counts beside it agree
}

func (s *publishQueue) init(cfg *Options, h pipeline.Host) {
	s.cfg, s.counts, s.log, s.changed = cfg, h.Counts, h.Log, make(chan struct{})
	s.ctx, s.stop = context.WithCancel(context.Background())
}

func (s *publishQueue) add(f *archivefile.File) {
	s.mu.Lock()
	s.files = append(s.files, &queuedFile{file: f})
	s.mu.Unlock()
}

// save begins a state: files that are counted as published are let go. It returns those that the state must hold, and
// the rows of those that have been published.
func (s *publishQueue) save() (files []*archivefile.File, published int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	s.saved = len(s.files)
	files = make([]*archivefile.File, len(s.files))
	for i, f := range s.files {
		files[i] = f.file
	}
	return files, s.rows
}

// count counts the rows of files that have been published since.
func (s *publishQueue) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if !f.published {
			return
		}
		if !f.counted {
			f.counted = true
			if f.damaged {
				s.counts.Move(pipeline.CountArchiveDisk, pipeline.CountArchiveLost, f.file.Rows)
				continue
			}
			s.rows += f.file.Rows
			s.counts.Move(pipeline.CountArchiveDisk, pipeline.CountArchivePublished, f.file.Rows)
		}
	}
}

// forget removes the files that are counted as published, which are the first.
func (s *publishQueue) forget() {
	n := 0
	for n < len(s.files) && s.files[n].counted {
		for _, g := range s.files[n].file.Segments {
			_ = os.Remove(g.Path) // if not, then when the directory is
		}
		n++
	}
	s.files = append([]*queuedFile(nil), s.files[n:]...)
	s.saved, s.durable = max(s.saved-n, 0), max(s.durable-n, 0)
}

// restored says that all files came from a checkpoint, before which others of so many rows were published.
func (s *publishQueue) restored(published int64) {
	s.mu.Lock()
	s.saved, s.rows = len(s.files), published
	s.mu.Unlock()
	s.show()
}

// show publishes the files of the latest state, which is durable now.
func (s *publishQueue) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.durable = s.saved; s.next() == nil || s.running || s.cfg.Publish == nil {
		return
	}
	s.running = true
	s.done.Go(s.run)
}

// showAll publishes everything, without a checkpoint to wait for.
func (s *publishQueue) showAll() {
	s.mu.Lock()
	s.forget()
	s.saved = len(s.files)
	s.mu.Unlock()
	s.show()
}

// next is the first file to publish.
func (s *publishQueue) next() *queuedFile {
	for _, f := range s.files[:s.durable] {
		if !f.published {
			return f
		}
	}
	return nil
}

func (s *publishQueue) run() {
	for again := backoff.New(s.cfg.retry, retryMost); ; {
		s.mu.Lock()
		f := s.next()
		if f == nil || s.ctx.Err() != nil {
			s.running = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		err := s.publish(f)
		damaged := errors.Is(err, archivefile.ErrDamaged)
		if damaged {
			s.setAside(f.file, err)
		}
		if err == nil || damaged {
			again.Reset()
			s.mu.Lock()
			f.published, f.damaged = true, damaged
			close(s.changed)
			s.changed = make(chan struct{})
			s.mu.Unlock()
			continue
		}
		wait := again.Next()
		if s.ctx.Err() == nil {
			s.log.Error("archive file cannot be written, it is tried again", "file", f.file.Name(), "model",
				f.file.Model, "version", f.file.Version, "in", wait, "err", err)
		}
		backoff.Sleep(s.ctx, wait)
	}
}

// setAside keeps the segments of a damaged file for a person, in a directory that outlives the process: most of its
// rows may be good.
func (s *publishQueue) setAside(f *archivefile.File, why error) {
	dir := filepath.Join(s.cfg.Dir, f.Name()+".damaged")
	err := os.MkdirAll(dir, 0o700)
	for _, g := range f.Segments {
		if err == nil {
			if err = os.Link(g.Path, filepath.Join(dir, g.Name)); errors.Is(err, fs.ErrExist) {
				err = nil // before a crash
			}
		}
	}
	s.log.Error("archive file is damaged: its rows are lost, and its record batches set aside", "file", f.Name(),
		"model", f.Model, "version", f.Version, "rows", f.Rows, "directory", dir, "err", errors.Join(why, err))
}

// publish publishes a file. A panic is an error, so that it does not end the process.
func (s *publishQueue) publish(f *queuedFile) (err error) {
	defer pipeline.Caught(&err)
	return s.cfg.Publish(s.ctx, f.file)
}

// pending is the size of the files that could be published and are not.
func (s *publishQueue) pending() int64 {
	n := int64(0)
	for _, f := range s.files[:s.durable] {
		if !f.published {
			n += f.file.Bytes()
		}
	}
	return n
}

// full reports whether no more may wait to be published.
func (s *publishQueue) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.PendingBytes > 0 && s.pending() > s.cfg.PendingBytes
}

// room reports whether rows may be taken. If the queue is full, it waits, or rows are dropped, as configured.
func (s *publishQueue) room(ctx context.Context) (bool, error) {
	if !s.full() {
		return true, nil
	}
	if s.cfg.drop() {
		return false, nil
	}
	return true, s.wait(ctx)
}

// wait returns when it is not full any more.
func (s *publishQueue) wait(ctx context.Context) error {
	s.log.Error("archive files cannot be written, the shard waits", "policy", "archive.when_full: wait",
		"pending_bytes", s.cfg.PendingBytes)
	for {
		s.mu.Lock()
		n, changed := s.pending(), s.changed
		s.mu.Unlock()
		if n <= s.cfg.PendingBytes {
			return nil
		}
		select {
		case <-ctx.Done():
			return errStopped
		case <-changed:
		}
	}
}

// empty returns when everything that was shown is published.
func (s *publishQueue) empty(ctx context.Context) error {
	for {
		s.mu.Lock()
		left, changed := s.next() != nil && s.cfg.Publish != nil, s.changed
		s.mu.Unlock()
		if !left {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (s *publishQueue) close() {
	s.stop()
	s.done.Wait()
}
