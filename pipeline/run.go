package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// Task is what the run loop drives: a shard or a model task.
type Task interface {
	// Name keys the task's checkpoints.
	Name() string
	// Next is the first offset not yet taken, by input; -1 means the start of the log.
	Next() map[Input]int64
	// Take processes one record.
	Take(ctx context.Context, r Record) error
	// Sections are the parts of a checkpoint, in the order in which they are restored.
	Sections() []Section
	// Decided returns the outputs since the last checkpoint.
	Decided() Outputs
	// Written reports that a checkpoint has taken over these outputs.
	Written()
}

// Outputs is what a task has to write since the last checkpoint.
type Outputs struct {
	Before []Message // written before the checkpoint: they may come twice
	After  []Message // written when the checkpoint is durable, and only then
	Dirty  bool      // a checkpoint would differ from the last one
	Full   bool      // the next checkpoint should not wait for its time
}

// Registered is a task with its optional functions; those that it lacks are nil.
type Registered struct {
	Task
	// Report prepares the task's present status; show publishes it, once a checkpoint from this moment is durable.
	Report func(caughtUp, active bool) (show func())
	Waiter Waiter
	Order  Ordered
	// Begin is called if there is no checkpoint at all, before anything is read. An error keeps the task from starting
	// with an empty state.
	Begin func(ctx context.Context) error
	// Durable reports that a checkpoint with everything before the last Written is durable. It is called on another
	// goroutine than the task's.
	Durable func()
	// Gather is called before the task's outputs go into a checkpoint.
	Gather func()
	// Closing reports that reading ends; a last checkpoint follows.
	Closing func()
	// Close releases files and other resources of the task.
	Close func() error
	// Skip passes over a record that has ended the task again and again, and dead-letters it with the reason. False:
	// the task cannot do without the record.
	Skip func(r Record, why string) bool
	// Prompt removes and returns the outputs that need not wait for a checkpoint. They are written in order, before
	// the next checkpoint counts.
	Prompt func() []Message
	// Counts counts the task's outputs that brokers refuse for good.
	Counts *Counts
}

// Waiter is a task's background work, such as fits, that its records may have to wait for.
type Waiter interface {
	// Resume continues work that had to wait. It is called before every wait for a record.
	Resume() error
	// Wake has a value when Resume may make progress; nil if nothing waits.
	Wake() <-chan struct{}
	// Settle waits until nothing waits.
	Settle(ctx context.Context) error
}

// Opened is an opened source with its optional functions; those that it lacks are nil.
type Opened struct {
	Source
	Visibility Visibility
}

// Runner runs tasks of one stage.
type Runner struct {
	Group    string // checkpoint key prefix
	Store    CheckpointStore
	Sink     Sink
	Interval time.Duration // wall clock from the start of one checkpoint to the start of the next
	// Restoring is called before a task is restored, and done after; may be nil.
	Restoring func() (done func())
	// Confirm is called before a checkpoint is saved. An error says that records since the last checkpoint came from
	// other topics than the task's. It may be nil.
	Confirm func(ctx context.Context) error
	Guard   Guard         // for the task; nil = nothing is skipped
	Trace   *tracing.Lane // for the task; nil = not traced
	// Anew is with what a deployment can begin without its state; "" = a new group and a new topics.panes.
	Anew string
	Log  *slog.Logger
}

// ErrUnsaved means that a task ended without its last checkpoint. Nothing is lost: the next owner of the task reads
// again from the checkpoint before.
var ErrUnsaved = errors.New("the last checkpoint is not saved")

// Build makes a task with empty state. It is called again for each checkpoint that is tried.
type Build func() (Registered, error)

// Open opens a task's source at the first offsets that it has not taken.
type Open func(next map[Input]int64) (Opened, error)

// Run restores the task that build makes, opens its source where the checkpoint ends, and processes records until ctx
// is done (nil), the source ends (nil) or an error, which a panic becomes. It saves a last checkpoint if it ends well,
// and takes at most lastTime after ctx is done; ErrUnsaved where that fails.
func Run(ctx context.Context, rn Runner, build Build, open Open) (err error) {
	defer Caught(&err)
	rn.Guard = guarded(rn.Guard)
	t, from, err := rn.restore(ctx, build)
	if err != nil {
		return err
	}
	defer rn.close(t)
	rn.Sink = lossySink{rn.Sink, t.Counts}
	// The outbox of the restored checkpoint may or may not have been written: write it again.
	if err := rn.Sink.Write(ctx, t.Decided().After); err != nil {
		return fmt.Errorf("%s: write again what the checkpoint held: %w", t.Name(), err)
	}
	if !t.Decided().Dirty { // else restoring has decided something, which the next checkpoint writes
		t.Written()
	}
	src, err := open(t.Next())
	if err != nil {
		return fmt.Errorf("%s: open source: %w", t.Name(), err)
	}
	defer src.Close()
	src.Source = &firstRecord{Source: src.Source, name: t.Name(), log: rn.Log}
	lp := newLoop(ctx, rn, t, src, from)
	defer lp.cancel()
	if src.Visibility != nil {
		src.Visibility.Shown(0)
	}
	if err := lp.retake(ctx, from.pasts); err != nil {
		return err // without a checkpoint, which would not have the rest
	}
	return lp.end(lp.run(ctx))
}

// restored says which checkpoint a task was restored from.
type restored struct {
	base, newest uint64  // numbers of the restored checkpoint and of the newest; 0 = none
	pasts        []*past // the journals between the two
	unusable     []uint64
}

