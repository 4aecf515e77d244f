package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// Converter turns records into messages.
type Converter interface {
	// Opening returns the messages before the first record.
	Opening() []Message
	// Ready fetches what Take needs for a record from elsewhere, such as its schema. It waits until ctx ends.
	Ready(ctx context.Context, r *Record) error
	// Take returns the messages for a record, or holds it, to put it into one message with others that are at hand.
	Take(r Record) []Message
	// Release returns the messages for the records that are held.
	Release() []Message
	// Closing returns the messages for the end of reading.
	Closing() []Message
	// Gather returns further messages about the records since the last call; they are written before these records
	// count as read.
	Gather() []Message
	// Skip returns the messages for a record that is skipped because it ended the relay several times.
	Skip(r Record, why string) []Message
}

// Buffered is a Source that knows whether Next would block.
type Buffered interface {
	Source
	Buffered() bool
}

// Relay runs a stage without state: it reads records, writes their messages, then commits the offsets. Messages are
// written at least once; readers recognise a repeat by its Provenance.
type Relay struct {
	Name     string
	Source   Buffered
	Convert  Converter
	Sink     Sink
	Input    Input
	Next     int64         // first offset to read; -1 = the log's start
	Interval time.Duration // wall clock between commits
	Log      *slog.Logger
	Counts   *Counts
	Status   *RelayStatus
	Guard    Guard // nil = nothing is skipped
	// Confirm is called before messages are written and offsets are committed; an error says that the records are from
	// another topic than the source's. Messages that it could not confirm because ctx was done are not written. The
	// closing messages need no confirmation. It may be nil.
	Confirm func(ctx context.Context) error
	Trace   *tracing.Lane // nil = none

	at      Record // read last
	last    Record // taken last; its memory may be gone
	took    bool   // whether a record was taken since the last release
	waiting bool   // for what it needs
	ahead   bool   // a record was ahead of the clock
	// What made calls, once for all records.
	take    takerFunc
	release takerFunc
	skip    func(why string) bool
	out     []Message // what these made
	message tracing.Message
}

// RelayStatus is the status of a relay.
type RelayStatus struct {
	Task      string
	Partition int
	p         atomic.Pointer[TaskStatus]
}

// Status returns the latest status, nil before the first.
func (s *RelayStatus) Status() *TaskStatus { return s.p.Load() }

// maxRelayed is how many bytes of messages are gathered before they are written; one record may exceed it.
const maxRelayed = 4 << 20

// Run relays until ctx is done (nil), the source ends (nil) or an error. Messages of records that are available
// together are written together.
func (y *Relay) Run(ctx context.Context) error {
	if err := y.run(ctx); err != nil {
		return fmt.Errorf("%s: %w", y.Name, err)
	}
	return nil
}

