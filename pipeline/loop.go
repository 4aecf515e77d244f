package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// lastTime bounds the last checkpoint once the task is to end: its generation in the group may be over.
const lastTime = 10 * time.Second

// How a task's time is divided. A checkpoint that is due while the last one is still being saved waits for it. Those
// of a large state are put off further: copying and encoding take at most one part in restShare+1 of the task's time,
// so that a growing state cannot stop progress.
const (
	restShare = 8
	savePoll  = 10 * time.Millisecond // how often a task without records looks whether a save has ended
)

// loop runs a task. It takes a checkpoint in two parts. While the task stands still, everything that must be from one
// moment is copied (begin). Then the task goes on, and the copy is made durable and visible in the background (save).
// At most one copy is being saved: the next begins when all of it is done. So the outputs of one checkpoint are
// written before those of the next are decided, and an outbox holds only messages that may not be written yet.
type loop struct {
	Runner
	task     Registered
	src      Opened
	number   uint64          // of the last checkpoint begun
	memory   []byte          // of the checkpoint that was saved last, for the next
	encoding time.Duration   // time that encoding its copies took
	unusable []uint64        // checkpoints that the task could not be restored from
	ctx      context.Context // of checkpoints: done lastTime after that of the task
	cancel   context.CancelFunc
	inFlight chan saved    // nil where there is none
	err      error         // of a save that failed: no other may follow, or the outputs of the failed one would be lost
	failed   chan struct{} // closed when one has failed
	journal  *takeLog      // since the last checkpoint begun; nil if the order does not matter
	prompt   *asyncWriter
	deadline deadline              // for the wait for the next record
	at       Record                // at hand
	over     func(why string) bool // skips it
}

// copied is a copy of a task at one moment.
type copied struct {
	draft
	Checkpoint
	number        uint64
	before, after []Message
	next          map[Input]int64
	show          func()
	trace         *tracing.Cut
	prompt        uint64 // mark of the messages that need not wait for the checkpoint
}

// saved is what remains of a saved copy: its bytes, whose memory the next copy uses, and how long encoding took.
type saved struct {
	data     []byte
	encoding time.Duration
	err      error
}

// newLoop returns the loop of a restored task.
func newLoop(ctx context.Context, rn Runner, t Registered, src Opened, from restored) *loop {
	l := &loop{Runner: rn, task: t, src: src, number: from.newest, unusable: from.unusable, failed: make(chan struct{})}
	if t.Order != nil {
		l.journal = &takeLog{base: from.base, idle: t.Order.IdleInputs()}
	}
	l.over = func(why string) bool { return l.skip(l.at, why) }
	of, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(lastTime, cancel) })
	l.ctx, l.cancel = of, func() { forget(); cancel() }
	l.prompt = newAsyncWriter(func(ms []Message) error { return l.Sink.Write(l.ctx, ms) })
	return l
}

// run takes records and checkpoints until ctx is done, the source ends, or something fails.
func (l *loop) run(ctx context.Context) (err error) {
	defer Caught(&err)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // a failed checkpoint is no reason to wait for the next record
		select {
		case <-l.failed:
			stop()
		case <-reading.Done():
		}
	}()
	defer l.deadline.stop()
	due := time.Now().Add(firstDue(l.Interval, begun.Add(1)))
	for {
		until := due
		if l.saving() {
			until = later(due, time.Now().Add(savePoll))
		}
		r, came, err := l.read(ctx, reading, until)
		if isEOF(err) {
			return l.settled(ctx)
		}
		passed := false
		if err == nil && came {
			passed, err = l.take(ctx, r)
		}
		if err == nil && passed {
			err = l.pass()
		}
		if err != nil {
			return err
		}
		if reading.Err() != nil && ctx.Err() == nil {
			return l.settle() // the error that stopped it
		}
		// A full task waits for the save in flight: that bounds what it holds.
		if full := l.task.Decided().Full; full || !time.Now().Before(due) && !l.saving() {
			stood, err := l.begin()
			if err != nil {
				return err
			}
			due = time.Now().Add(max(l.Interval-stood, restShare*(stood+l.encoding)+l.encoding))
		}
	}
}

// begun is how many tasks of this process have begun to read.
var begun atomic.Uint32

// firstDue returns the time to the first checkpoint of the nth task, in the last quarter of the interval. Tasks that
// start together would otherwise all encode their states at the same moment, and hardly a row would pass meanwhile. By
// the golden ratio the first checkpoints of n successive tasks are nowhere closer together than .4 of an nth of the
// quarter. The spread is no larger, because a pane is complete only when the last shard has written its part.
func firstDue(interval time.Duration, nth uint32) time.Duration {
	const ratio = 0x9e3779b9 // the golden one's fraction, of 2³²
	return interval - time.Duration(float64(interval/4)*float64(nth*ratio)/(1<<32))
}

