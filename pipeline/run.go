package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"
)

// Task is what the run loop drives: a shard or a model task.
type Task interface {
	Name() string
	Next() map[Input]int64
	Take(ctx context.Context, r Record) error
	Full() bool
	Dirty() bool
	Sections() []Section
	// Before and After return the outputs to be written before the checkpoint and, only then visible, after it.
	Before() []Message
	After() []Message
	Written()
	// Closing tells that nobody reads the task's inputs from here on; a last checkpoint follows.
	Closing()
	// Report prepares the task's status as it is now; show makes it visible, once a checkpoint of now is durable.
	Report(caughtUp, active bool) (show func())
}

// Waiter is a Task that has work done beside it, of which its records may have to wait.
type Waiter interface {
	// Resume goes on with what has been waited for. It is called before every wait for a record.
	Resume() error
	// Wake has a value when Resume may get further; nil where nothing waits.
	Wake() <-chan struct{}
	// Settle waits until nothing waits.
	Settle(ctx context.Context) error
}

// Runner runs tasks of one stage.
type Runner struct {
	Group    string // checkpoint key prefix
	Store    CheckpointStore
	Sink     Sink
	Interval time.Duration // wall clock from the beginning of one checkpoint to that of the next
	Log      *slog.Logger
}

// ErrUnsaved means that a task ended without its last checkpoint. What it took since the one before is not lost: whoever is assigned the task takes it
// again.
var ErrUnsaved = errors.New("the last checkpoint is not saved")

// Run restores the task that build makes, opens its source where the checkpoint ends, and processes records
// until ctx is done (nil), the source ends (nil) or an error. It saves a last checkpoint when it ends well, and takes at
// most lastTime after ctx is done; ErrUnsaved where that fails.
func Run[T Task](ctx context.Context, rn Runner, build func() (T, error), open func(next map[Input]int64) (Source, error)) error {
	t, from, err := restore(ctx, rn, build)
	if err != nil {
		return err
	}
	defer closeTask(rn, t)
	// The outbox of the restored checkpoint may or may not have been written: write it again.
	if err := rn.Sink.Write(ctx, t.After()); err != nil {
		return fmt.Errorf("%s: write again what the checkpoint held: %w", t.Name(), err)
	}
	t.Written()
	src, err := open(t.Next())
	if err != nil {
		return fmt.Errorf("%s: open source: %w", t.Name(), err)
	}
	defer src.Close()
	lp := newLoop(ctx, rn, t, &firstRecord{Source: src, name: t.Name(), log: rn.Log}, from)
	defer lp.cancel()
	if lp.teller, _ = src.(Teller); lp.teller != nil {
		lp.teller.Shown(0)
	}
	if err := lp.retake(ctx, from.pasts); err != nil {
		return err // without a checkpoint, which would not have the rest
	}
	err = lp.run(ctx)
	if errors.Is(err, context.Canceled) {
		lp.close()
	}
	if err == nil || errors.Is(err, context.Canceled) {
		if _, err = lp.begin(); err == nil {
			err = lp.settle()
		}
		return lp.unsaved(err)
	}
	// What is in flight would get into the way of whoever restores the task.
	if failed := lp.settle(); failed != nil && !errors.Is(err, failed) {
		err = errors.Join(err, failed)
	}
	return err
}

// restored tells where a task begins.
type restored struct {
	base, newest uint64  // numbers of the checkpoint that it was restored from, and of the newest; 0 = none
	pasts        []*past // what was taken between the two
	unusable     []uint64
}

// restore tries the stored checkpoints, newest first, each on a fresh task.
func restore[T Task](ctx context.Context, rn Runner, build func() (T, error)) (t T, from restored, err error) {
	defer heapGrows()()
	if t, err = build(); err != nil {
		return t, from, err
	}
	stored, err := rn.Store.Load(ctx, rn.Group+"/"+t.Name())
	if err != nil {
		closeTask(rn, t)
		return t, from, fmt.Errorf("list checkpoints of %s: %w", t.Name(), err)
	}
	if len(stored) > 0 {
		from.newest = stored[0].Number
	}
	var errs []error
	for i, st := range stored {
		begin := time.Now()
		data, err := st.Read()
		read := time.Since(begin)
		if err == nil {
			err = RestoreCheckpoint(data, t.Sections(), st.Fetch)
		}
		if err == nil {
			rn.Log.Info("restored", "task", t.Name(), "checkpoint", st.Name, "bytes", len(data), "read", read, "took", time.Since(begin))
			from.base = st.Number
			from.pasts = rn.pasts(t, st.Number, stored[:i])
			for _, bad := range stored[:i] {
				from.unusable = append(from.unusable, bad.Number)
			}
			return t, from, nil
		}
		if ctx.Err() != nil { // no fault of the checkpoint's
			closeTask(rn, t)
			return t, from, ctx.Err()
		}
		rn.Log.Error("checkpoint cannot be used, trying the one before", "task", t.Name(), "checkpoint", st.Name, "err", err)
		errs = append(errs, fmt.Errorf("%s: %w", st.Name, err))
		closeTask(rn, t)
		if t, err = build(); err != nil {
			return t, from, err
		}
	}
	if len(errs) > 0 {
		closeTask(rn, t)
		return t, from, fmt.Errorf("%s: %w (move them away to start from nothing): %w", t.Name(), ErrUnusable, errors.Join(errs...))
	}
	return t, from, nil
}

// closeTask lets go of what a task holds beside memory.
func closeTask(rn Runner, t Task) {
	if c, ok := t.(io.Closer); ok {
		if err := c.Close(); err != nil {
			rn.Log.Warn("close task", "task", t.Name(), "err", err)
		}
	}
}

// Close closes the operators that hold more than memory.
func (s *Shard) Close() error {
	var errs []error
	for _, st := range s.Stages {
		if c, ok := st.Operator.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Dirty implements Task.
func (s *Shard) Dirty() bool { return s.dirty }

// Before implements Task: dead letters and the calibrated stream.
func (s *Shard) Before() []Message { return s.Out.pending }

// After implements Task: the panes.
func (s *Shard) After() []Message { return s.Outbox.Pending() }

// Written implements Task.
func (s *Shard) Written() {
	s.dirty, s.woke, s.rows = false, false, 0
	s.Out.clear()
	s.Outbox.Clear()
}

// Report implements Task.
func (s *Shard) Report(caughtUp, active bool) (show func()) {
	st := &TaskStatus{Task: "shard", Partition: s.ID, Next: map[string]int64{}, CaughtUp: caughtUp, Counts: s.Counts.All(), WM: s.Watermark.Now()}
	for i, o := range s.next {
		st.Next[Input(i).String()] = o
	}
	st.PanesWritten = slices.Clone(s.Outbox.seq)
	if st.WM != NoTime {
		st.Watermark = Format(st.WM)
	}
	return func() {
		st.Active = lastActive(s.status.Load(), active)
		s.status.Store(st)
	}
}

func lastActive(old *TaskStatus, active bool) time.Time {
	if old == nil || active {
		return time.Now()
	}
	return old.Active
}