// restore tries the stored checkpoints, newest first, each on a fresh task.
func (rn Runner) restore(ctx context.Context, build Build) (t Registered, from restored, err error) {
	if rn.Restoring != nil {
		defer rn.Restoring()()
	}
	if t, err = build(); err != nil {
		return t, from, err
	}
	fail := func(err error) (Registered, restored, error) {
		rn.close(t)
		return t, from, err
	}
	stored, err := rn.Store.Load(ctx, rn.Group+"/"+t.Name())
	if err != nil {
		return fail(fmt.Errorf("list checkpoints of %s: %w", t.Name(), err))
	}
	if len(stored) > 0 {
		from.newest = stored[0].Number
	} else if t.Begin != nil {
		if err := t.Begin(ctx); err != nil {
			return fail(fmt.Errorf("%s: %w", t.Name(), err))
		}
	}
	var errs []error
	for i, st := range stored {
		err := rn.load(t, st)
		if err == nil {
			from.base = st.Number
			from.pasts = rn.pasts(t, st.Number, stored[:i])
			return t, from, nil
		}
		if ctx.Err() != nil { // no fault of the checkpoint's
			return fail(ctx.Err())
		}
		if OfMachine(err) {
			mend := ""
			if errors.Is(err, fs.ErrPermission) {
				mend = " (let this user read and write it)"
			}
			return fail(fmt.Errorf("%s: %s cannot be used now: %w%s", t.Name(), st.Name, err, mend))
		}
		errs = append(errs, fmt.Errorf("%s: %w", st.Name, err))
		if errors.Is(err, ErrSettings) {
			break
		}
		from.unusable = append(from.unusable, st.Number)
		rn.Log.Error("checkpoint cannot be used, trying the one before", "task", t.Name(), "checkpoint", st.Name,
			"err", err)
		rn.close(t)
		if t, err = build(); err != nil {
			return t, from, err
		}
	}
	if len(errs) > 0 {
		all := errors.Join(errs...)
		return fail(fmt.Errorf("%s: %w: %w (%s)", t.Name(), ErrUnusable, all, rn.wayOut(all)))
	}
	return t, from, nil
}

// OfMachine reports that this machine lets nobody write, or open a file, or that a file server does not answer it: no
// checkpoint is damaged by that, one of before is no better, and a person must not give the state up.
func OfMachine(err error) bool {
	for _, e := range []error{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE,
		syscall.ENOMEM, syscall.ESTALE, syscall.ETIMEDOUT, fs.ErrPermission} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// wayOut is what a person can do where no checkpoint can be used.
func (rn Runner) wayOut(err error) string {
	const last = "if nothing else helps, plumbline state reset lets the task begin anew"
	var format *FormatError
	switch {
	case errors.Is(err, ErrSettings):
		return "or begin anew with " + cmp.Or(rn.Anew, "a new group and a new topics.panes")
	case errors.As(err, &format):
		return "start the build that wrote it again, which loses nothing; " + last
	}
	return last
}

// load fills a task from a checkpoint.
func (rn Runner) load(t Registered, st Stored) error {
	begin := time.Now()
	data, err := st.Read()
	if err != nil {
		return err
	}
	read := time.Since(begin)
	if err := RestoreCheckpoint(data, t.Sections(), st.Fetch); err != nil {
		return err
	}
	rn.Log.Info("restored", "task", t.Name(), "checkpoint", st.Name, "bytes", len(data), "read", read,
		"took", time.Since(begin))
	return nil
}

func (rn Runner) close(t Registered) {
	if t.Close == nil {
		return
	}
	if err := t.Close(); err != nil {
		rn.Log.Warn("close task", "task", t.Name(), "err", err)
	}
}

// ForRun returns the shard in the form that Run takes.
func (s *Shard) ForRun() Registered {
	out := Registered{Task: s, Report: s.Report, Order: s.Watermark, Durable: s.stages().durable,
		Gather: s.Out.TellAhead, Closing: s.Closing, Close: s.Close, Skip: s.Skip, Counts: s.Counts}
	if s.CalibratedAtOnce {
		out.Prompt = s.Out.prompt
	}
	return out
}

// End reports to the stages that the input has ended, if no checkpoint follows.
func (s *Shard) End(ctx context.Context) error { return s.stages().end(ctx) }

// Close closes the stages that hold files or other resources.
func (s *Shard) Close() error { return s.stages().close() }

// Report prepares the present status, which show publishes.
func (s *Shard) Report(caughtUp, active bool) (show func()) {
	st := &TaskStatus{Task: "shard", Partition: s.ID, Next: map[string]int64{}, CaughtUp: caughtUp,
		Counts: s.Counts.All(), WM: s.Watermark.Now()}
	for i, o := range s.next {
		st.Next[Input(i).String()] = o
	}
	st.Inputs = s.Watermark.inputs()
	st.PanesWritten, st.Epoch = slices.Clone(s.Outbox.seq), s.Outbox.epoch.ID
	if l := s.Outbox.epoch.Loss; l != nil {
		st.Losses = []*record.Loss{l}
	}
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

// firstRecord logs when a task has processed its first record. Together with the log line about the restored
// checkpoint it shows how long the task was away.
type firstRecord struct {
	Source
	name string
	log  *slog.Logger
	last Record
	step int // 0: nothing handed out, 1: the task has the first record, 2: logged
}

// Next implements Source. A call means that the record before is processed.
func (f *firstRecord) Next(ctx context.Context) (Record, error) {
	if f.step == 1 {
		f.step = 2
		f.log.Info("first record", "task", f.name, "topic", f.last.Topic, "offset", f.last.Offset, "at",
			Format(f.last.Time))
		f.last = Record{}
	}
	r, err := f.Source.Next(ctx)
	if f.step == 0 && err == nil && !r.Idle && !r.Paused { // a pause is no record
		f.step, f.last = 1, Record{Topic: r.Topic, Offset: r.Offset, Time: r.Time}
	}
	return r, err
}