func (y *Relay) run(ctx context.Context) error {
	y.Guard = guarded(y.Guard)
	y.take = func(r Record) error {
		y.out = y.Convert.Take(r)
		return nil
	}
	y.release = func(Record) error {
		y.out = y.Convert.Release()
		return nil
	}
	y.skip = func(why string) bool {
		y.out = y.Convert.Skip(y.at, why)
		return true
	}
	done, last := y.Next, time.Time{} // offset before which all is written; when it was committed
	y.Sink = lossySink{y.Sink, y.Counts}
	y.report(done, false)
	if err := y.Sink.Write(ctx, y.Convert.Opening()); err != nil && ctx.Err() == nil {
		return err
	}
	for {
		ms, next, passed, err := y.gather(ctx, last.Add(y.Interval))
		due := passed || isEOF(err) || time.Since(last) >= y.Interval
		if (len(ms) > 0 || due) && y.Confirm != nil {
			switch cerr := y.Confirm(ctx); {
			case ctx.Err() != nil: // it says nothing; the records come again
				ms, next = nil, -1
			case cerr != nil:
				return cerr
			}
		}
		var werr error
		if next >= 0 || len(ms) > 0 {
			if werr = y.write(ctx, ms); werr == nil {
				done = max(done, next)
			}
		}
		stopped := ctx.Err() != nil
		if stopped || due {
			last = time.Now()
			y.commit(ctx, done, stopped)
		}
		y.report(done, len(ms) > 0)
		switch {
		case stopped || werr == nil && isEOF(err):
			return nil
		case werr != nil: // whatever err is: what was read is not written
			return werr
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

func (y *Relay) write(ctx context.Context, ms []Message) error {
	cut, start := y.Trace.Checkpoint(), time.Now()
	err := y.Sink.Write(ctx, ms)
	cut.Wrote(start, err, func(string) bool { return true })
	return err
}

// gather takes a record, waiting for it until a deadline, and further ones that are available. next is the offset
// after them, -1 if there were none. passed says that the last one was skipped, or the first ahead of the clock: this
// is committed before another is taken. What is written of it tells the brokers' time.
func (y *Relay) gather(ctx context.Context, until time.Time) (ms []Message, next int64, passed bool, err error) {
	ms, next, passed, err = y.takeAll(ctx, until)
	if next < 0 || passed {
		return ms, next, passed, err
	}
	held, rerr := y.released()
	if rerr != nil { // all come again
		return nil, -1, false, rerr
	}
	return append(ms, held...), next, passed, err
}

// released returns the messages of what is held. A defect there is put down to the record taken last: then all up to it
// go alone, and the one that is why is found.
func (y *Relay) released() ([]Message, error) {
	if !y.took {
		return nil, nil
	}
	y.took = false
	err := guardedTake(context.Background(), y.Guard, y.release, &y.last)
	return y.out, err
}

// takeAll is gather without the messages of what is held.
func (y *Relay) takeAll(ctx context.Context, until time.Time) (ms []Message, next int64, passed bool, err error) {
	next = -1
	if least := time.Now().Add(relayWait); until.Before(least) {
		until = least
	}
	wait, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for size := 0; size < maxRelayed; {
		r, err := y.next(wait)
		if err != nil {
			return ms, next, false, err
		}
		made, passed, err := y.made(r)
		if err != nil { // what was held may be lost: all come again
			return nil, -1, false, err
		}
		for i := range made {
			size += made[i].Size()
		}
		ms = append(ms, made...)
		if !r.Idle && !r.Paused {
			next = r.Offset + 1
			y.last, y.took = *r, true
		}
		if doubt := r.Ahead && !y.ahead; passed || doubt {
			y.ahead = y.ahead || doubt
			return ms, next, true, nil
		}
		if !y.Source.Buffered() {
			break
		}
	}
	return ms, next, false, nil
}

// next returns the next record for which everything it needs is ready.
func (y *Relay) next(ctx context.Context) (*Record, error) {
	if !y.waiting {
		r, err := y.Source.Next(ctx)
		if y.at = r; err != nil || r.Idle || r.Paused {
			return &y.at, err
		}
		y.waiting = true
	}
	if err := y.Convert.Ready(ctx, &y.at); err != nil {
		return &y.at, err
	}
	y.waiting = false
	return &y.at, nil
}

// made returns the messages for a record. A pause of reading counts as its end.
func (y *Relay) made(r *Record) (ms []Message, passed bool, err error) {
	if r.Paused {
		return y.Convert.Closing(), false, nil
	}
	y.out = nil
	if y.Guard.Pass(*r, y.skip) {
		return y.out, true, nil
	}
	if r.Idle {
		return y.Convert.Take(*r), false, nil
	}
	y.message = followed(r)
	y.Trace.Begin(&y.message)
	if r.Alone = y.Trace.On() || y.Guard.Suspects(*r); r.Alone {
		if ms, err = y.released(); err != nil { // which are in none of its traces
			return nil, false, err
		}
	}
	err = guardedTake(context.Background(), y.Guard, y.take, r)
	for i := range y.out {
		if s := y.out[i].Stream; s == StreamLogits || s == StreamLabels {
			CarryTrace(y.Trace, &y.out[i])
		}
	}
	y.Trace.End(&y.message, err)
	return append(ms, y.out...), false, err
}

// relayWait is the shortest wait for a record.
const relayWait = 100 * time.Millisecond

// commit tells the source up to where everything is written. At the end it writes the closing messages, unless another
// process reads the source already: then its later announcements must stand.
func (y *Relay) commit(ctx context.Context, done int64, stopped bool) {
	if stopped {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastTime)
		defer cancel()
	}
	var err error
	if ms := y.Convert.Gather(); len(ms) > 0 {
		err = y.Sink.Write(ctx, ms)
	}
	if err == nil {
		err = y.Source.Commit(ctx, map[Input]int64{y.Input: done})
	}
	if err != nil {
		y.Log.Warn("commit offsets: what was written since the last time comes again after a restart, and is known as "+
			"a repeat", "task", y.Name, faultlog.Err(err))
	} else {
		y.Guard.Saved(map[Input]int64{y.Input: done})
	}
	if !stopped || errors.Is(err, ErrFenced) {
		return
	}
	if err := y.Sink.Write(ctx, y.Convert.Closing()); err != nil {
		y.Log.Warn("write the last messages", "task", y.Name, "err", err)
	}
}

func (y *Relay) report(done int64, active bool) {
	st := &TaskStatus{
		Task:      y.Status.Task,
		Partition: y.Status.Partition,
		Next:      map[string]int64{y.Input.String(): done},
		CaughtUp:  y.Source.CaughtUp() && !y.waiting,
		Counts:    y.Counts.All(),
		WM:        NoTime,
	}
	st.Active = lastActive(y.Status.p.Load(), active)
	y.Status.p.Store(st)
}
