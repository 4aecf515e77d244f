package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// Guard knows which record a task is processing, and which records have ended the task too often. Only the task's
// goroutine calls it, except for Saved.
type Guard interface {
	// Pass calls over, with the reason, if the task must skip the record. It returns whether over did so.
	Pass(r Record, over func(why string) bool) bool
	// Suspects reports whether the task has ended at the record or a later one, so that the record may be why.
	Suspects(r Record) bool
	// Taking reports that the task begins with a record. If the process dies before Taken, the record may be why.
	Taking(r Record)
	Taken()
	// Saved reports that everything before these offsets is in a durable checkpoint.
	Saved(next map[Input]int64)
}

// unguarded is the guard that skips nothing.
type unguarded struct{}

func (unguarded) Pass(Record, func(string) bool) bool { return false }
func (unguarded) Suspects(Record) bool                { return false }
func (unguarded) Taking(Record)                       {}
func (unguarded) Taken()                              {}
func (unguarded) Saved(map[Input]int64)               {}

// guarded returns g, or a guard that skips nothing if g is nil.
func guarded(g Guard) Guard {
	if g == nil {
		return unguarded{}
	}
	return g
}

// ReasonPoison is the dead letters' reason for records that were skipped because they ended their task.
const ReasonPoison = "poison"

// TakeError is an error that a task returned for a record, with the record's place.
type TakeError struct {
	Input     Input
	Topic     string
	Partition int32
	Offset    int64
	Err       error
}

func (e *TakeError) Error() string { return e.Err.Error() }
func (e *TakeError) Unwrap() error { return e.Err }

// PanicError is a recovered panic.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Caught turns, if deferred, a panic into the error of the function.
func Caught(err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Value: p, Stack: debug.Stack()}
	}
}

// taker processes the records that a guard lets through.
type taker interface {
	Take(ctx context.Context, r Record) error
}

type takerFunc func(r Record) error

func (f takerFunc) Take(_ context.Context, r Record) error { return f(r) }

// guardedTake hands a record to a task and informs the guard. A panic becomes an error.
func guardedTake(ctx context.Context, g Guard, t taker, r *Record) error {
	if r.Idle || r.Paused { // a notice, which cannot be skipped
		return t.Take(ctx, *r)
	}
	g.Taking(*r)
	err := caughtTake(ctx, t, r)
	if err == nil {
		g.Taken()
		return nil
	}
	if p := (*PanicError)(nil); errors.As(err, &p) {
		err = fmt.Errorf("%s partition %d offset %d: %w", r.Topic, r.Partition, r.Offset, p)
	}
	return &TakeError{Input: r.Input, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Err: err}
}

func caughtTake(ctx context.Context, t taker, r *Record) (err error) {
	defer Caught(&err)
	return t.Take(ctx, *r)
}
