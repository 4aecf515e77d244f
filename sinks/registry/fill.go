package registry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/pipeline"
)

// How a filler reads and writes.
const (
	batchRecords = 256
	batchBytes   = 4 << 20
	batchWait    = 200 * time.Millisecond // a record waits no longer for others
	batchSkipped = 4096                   // records without an entry before their position is written
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	reportEvery  = time.Minute // while the database does not answer
	pruneEvery   = time.Minute
)

// Filler fills a store from partitions of topics. It never gives up: while the database does not answer it tries again
// and reads no further, so that it holds one batch a partition.
type Filler struct {
	store *Store
	log   *slog.Logger
	first time.Duration // backoff
	pause func(context.Context, time.Duration)

	Stored, Repeated, Unreadable, Failures, Pruned atomic.Int64

	mu       sync.Mutex
	parts    map[Place]*part
	touched  map[string]bool // models with new entries since the last pruning
	down     map[Place]error // partitions whose last try failed
	since    time.Time       // of the first of them
	reported time.Time
}

// Source reads a partition, as kafkaio.Log does.
type Source interface {
	// Next blocks for the next record, or, each time the end is reached, one with Idle set; io.EOF ends a bounded
	// input.
	Next(ctx context.Context) (pipeline.Record, error)
	// Behind is how many offsets there are from the given one to the log's end; false while that is not known.
	Behind(next int64) (offsets int64, ok bool)
	Close() error
}

// part is a partition that is being followed.
type part struct {
	src  Source // nil: not open
	next int64  // first offset not written
}

// NewFiller returns a filler.
func NewFiller(s *Store, log *slog.Logger) *Filler {
	return &Filler{store: s, log: log, first: firstPause, pause: backoff.Sleep, parts: map[Place]*part{},
		touched: map[string]bool{}, down: map[Place]error{}}
}

// Follow fills the store from a partition until ctx is done or the source ends. open returns a source that begins at an
// offset, 0 being the start of the log.
func (f *Filler) Follow(ctx context.Context, p Place, open func(next int64) Source, decode Decode) {
	f.set(p, part{})
	for again := backoff.New(f.first, longestPause); ctx.Err() == nil; {
		next, err := f.store.Position(ctx, p)
		if err == nil {
			src := open(next)
			f.set(p, part{src, next})
			var went bool
			if went, err = f.copy(ctx, p, src, next, decode); went {
				again.Reset() // what fails now is not what failed before
			}
			f.set(p, part{})
			_ = src.Close()
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, io.EOF):
			f.mu.Lock()
			delete(f.parts, p) // nothing of it is missing
			f.mu.Unlock()
			return
		case errors.Is(err, ErrMoved):
			f.log.Info("history: the database is not where it was, filling it again", "topic", p.Topic, "partition",
				p.Partition, "err", err)
			again.Reset()
			continue
		case errors.Is(err, kafka.OffsetOutOfRange):
			f.log.Error("history: the log does not have the next record any more "+
				"(retention, or the topic was made anew): going on at its start",
				"topic", p.Topic, "partition", p.Partition, "err", err)
			err = f.store.Rewind(ctx, p, next)
		}
		f.report(p, err)
		f.pause(ctx, again.Next())
	}
}

func (f *Filler) set(p Place, pt part) {
	f.mu.Lock()
	f.parts[p] = &pt
	f.mu.Unlock()
}

// batch is what has been read and not written.
type batch struct {
	from, upTo int64
	entries    []Entry
	bytes      int
	since      time.Time // of the first entry
}

// full reports whether a batch must be written before more is read.
func (b *batch) full() bool {
	return len(b.entries) >= batchRecords || b.bytes >= batchBytes || b.upTo-b.from >= batchSkipped
}