// read waits for the next record until a deadline; came is false if there was none. io.EOF is the end of the input.
func (l *loop) read(ctx, reading context.Context, until time.Time) (r Record, came bool, err error) {
	wait, stop, err := l.resume(l.deadline.of(reading, until))
	if err != nil {
		return r, false, err
	}
	defer stop()
	r, err = l.src.Next(wait)
	switch {
	case isEOF(err):
		return r, false, io.EOF
	case ctx.Err() != nil:
		return r, false, ctx.Err()
	case err != nil && wait.Err() != nil: // the time is over
		return r, false, nil
	case err != nil:
		return r, false, fmt.Errorf("%s: read: %w", l.task.Name(), err)
	}
	return r, true, nil
}

// resume continues the task's waiting work. The returned context ends the wait for the next record as soon as the
// background work has news; stop releases it.
func (l *loop) resume(until context.Context) (wait context.Context, stop func(), err error) {
	w := l.task.Waiter
	if w == nil {
		return until, func() {}, nil
	}
	if err := w.Resume(); err != nil {
		return until, nil, fmt.Errorf("%s: %w", l.task.Name(), err)
	}
	news := w.Wake()
	if news == nil {
		return until, func() {}, nil
	}
	wait, stop = endedBy(until, news)
	return wait, stop, nil
}