// copy takes records from a source to the store. went: some were written, or the end was reached.
func (f *Filler) copy(ctx context.Context, p Place, src Source, next int64, decode Decode) (went bool, err error) {
	b := batch{from: next, upTo: next}
	for {
		wait, cancel := ctx, context.CancelFunc(func() {})
		if len(b.entries) > 0 {
			wait, cancel = context.WithDeadline(ctx, b.since.Add(batchWait))
		}
		r, err := src.Next(wait)
		late := err != nil && wait.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case errors.Is(err, io.EOF):
			if err := f.write(ctx, p, &b); err != nil {
				return went, err
			}
			return true, io.EOF
		case err != nil && !late:
			return went, err
		case err == nil && !r.Idle:
			f.read(&b, &r, decode)
		}
		if b.full() || late || r.Idle && b.upTo > b.from {
			if err := f.write(ctx, p, &b); err != nil {
				return went, err
			}
			went = true
		}
		went = went || r.Idle
	}
}

// read adds a record to a batch.
func (f *Filler) read(b *batch, r *pipeline.Record, decode Decode) {
	b.upTo = r.Offset + 1
	e, ok, err := func() (e Entry, ok bool, err error) {
		defer pipeline.Caught(&err)
		return decode(r)
	}()
	if err != nil {
		f.Unreadable.Add(1)
		f.log.Error("history: record cannot be used", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset,
			"err", err)
	}
	if err != nil || !ok {
		return
	}
	if len(b.entries) == 0 {
		b.since = time.Now()
	}
	b.entries = append(b.entries, e)
	b.bytes += len(e.Record)
}

// write puts a batch into the store, however often that takes.
func (f *Filler) write(ctx context.Context, p Place, b *batch) error {
	for again := backoff.New(f.first, longestPause); ; again.Wait(ctx) {
		added, err := f.store.Put(ctx, p, b.from, b.upTo, b.entries)
		f.report(p, err)
		if err == nil {
			f.wrote(p, b, added)
			*b = batch{from: b.upTo, upTo: b.upTo}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, ErrMoved) {
			return err
		}
	}
}

func (f *Filler) wrote(p Place, b *batch, added int) {
	f.Stored.Add(int64(added))
	f.Repeated.Add(int64(len(b.entries) - added))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts[p].next = b.upTo
	for i := range b.entries {
		f.touched[b.entries[i].Model] = true
	}
}

// report notes how the last try of a partition went, and says so where that is news.
func (f *Filler) report(p Place, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrMoved) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		if _, was := f.down[p]; was {
			if delete(f.down, p); len(f.down) == 0 {
				f.log.Info("history: the database answers again", "after", time.Since(f.since).Round(time.Millisecond))
			}
		}
		return
	}
	f.Failures.Add(1)
	if len(f.down) == 0 {
		f.since, f.reported = time.Now(), time.Time{}
	}
	f.down[p] = err
	if time.Since(f.reported) >= reportEvery {
		f.reported = time.Now()
		f.log.Error("history: the database is behind, trying again; the stream goes on", "for",
			time.Since(f.since).Round(time.Second), "err", err)
	}
}

// Prune removes what is beyond the bounds of Config until ctx is done: of all models at the start, then once a minute
// of those that got entries.
func (f *Filler) Prune(ctx context.Context) {
	var models []string // nil: all
	for ctx.Err() == nil {
		n, err := f.store.Prune(ctx, models)
		f.Pruned.Add(n)
		if err != nil && ctx.Err() == nil {
			f.Failures.Add(1)
			f.log.Warn("history: prune, trying again", "err", err)
		}
		backoff.Sleep(ctx, pruneEvery)
		if err == nil {
			f.mu.Lock()
			models = slices.AppendSeq([]string{}, maps.Keys(f.touched))
			f.touched = map[string]bool{}
			f.mu.Unlock()
		}
	}
}

// Status is how a filler does.
type Status struct {
	Up bool `json:"up"` // the last tries of all partitions went well
	// Behind is how many offsets are on the topics and not in the database; -1 = not known.
	Behind int64  `json:"behind"`
	Error  string `json:"error,omitempty"` // why it is not up
}

// Progress tells how far the database is.
func (f *Filler) Progress() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := Status{Up: len(f.down) == 0}
	for _, err := range f.down {
		st.Error = max(st.Error, err.Error()) // of several the same each time
	}
	for _, pt := range f.parts {
		if pt.src == nil {
			st.Behind = -1
			break
		}
		n, ok := pt.src.Behind(pt.next)
		if !ok {
			st.Behind = -1
			break
		}
		st.Behind += n
	}
	return st
}