// endedBy returns a context that ends with parent or when news come.
func endedBy(parent context.Context, news <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(parent)
	go func() {
		select {
		case <-news:
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// deadline is a context that ends at a time. It is reused while the time stays the same: a new one for each record
// would cost as much as reading it.
type deadline struct {
	context.Context
	at  time.Time
	end context.CancelFunc
}

func (d *deadline) of(parent context.Context, at time.Time) context.Context {
	if d.Context == nil || !d.at.Equal(at) {
		d.stop()
		d.at = at
		d.Context, d.end = context.WithDeadline(parent, at)
	}
	return d.Context
}

func (d *deadline) stop() {
	if d.end != nil {
		d.end()
	}
}

// settled waits, at the end of the input, until the task waits for nothing more.
func (l *loop) settled(ctx context.Context) error {
	if w := l.task.Waiter; w != nil {
		if err := w.Settle(ctx); err != nil {
			return fmt.Errorf("%s: %w", l.task.Name(), err)
		}
	}
	return nil
}

// take hands a record to the task and adds it to the journal, unless the record must be skipped.
func (l *loop) take(ctx context.Context, r Record) (passed bool, err error) {
	l.at = r
	if l.Guard.Pass(r, l.over) {
		return true, nil
	}
	m := followed(&r)
	if !r.Idle && !r.Paused {
		l.Trace.Begin(&m)
	}
	err = guardedTake(ctx, l.Guard, l.task, &r)
	if err == nil && l.task.Prompt != nil {
		err = l.prompt.put(l.task.Prompt())
	}
	if !r.Idle && !r.Paused {
		l.Trace.End(&m, err)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", l.task.Name(), err)
	}
	if l.journal != nil {
		l.journal.took(r)
	}
	return false, nil
}

// pass saves a checkpoint right after a skipped record. The guard remembers one record only: if the next record ended
// the task as well, each would make it forget the other for ever.
func (l *loop) pass() error {
	if _, err := l.begin(); err != nil {
		return err
	}
	return l.settle()
}

// skip has the task skip a record and adds this to the journal; false if the task cannot do without it.
func (l *loop) skip(r Record, why string) bool {
	if l.task.Skip == nil || !l.task.Skip(r, why) {
		return false
	}
	if l.journal != nil {
		l.journal.skipped(r)
	}
	return true
}

// close tells the task that reading ends, and adds this to the journal.
func (l *loop) close() {
	if l.task.Closing != nil {
		l.task.Closing()
	}
	if l.journal != nil {
		l.journal.closing()
	}
}

// saving reports whether a checkpoint is being saved.
func (l *loop) saving() bool { return l.inFlight != nil && len(l.inFlight) == 0 }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// begin copies the task, once the copy before is saved, and starts saving it. It returns how long the task stood
// still.
func (l *loop) begin() (stood time.Duration, err error) {
	if err := l.settle(); err != nil {
		return 0, err
	}
	start := time.Now()
	defer func() { stood = time.Since(start) }()
	t := l.task
	if t.Gather != nil {
		t.Gather()
	}
	out := t.Decided()
	show := l.shows(out.Dirty)
	if !out.Dirty && !l.Store.Lost(l.Group+"/"+t.Name()) {
		show()
		l.Guard.Saved(t.Next())
		return 0, nil
	}
	d, err := draftCheckpoint(l.memory[:0], t.Sections())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", t.Name(), err)
	}
	l.number++
	var journal []byte
	if l.journal != nil {
		journal = l.journal.cut(l.number, t.Order.IdleInputs())
	}
	s := &copied{
		draft:      d,
		Checkpoint: Checkpoint{Unusable: l.unusable, Journal: journal},
		number:     l.number,
		before:     out.Before,
		after:      out.After,
		next:       t.Next(),
		show:       show,
		trace:      l.Trace.Checkpoint(),
		prompt:     l.prompt.mark(),
	}
	t.Written()
	done := make(chan saved, 1)
	l.inFlight = done
	go func() {
		encoding, err := l.finish(s)
		if err == nil {
			err = l.save(s)
		}
		if err != nil {
			close(l.failed)
		}
		done <- saved{s.Data, encoding, err}
	}()
	return 0, nil
}

// finish encodes the frozen sections.
func (l *loop) finish(s *copied) (took time.Duration, err error) {
	defer Caught(&err)
	start := time.Now()
	c, err := s.draft.finish()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", l.task.Name(), err)
	}
	s.Data, s.Files = c.Data, c.Files
	return time.Since(start), nil
}

// shows returns a function that makes the present status visible and tells the source so.
func (l *loop) shows(active bool) func() {
	show := func() {}
	if l.task.Report != nil {
		show = l.task.Report(l.src.CaughtUp(), active)
	}
	visibility := l.src.Visibility
	if visibility == nil {
		return show
	}
	if w := l.task.Waiter; w != nil && w.Wake() != nil {
		return show // what it has taken will still change it
	}
	n := visibility.HandedOut() // all of it has been taken
	return func() {
		show()
		visibility.Shown(n)
	}
}

// settle waits until the running save is done and returns its error, or that of an earlier save that failed.
func (l *loop) settle() error {
	if l.inFlight != nil {
		s := <-l.inFlight
		l.inFlight, l.encoding, l.err = nil, s.encoding, s.err
		const burst = 4 // the state of one is not held for ever
		if l.memory = s.data; cap(s.data) > burst*len(s.data) {
			l.memory = nil
		}
	}
	return l.err
}

// end saves the last checkpoint of a task that is to end, or whose source has ended; err is why it ends.
func (l *loop) end(err error) error {
	if err != nil && !errors.Is(err, context.Canceled) {
		// A checkpoint in flight could collide with the next owner of the task.
		if failed := l.settle(); failed != nil && !errors.Is(err, failed) {
			err = errors.Join(err, failed)
		}
		return err
	}
	if err != nil {
		l.close()
	}
	if _, err = l.begin(); err == nil {
		err = l.settle()
	}
	return l.unsaved(err)
}

// unsaved adds to an error of the last checkpoint up to which records the task had taken.
func (l *loop) unsaved(err error) error {
	if err == nil {
		return nil
	}
	next := l.task.Next()
	var at []string
	for _, in := range slices.Sorted(maps.Keys(next)) {
		at = append(at, fmt.Sprintf("%s %d", in, next[in]))
	}
	return fmt.Errorf("%w: up to %s: %w", ErrUnsaved, strings.Join(at, ", "), err)
}

// save makes a copy durable and visible, in this order: the bytes of the checkpoint, the outputs that may come twice,
// the claim by which the checkpoint counts, the outputs that must never differ in a repeat, and the group's offsets,
// for lag tools. So a full disk publishes nothing. A process that was away while another took the task must not write
// the first outputs either: readers take the last record of a key, and its record would be old.
func (l *loop) save(s *copied) (err error) {
	defer func() { s.trace.Saved(s.number, err) }()
	defer Caught(&err)
	name, key := l.task.Name(), l.Group+"/"+l.task.Name()
	if l.Confirm != nil {
		if err := l.Confirm(l.ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	s.Ready = func() error {
		if err := l.Store.Holds(l.ctx, key, s.number-1); err != nil {
			return err
		}
		if err := l.prompt.written(s.prompt); err != nil {
			return fmt.Errorf("write outputs: %w", err)
		}
		if err := l.write(s, s.before, func(stream string) bool { return stream != string(StreamPanes) }); err != nil {
			return fmt.Errorf("write outputs: %w", err)
		}
		return nil
	}
	if err := l.Store.Save(l.ctx, key, s.number, s.Checkpoint); err != nil {
		return fmt.Errorf("%s: save checkpoint %d: %w", name, s.number, err)
	}
	l.Guard.Saved(s.next)
	if l.task.Durable != nil {
		l.task.Durable()
	}
	if err := l.write(s, s.after, func(stream string) bool { return stream == string(StreamPanes) }); err != nil {
		return fmt.Errorf("%s: write panes: %w", name, err)
	}
	if err := l.src.Commit(l.ctx, s.next); err != nil {
		l.Log.Warn("commit offsets (only lag tools use them)", "task", name, faultlog.Err(err))
	}
	s.show()
	return nil
}

// write writes outputs of a copy; meant selects the streams that traces are told about.
func (l *loop) write(s *copied, ms []Message, meant func(stream string) bool) error {
	start := time.Now()
	err := l.Sink.Write(l.ctx, ms)
	s.trace.Wrote(start, err, meant)
	return err
}
